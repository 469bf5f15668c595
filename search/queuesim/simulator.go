package queuesim

import (
	"math"

	"tuner/measure"
)

// Simulator simulates loads one after the other in the same memory. The zero value is ready. It is
// for one goroutine, and must not be copied.
type Simulator struct {
	lane          // of a model alone, or of the first of several
	more  []*lane // of the others that any simulation had
	lanes []*lane // of this simulation
	sent  int     // requests of all lanes
}

// Simulate is the function of that name with reused memory.
func (s *Simulator) Simulate(b Batcher, c ServiceCurve, load measure.Load, o Options) Result {
	s.alone()
	if !s.begin(b, c, load, o, false) {
		return Result{}
	}
	s.run()
	return s.tally.result(s.now, o.Within)
}

// alone makes the first lane the only one.
func (s *Simulator) alone() { s.lanes, s.sent = append(s.lanes[:0], &s.lane), 0 }

// run processes events until all tallies are complete, or no event is left.
func (s *Simulator) run() {
	if len(s.lanes) == 1 {
		s.lanes[0].runAlone()
		return
	}
	for !s.isComplete() {
		l, at, what, i := s.next()
		if what == nothing {
			return
		}
		if what == sending {
			s.sent += l.due.front().requests
		}
		for _, each := range s.lanes {
			each.advance(at)
		}
		l.handle(what, i)
		if what == completion {
			s.release()
		}
		s.pace()
	}
}

// runAlone is Simulator.run for a lane alone.
func (l *lane) runAlone() {
	for !l.tally.isComplete(l.now) {
		at, what, i := l.next()
		if what == nothing {
			return
		}
		l.advance(at)
		l.handle(what, i)
		l.pace(0)
	}
}

// next returns the next event of all lanes, with its lane.
func (s *Simulator) next() (l *lane, at float64, what event, i int) {
	at = math.Inf(1)
	for _, each := range s.lanes {
		if t, kind, k := each.next(); t < at || t == at && kind < what {
			l, at, what, i = each, t, kind, k
		}
	}
	return l, at, what, i
}

// isComplete reports whether all lanes have counted enough.
func (s *Simulator) isComplete() bool {
	for _, l := range s.lanes {
		if !l.tally.isComplete(l.now) {
			return s.sent >= s.most()
		}
	}
	return true
}

// release lets all lanes count once each of them has passed its warm-up.
func (s *Simulator) release() {
	for _, l := range s.lanes {
		if l.tally.done < l.tally.skip {
			return
		}
	}
	for _, l := range s.lanes {
		l.tally.held = false
	}
}

// pace recomputes the ends of all executions after one lane has changed.
func (s *Simulator) pace() {
	total := 0.0
	for _, l := range s.lanes {
		total += l.demand()
	}
	for _, l := range s.lanes {
		l.pace(total - l.demand())
	}
}

// demand returns the cores that a lane's work asks for.
func (l *lane) demand() float64 { return l.path.demand(len(l.running)) }
