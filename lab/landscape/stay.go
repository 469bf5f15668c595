package landscape

import (
	"math"
	"math/rand/v2"
	"time"

	"tuner/measure"
)

// stay is the sequence of recorded visits to a point that a machine replays during a trial. Visits
// are drawn one after the other, each from its first window to its last. So the common noise of a
// visit's windows stays common to them. Only effects that last longer than a visit belong to the
// course of the machine's speed.
type stay struct {
	point  *Point
	visit  []window // the visit being replayed; its first windows are done
	next   int      // index of the next window
	played float64  // replayed share of that window, 0..1
}

// draw returns a window and the part of it that is replayed next, as shares from 0 to 1. The part
// is as long as requested, and at most the whole window.
func (s *stay) draw(random *rand.Rand, share float64) (w window, from, to float64) {
	const rounding = 1e-9
	if s.played > 0 && s.played+share > 1+rounding {
		s.next, s.played = s.next+1, 0
	}
	if s.next >= len(s.visit) {
		s.visit, s.next, s.played = s.point.visits[random.IntN(len(s.point.visits))], 0, 0
	}
	w, from = s.visit[s.next], s.played
	to = min(from+share, 1)
	if s.played = to; s.played > 1-rounding {
		s.next, s.played = s.next+1, 0
	}
	return w, from, to
}

// window replays a window of a length on an engine process with a known speed, from an instant of
// the machine's course. It does not move the clock: windows of several points at near instants meet
// the same course. A window that is longer than the recorded ones consists of several in a row.
func (m *Machine) window(s *stay, begin, length time.Duration, launch float64, load measure.Load) measure.Window {
	asked := length.Seconds() / m.landscape.window // in units of recorded windows
	n := 1
	if s.point.visits[0][0].isMeasured {
		n = max(1, int(math.Round(asked)))
	}
	var played []measure.Window
	for range n {
		w, from, to := s.draw(m.random, asked/float64(n))
		// The runner makes windows longer for slow configurations. A window of another length is
		// scaled in proportion.
		seconds := w.seconds * asked / float64(n)
		one := m.play(w.part(from, to), begin, seconds, launch, load.BatchSize)
		begin += one.Duration
		played = append(played, one)
	}
	all := m.beside(joined(played))
	all.InFlight = float64(load.Concurrency) // a closed loop's clients wait or are served
	return all
}
