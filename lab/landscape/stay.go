package landscape

import (
	"math"
	"math/rand/v2"
	"time"

	"tuner/measure"
)

// stay is what a machine plays of a point while a trial measures it: recorded visits,
// drawn one after the other, each from its first window to its last. The noise that the
// windows of a visit have in common thus stays common to them. Only what lasts longer
// than a visit is in the course of the machine's speed.
type stay struct {
	point  *Point
	visit  []window // that is being played; its first windows are
	next   int      // the window whose turn it is
	played float64  // share of that which is played, 0..1
}

// draw returns a window and the part of it that is played next, as shares from 0 to 1: so
// much of it, at most all.
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

// window plays a window of a length on an engine process whose speed is known, begun at
// an instant of the machine's course. It does not move the clock: windows of several
// points that follow each other at near instants meet the same course. Where a longer
// window is asked for than was recorded, it is several of the stay in a row.
func (m *Machine) window(s *stay, begin, length time.Duration, launch float64, load measure.Load) measure.Window {
	asked := length.Seconds() / m.landscape.window // in recorded windows
	n := 1
	if s.point.visits[0][0].isMeasured {
		n = max(1, int(math.Round(asked)))
	}
	var played []measure.Window
	for range n {
		w, from, to := s.draw(m.random, asked/float64(n))
		// The runner makes windows longer for slow configurations; one of another length
		// is so in the same proportion.
		seconds := w.seconds * asked / float64(n)
		one := m.play(w.part(from, to), begin, seconds, launch, load.BatchSize)
		begin += one.Duration
		played = append(played, one)
	}
	all := m.beside(joined(played))
	all.InFlight = float64(load.Concurrency) // a closed loop's clients wait or are served
	return all
}
