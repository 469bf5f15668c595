package landscape

import (
	"math"
	"testing"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
)

// oracle claims the truth times its own factor, with a standard deviation.
type oracle struct {
	landscape         *Landscape
	claim             Claim
	factor, deviation float64
	asked             int
}

func (o *oracle) Claim() (Claim, bool) { return o.claim, o.claim.Throughput.Value > 0 }

func (o *oracle) Predict(c search.Candidate, load measure.Load) (Prediction, bool) {
	o.asked++
	p := o.landscape.Find(c, load.Level())
	e := estimate(p.Throughput*o.factor, o.deviation)
	return Prediction{Throughput: &e}, c.PoolKey() == candidate("2", "4").PoolKey()
}

// estimate returns a figure with the 95 % interval for a standard deviation of its logarithm.
func estimate(value, deviation float64) measure.Estimate {
	return measure.Estimate{Value: value, Lo: value * math.Exp(-stats.Half95*deviation), Hi: value * math.Exp(stats.Half95*deviation)}
}

func TestClaimsAreHeldAgainstTheTruth(t *testing.T) {
	t.Parallel()
	l := small().make()
	limit := Limit{"6.1 ms", 0.0061}
	now, long := l.judge(limit, 0.99), l.judge(limit, 1.05) // 6 ms are 6.06 ms now and 5.71 ms over long hours
	gain := func(x float64) *float64 { return &x }
	check := func(name string, c Claim, check func(Claims) bool) {
		t.Helper()
		o := &oracle{landscape: l, claim: c, factor: math.Exp(-0.3), deviation: 0.1}
		if got := l.examine(o, now, long, map[string]bool{}, 1); !check(got) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	best := Claim{Candidate: candidate("2", "4"), Level: 4, Throughput: estimate(2*2/0.006, 0.05), Feasible: 0.7, Gain: gain(0), IsOver: true}
	check("the best", best, func(c Claims) bool {
		return c.Value == Coverage{true, true} && c.Bound == Coverage{true, true} && c.IsOver && c.Kept == Kept{true, 0.7, [hours]bool{true, true}}
	})
	far := best
	far.Throughput = estimate(500, 0.05)
	check("an interval that is off", far, func(c Claims) bool { return c.Value == Coverage{true, false} })
	// Batches of 1 at 1 do 200/s within the limit. The best does 667/s, 3.33 times as many.
	second := best
	second.Candidate, second.Level = candidate("2", "1"), 1
	second.Gain = gain(2.2)
	check("a bound that does not hold", second, func(c Claims) bool { return c.Bound == Coverage{true, false} })
	second.Gain = gain(2.4)
	check("a bound that holds", second, func(c Claims) bool { return c.Bound == Coverage{true, true} })
	second.Gain = nil
	check("no bound", second, func(c Claims) bool { return !c.Bound.Stated })
	beyond := best
	beyond.Level = 16
	check("a best beyond the limit", beyond, func(c Claims) bool { return !c.Bound.Stated && c.Kept.True == [hours]bool{} })
	check("no claim", Claim{}, func(c Claims) bool { return c.Value == Coverage{} && !c.Kept.Stated && c.Throughput.Count > 0 })
	unlimited := l.judge(Limit{"none", math.Inf(1)}, 1)
	if got := l.examine(&oracle{landscape: l, claim: best, factor: 1, deviation: 0.1}, unlimited, unlimited, nil, 1); got.Kept.Stated {
		t.Errorf("a probability of keeping no limit: %+v", got.Kept)
	}
}

// Estimates that are three deviations too low have a misfit of 3. Measured cells, and cells without
// an estimate, do not count.
func TestUnmeasuredCellsAreExamined(t *testing.T) {
	t.Parallel()
	l := small().make()
	now := l.judge(Limit{"none", math.Inf(1)}, math.Exp(0.1))
	o := &oracle{landscape: l, factor: math.Exp(-0.2), deviation: 0.1}
	measured := map[string]bool{l.Find(candidate("2", "4"), 4).class: true}
	got := l.examine(o, now, now, measured, 1)
	// 6 of the 12 cells are in the pool of two instances, and one of them was measured.
	if got.Throughput.Count != 5 || !near(got.Throughput.RMS(), 3, 1e-9) || got.P99.Count != 0 || o.asked != 11 {
		t.Errorf("%+v after %d questions", got, o.asked)
	}
	// A truth with an error of 10 % √2 explains a part of the difference: 0.3 / √(0.1² + 0.1²).
	rough := *l
	rough.spread = spread{throughput: 0.1}
	if got := rough.examine(o, now, now, measured, 1); !near(got.Throughput.RMS(), 3/math.Sqrt2, 1e-9) {
		t.Errorf("rms of z is %g", got.Throughput.RMS())
	}
	if sum := got.Throughput.Add(Misfit{5, 0}); !near(sum.RMS(), 3/math.Sqrt2, 1e-9) || !math.IsNaN((Misfit{}).RMS()) {
		t.Errorf("joined: %g", sum.RMS())
	}
}

func TestSpreadIsThatOfVisits(t *testing.T) {
	t.Parallel()
	l, err := FromRecord(recording())
	if err != nil {
		t.Fatal(err)
	}
	// Visits have 950 and 1050/s, so their logarithms differ by 0.1: a deviation of 0.1/√2.
	if s := l.spread; !near(s.throughput, 0.1/math.Sqrt2, 0.05) || !near(s.p99, 0.1/math.Sqrt2, 0.05) {
		t.Errorf("spread is %+v", s)
	}
}
