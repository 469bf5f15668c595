package arrivals

import "time"

// joined yields given instants, and after the last one more each second.
type joined struct {
	instants []time.Duration
	next     int
}

// Joined returns the schedule of a warm-up and of what follows it, given as instants that ascend, of each one at
// least. Only their distances count: the first that follows is due with the last of the warm-up. A schedule has no
// end, so one more instant follows each second; a load takes no more than it has been told.
func Joined(before, counted []time.Duration) Schedule {
	s := &joined{instants: make([]time.Duration, 0, len(before)+len(counted))}
	s.instants = append(s.instants, before...)
	offset := before[len(before)-1] - counted[0]
	for _, at := range counted {
		s.instants = append(s.instants, at+offset)
	}
	return s
}

// Next implements Schedule.
func (s *joined) Next() time.Duration {
	i := s.next
	s.next++
	if last := len(s.instants) - 1; i > last {
		return s.instants[last] + time.Duration(i-last)*time.Second
	}
	return s.instants[i]
}
