package sequence

// Load returns the number of free slots, and of requests in the backlog.
func (s *Scheduler[T]) Load() (free, backlog int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.free), s.backlog.requests
}

// Open returns the number of sequences that may get further requests.
func (s *Scheduler[T]) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
