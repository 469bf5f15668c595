package gate

import (
	"math"
	"testing"
	"time"

	"tuner/gate/decide"
	"tuner/measure"
)

// beside yields windows of 100 s on two cores. usable is the number of cores that the engine uses
// without a neighbour. neighbour returns the share of the machine that the neighbour takes in a
// window. The throughput follows from the remaining CPU time.
func beside(rate, usable float64, neighbour func(n int) float64) func(n int) measure.Window {
	return func(n int) measure.Window {
		taken := neighbour(n)
		got := min(usable, 2*(1-taken))
		inferences := int(100 * rate * got / usable * (1 + 0.005*math.Sin(float64(7*n))))
		return measure.Window{Duration: 100 * time.Second, Requests: inferences, Inferences: inferences, Cores: 2, Foreign: taken,
			EngineCPU: time.Duration(got * 100 * float64(time.Second))}
	}
}

// A neighbour is active in half of the candidate's windows and in none of the baseline's. It takes
// nearly half of the CPU time there. Both sides are equal.
func TestNeighbourOfOneSideIsTakenOut(t *testing.T) {
	t.Parallel()
	c := newContest(throughput())
	c.baseline.window = beside(200, 2, func(int) float64 { return 0 })
	c.candidate.window = beside(200, 2, func(n int) float64 { return 0.4 * float64(n%2) })
	o := c.run(t)
	if o.Verdict != decide.Pass || math.Abs(o.Standings[0].Value) > 0.01 {
		t.Fatalf("%s: %+v %q", o.Verdict, o.Standings[0], o.Reasons)
	}
	r := NewResult(Setup{}, o, nil, time.Time{}, "")
	// The mean is over all windows. A quarter of them lost 0.4.
	if r.Withheld.Seconds != 24000 || math.Abs(r.Withheld.Mean-0.1) > 1e-9 || math.Abs(r.Withheld.Most-0.4) > 1e-9 {
		t.Errorf("%+v", r.Withheld)
	}
}

// A candidate that lost one of its two threads is half as fast. A neighbour takes two fifths of the
// machine all the time. It takes nothing from the candidate, and a fifth from the baseline. The
// correction must not attribute the remaining difference to the neighbour.
func TestLostThreadsAreNoNeighbour(t *testing.T) {
	t.Parallel()
	c := newContest(throughput())
	c.baseline.window = beside(200, 2, func(int) float64 { return 0.4 })
	c.candidate.window = beside(100, 1, func(int) float64 { return 0.4 })
	if o := c.run(t); o.Verdict != decide.Fail || math.Abs(o.Standings[0].Value-math.Log(1.2)) > 0.03 {
		t.Errorf("%s: %+v, want a candidate that is slower by a sixth", o.Verdict, o.Standings)
	}
}

// At a request rate, the schedule decides how much is answered, not the withheld time.
func TestRateIsNotCorrected(t *testing.T) {
	t.Parallel()
	w := measure.Window{Duration: time.Second, Scheduled: 100, Requests: 100, Inferences: 100, Cores: 2, Foreign: 0.5, EngineCPU: time.Second}
	side := measure.Measurement{Windows: []measure.Window{w, w}}
	w.Foreign = 0
	v, ok := throughput().value(Pair{Baseline: measure.Measurement{Windows: []measure.Window{w, w}}, Candidate: side}, nil)
	if !ok || len(v.Withheld) != 1 || v.Withheld[0] != 0 {
		t.Errorf("%+v, %t", v, ok)
	}
}
