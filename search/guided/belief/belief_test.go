package belief

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/guided/pools"
	"tuner/search/guided/predict"
	"tuner/search/guided/tuning"
	"tuner/search/standings"
)

func atMost(m measure.Metric, limit float64) search.Constraint {
	return search.Constraint{Metric: m, Max: &limit}
}

// of returns beliefs for a goal, in a space without any pool.
func of(goal search.Goal) *Beliefs {
	s := search.Settings{Space: search.Space{Load: search.LoadAxis{Levels: []float64{1}, BatchSize: 1}}, Goal: goal}
	n, held := tuning.Default(), footprint.New(s.Space)
	p := pools.New(s.Space, standings.NewLedger(goal), s.Space.Candidates(), held, n)
	return New(s, p, predict.New(s, p, n), held, n)
}

func maximize(terms ...search.Term) search.Objective { return search.Objective{Terms: terms} }

// A faster machine has higher throughput and lower latencies, so the deviations add up for a goal
// on both. The errors of memory and energy are independent of that.
func TestVariancesOfAScore(t *testing.T) {
	t.Parallel()
	c := newCriteria(search.Goal{Objective: maximize(search.Term{Metric: measure.Throughput, Weight: 2}, search.Term{Metric: measure.LatencyP99, Weight: 1},
		search.Term{Metric: measure.Memory, Weight: 1}, search.Term{Metric: measure.Energy, Weight: 1})})
	for _, m := range c.metrics {
		m.isKnown = true
	}
	deviations := map[measure.Metric]float64{measure.Throughput: 0.1, measure.LatencyP99: 0.3, measure.Memory: 0.02, measure.Energy: 0.04}
	got := c.variances(func(k int) float64 { return deviations[c.metrics[k].name] * deviations[c.metrics[k].name] })
	if want := 0.5*0.5 + 0.04*0.04 + 0.02*0.02; math.Abs(got-want) > 1e-9 {
		t.Errorf("the variance is %.12f, want %.12f", got, want)
	}
}

// A belief whose mean is a limit keeps it with probability one half. One that is 1.645 deviations
// within keeps it with 0.95.
func TestSatisfaction(t *testing.T) {
	t.Parallel()
	limit := math.Log(0.05)
	for _, c := range []struct{ mean, want float64 }{{limit, 0.5}, {limit - 1.645*0.1, 0.95}, {limit + 1.645*0.1, 0.05}} {
		if got := satisfaction(atMost(measure.LatencyP99, 0.05), c.mean, 0.1); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("with the mean e^%.3f the limit is kept with %.4f, want %.2f", c.mean, got, c.want)
		}
	}
	if got := shortfall(atMost(measure.LatencyP99, 0.05), limit+0.2); math.Abs(got-0.2) > 1e-12 {
		t.Errorf("the shortfall is %v, want 0.2", got)
	}
}

// The bounds are those of tables of the χ² distribution for 0.02: 5.412, 9.837 and 21.161 for 1, 3 and 10 degrees
// of freedom.
func TestExceeds(t *testing.T) {
	t.Parallel()
	for freedom, bound := range map[float64]float64{1: 5.412, 3: 9.837, 10: 21.161} {
		const most = 0.09
		if exceeds(most*(bound-0.001), freedom, most, 0.02) || !exceeds(most*(bound+0.001), freedom, most, 0.02) {
			t.Errorf("with %g degrees of freedom the bound is not %g times the variance", freedom, bound)
		}
	}
}

// The bounds include a margin for the error of two fifths of a second. It is exceeded in 2 %, by 2.05 standard deviations.
func TestWhatAWindowMustShow(t *testing.T) {
	t.Parallel()
	limit := 0.020
	x := of(search.Goal{
		Objective:   maximize(search.Term{Metric: measure.Throughput, Weight: 2}),
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}, atMost(measure.Memory, 1e9)},
	})
	room := func(x *Beliefs, k int) float64 {
		return math.Exp(2.05374891063 * x.metrics[k].lookDeviation(time.Second))
	}
	next := Next{Window: time.Second, LaunchWindows: 1}
	x.Learn(next)
	got := x.WindowConstraints(2 * math.Log(500))
	if len(got) != 2 || got[0].Metric != measure.Throughput || got[1].Metric != measure.LatencyP99 {
		t.Fatalf("%+v", got)
	}
	least, most := *got[0].Min, *got[1].Max
	if math.Abs(least-500/room(x, 0)) > 1e-6 || got[0].Max != nil {
		t.Errorf("at least %g infer/s, want %g", least, 500/room(x, 0))
	}
	if math.Abs(most-0.020*room(x, 1)) > 1e-9 || got[1].Min != nil {
		t.Errorf("within %g s, want %g", most, 0.020*room(x, 1))
	}
	if limit != 0.020 {
		t.Errorf("the goal's own limit is %g now", limit)
	}
	if got := x.WindowConstraints(math.Inf(-1)); got != nil {
		t.Errorf("while nothing satisfies the constraints: %+v", got)
	}
	// A latency should be low. A window does not show the combined objective of several metrics.
	latency := search.Term{Metric: measure.LatencyAvg, Weight: 1}
	x = of(search.Goal{Objective: maximize(latency)})
	x.Learn(next)
	if got := x.WindowConstraints(-math.Log(0.010)); len(got) != 1 || got[0].Min != nil || math.Abs(*got[0].Max-0.010*room(x, 0)) > 1e-9 {
		t.Errorf("of the lowest latency: %+v", got)
	}
	x = of(search.Goal{Objective: maximize(latency, search.Term{Metric: measure.Throughput, Weight: 1})})
	x.Learn(next)
	if got := x.WindowConstraints(5); len(got) != 0 {
		t.Errorf("of two metrics: %+v", got)
	}
}
