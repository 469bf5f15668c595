package race

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tuner/search"
)

// beside is a machine with a neighbour that takes two fifths of it for seconds. The share is
// measured with an error of 2 %.
type beside struct {
	*machine
	random *rand.Rand
	isSeen bool
	busy   bool
	until  time.Duration
}

func (b *beside) measure(t Trial) Outcome {
	o := b.machine.measure(t)
	for o.Elapsed > b.until {
		b.busy = !b.busy
		b.until += time.Duration(2 * b.random.ExpFloat64() * float64(time.Second))
	}
	seen := b.random.NormFloat64() // drawn in every case, so that both races see the same neighbour
	if o.Failure != "" || !b.busy {
		return o
	}
	taken := -math.Log(1 - 0.4)
	o.Value *= math.Exp(-1.2 * taken)
	if b.isSeen {
		o.Withheld = max(0, taken+0.02*seen)
	}
	return o
}

// With a neighbour, races with the correction prove more answers, and their gains have smaller
// errors.
func TestNeighbourIsTakenOut(t *testing.T) {
	t.Parallel()
	const races, gain = 100, 1.95
	var near [2]int
	var off [2]float64
	covered := 0
	for seed := range uint64(races) {
		for i, isSeen := range []bool{true, false} {
			m := &beside{machine: newMachine(seed, shared), random: rand.New(rand.NewPCG(seed, 7)), isSeen: isSeen}
			r := New(minilm(time.Minute, seed))
			for a := r.Ask(); !a.Stop; a = r.Ask() {
				r.Tell(m.measure(a.Trial))
			}
			result := r.Result()
			if shared(result.Winner) >= 0.97*gain*100 {
				near[i]++
			}
			for _, s := range result.Standings {
				if s.Verdict == Winner {
					truth := shared(s.Candidate) / shared(search.Candidate{})
					off[i] += math.Pow(math.Log(s.Gain.Value/truth), 2) / races
					if isSeen && s.Gain.Lo <= truth && truth <= s.Gain.Hi {
						covered++
					}
				}
			}
			if isSeen && math.Abs(result.Slope+1.2) > 0.4 {
				t.Errorf("race %d: slope %.2f, want -1.2", seed, result.Slope)
			}
		}
	}
	t.Logf("within 3 %% of the best: %d of %d, and %d where the neighbour is left in; gains are off by %.1f and %.1f %%; %d intervals cover the truth",
		near[0], races, near[1], 100*math.Sqrt(off[0]), 100*math.Sqrt(off[1]), covered)
	if near[0] < near[1] || off[0] > off[1]/2 || covered < races*85/100 {
		t.Error("the neighbour is not taken out")
	}
}

// Without withheld time, figures equal the measured ones to the last digit. If the same was
// withheld from all, they are equal within rounding.
func TestFiguresStayWithoutOthers(t *testing.T) {
	t.Parallel()
	for _, withheld := range []float64{0, 0.3} {
		r := New(minilm(20*time.Second, 1))
		m := newMachine(1, shared)
		for a := r.Ask(); !a.Stop; a = r.Ask() {
			o := m.measure(a.Trial)
			o.Withheld = withheld
			r.Tell(o)
		}
		for _, h := range r.heats {
			for _, e := range h.entrants {
				for k, x := range e.measured {
					if withheld == 0 && (e.values[k] != x || e.scores[k] != x) || math.Abs(e.values[k]/x-1) > 1e-9 {
						t.Errorf("%g was measured, %g counts as %g", x, e.values[k], e.scores[k])
					}
				}
			}
		}
	}
}

// A latency that a neighbour doubled is halved, and its score doubled. Computed by hand, with a
// slope of −1 around 0.
func TestLatenciesAreCorrected(t *testing.T) {
	t.Parallel()
	e := &entrant{}
	e.tell(Outcome{Value: 0.004, Withheld: math.Ln2}, false)
	e.correct(e.variate, false)
	if e.values[0] != 0.004 || e.scores[0] != 250 {
		t.Errorf("%g, %g without a slope", e.values[0], e.scores[0])
	}
	e.variate.Slope, e.variate.Variance = -1, 0.25
	e.correct(e.variate, false)
	if math.Abs(e.values[0]-0.002) > 1e-12 || math.Abs(e.scores[0]-500) > 1e-9 || e.measured[0] != 0.004 {
		t.Errorf("%g, %g; want 0.002 and 500", e.values[0], e.scores[0])
	}
	other := &entrant{}
	other.tell(Outcome{Value: 0.004}, false)
	if got := e.doubt(other); math.Abs(got-0.25*math.Ln2*math.Ln2) > 1e-12 || math.Abs(e.ownDoubt()-got) > 1e-12 {
		t.Errorf("doubt %g, of its own level %g", got, e.ownDoubt())
	}
}
