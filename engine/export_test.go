package engine

// Entries returns the number of models of which the server keeps a state.
func (s *Server) Entries() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.entries)
}
