package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"tuner/measure"
)

// Expected values by hand. Two changes of 0.1 and 0.3 with variances of 0.01 and 0.04 have weights of 100 and 25:
// the mean is (10 + 7.5)/125 = 0.14, Q = 100·0.04² + 25·0.16² = 0.8, and χ² with one degree of freedom is
// beyond 0.8 with 2·Φ(−√0.8) = 0.3711. The variance is 1/125 + 0.002 = 0.01.
func TestCommonChangeByHand(t *testing.T) {
	t.Parallel()
	c, ok := commonOf(measure.Throughput, []shift{{0.1, 0.01, 0.002}, {0.3, 0.04, 0.001}})
	if !ok || c.Changes != 2 {
		t.Fatalf("%+v, %v", c, ok)
	}
	for name, v := range map[string][2]float64{
		"change": {c.Change.Value, math.Expm1(0.14)}, "low": {c.Change.Lo, math.Expm1(0.14 - 0.196)}, "high": {c.Change.Hi, math.Expm1(0.14 + 0.196)},
		"p": {c.PValue, 0.3711},
	} {
		if math.Abs(v[0]-v[1]) > 1e-4 {
			t.Errorf("%s: %v, want %v", name, v[0], v[1])
		}
	}
	if _, ok := commonOf(measure.Throughput, []shift{{0.1, 0.01, 0}}); ok {
		t.Error("one change has nothing in common with others")
	}
}

// A slower machine is one change for all. A configuration that changes alone is not explained by it.
func TestCommonChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		b        Run
		suffices bool
		want     Direction
	}{
		{"the same", run("b", 0.02, 100, 250, 180), true, NotShown},
		{"slower machine", run("b", 0.02, 85, 212, 153), true, Worse},
		{"one configuration is slower", run("b", 0.02, 100, 250, 120), false, Worse},
	} {
		p := Of([]Run{run("a", 0.02, 100, 250, 180), c.b}, 0.02).Pairs[0]
		if len(p.Common) != 2 {
			t.Fatalf("%s: %d metrics, want throughput and p99", c.name, len(p.Common))
		}
		for _, common := range p.Common {
			if common.Suffices() != c.suffices || common.Direction != c.want {
				t.Errorf("%s: %+v", c.name, common)
			}
		}
	}
}

// Campaigns of one server differ by a speed of any size and by the errors of their cells. In 5 % the
// changes are then said to differ among themselves.
func TestFalseDisagreement(t *testing.T) {
	t.Parallel()
	const campaigns, cells, half = 4000, 5, 0.03
	random := rand.New(rand.NewPCG(3, 4))
	simulated := func() Run {
		speed := 0.2 * random.NormFloat64()
		throughputs := make([]float64, cells)
		for i := range throughputs {
			throughputs[i] = 100 * math.Exp(speed+half/1.96*random.NormFloat64())
		}
		return run("x", half, throughputs...)
	}
	differ := 0
	for range campaigns {
		if !Of([]Run{simulated(), simulated()}, 0.02).Pairs[0].Common[0].Suffices() {
			differ++
		}
	}
	// standard error √(0.05·0.95/4000) = 0.34 %
	if rate := float64(differ) / campaigns; rate < 0.04 || rate > 0.06 {
		t.Errorf("%.2f %% of common changes are refuted", 100*rate)
	}
}
