package engine

// Entries is the number of models of which the server knows something.
func (s *Server) Entries() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.entries)
}
