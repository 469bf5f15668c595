package search_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/searchtest"
)

// measured returns 400 infer/s at a latency of 20 ms and 100 MB.
func measured() measure.Measurement {
	return searchtest.Measured(search.Trial{Windows: 1, Window: time.Second}, 400, 20*time.Millisecond)
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*max(math.Abs(a), math.Abs(b)) }

func TestScoreIsAWeightedSumOfLogarithms(t *testing.T) {
	t.Parallel()
	check := func(name string, want float64, terms ...search.Term) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := search.Goal{Objective: search.Objective{Terms: terms}}.Score(measured())
			if !ok || !near(got, want) {
				t.Errorf("score is %v, %t; want %v", got, ok, want)
			}
		})
	}
	throughput := search.Term{Metric: measure.Throughput, Weight: 1}
	check("higher is better", math.Log(400), throughput)
	check("lower is better", -math.Log(0.020), search.Term{Metric: measure.LatencyP99, Weight: 1})
	check("weights", 10*math.Log(400)-5*math.Log(100e6), search.Term{Metric: measure.Throughput, Weight: 10},
		search.Term{Metric: measure.Memory, Weight: 5})
}

func TestScoreNeedsEveryMetric(t *testing.T) {
	t.Parallel()
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.CPU, Weight: 1}}}}
	if score, ok := goal.Score(measured()); ok {
		t.Errorf("score without CPU time is %v", score)
	}
	goal.Objective.Terms[0].Metric = measure.Throughput
	failed := measured()
	failed.Failure = &measure.Failure{Stage: measure.StageCrash}
	idle := searchtest.Measured(search.Trial{Windows: 1}, 0, time.Second)
	for name, m := range map[string]measure.Measurement{"failed": failed, "no windows": {}, "zero throughput": idle} {
		if score, ok := goal.Score(m); ok {
			t.Errorf("%s: score is %v", name, score)
		}
	}
}

func TestGainIsTheWeightedGeometricMean(t *testing.T) {
	t.Parallel()
	// Weights 3 and 1: throughput × 1.2 and latency × 2 give (1.2³ / 2)^(1/4) − 1 = −3.6 %.
	o := search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 3}, {Metric: measure.LatencyP99, Weight: 1}}}
	from, to := 3*math.Log(100)-math.Log(0.01), 3*math.Log(120)-math.Log(0.02)
	if got, want := o.Gain(from, to), math.Pow(1.2*1.2*1.2/2, 0.25)-1; !near(got, want) {
		t.Errorf("gain is %v, want %v", got, want)
	}
}

// 400 infer/s are 1.44 million an hour. At 0.36 an hour, a million costs 0.25.
func TestCostTakesAPrice(t *testing.T) {
	t.Parallel()
	goal := search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Cost, Weight: 1}}},
		Constraints: []search.Constraint{searchtest.AtMost(measure.Cost, 0.2), searchtest.AtMost(measure.LatencyP99, 1)},
		Price:       0.36,
	}
	if e, ok := goal.Estimate(measured(), measure.Cost); !ok || !near(e.Value, 0.25) || e.Lo > e.Value || e.Hi < e.Value {
		t.Errorf("the cost is %+v, %t, want 0.25", e, ok)
	}
	if v, ok := goal.Value(measured(), measure.Cost); !ok || !near(v, 0.25) {
		t.Errorf("the cost is %v, %t, want 0.25", v, ok)
	}
	several := goal.Estimates(measured(), []measure.Metric{measure.Cost, measure.Throughput, measure.CPU})
	if len(several) != 2 || !near(several[measure.Cost].Value, 0.25) || !near(several[measure.Throughput].Value, 400) {
		t.Errorf("estimates are %+v, want cost and throughput: the CPU time is not known", several)
	}
	if score, ok := goal.Score(measured()); !ok || !near(score, -math.Log(0.25)) {
		t.Errorf("score is %v, %t, want ln 4", score, ok)
	}
	if misses := goal.Misses(measured()); len(misses) != 1 || misses[0].String() != "cost is 0.250 per million, 25 % above the limit of 0.200 per million" {
		t.Errorf("misses are %v", misses)
	}
	if got, want := goal.Metrics(), []measure.Metric{measure.Cost, measure.LatencyP99}; !slices.Equal(got, want) {
		t.Errorf("the goal has the metrics %v, want %v", got, want)
	}
	goal.Price = 0
	if score, ok := goal.Score(measured()); ok {
		t.Errorf("without a price the score is %v", score)
	}
	if misses := goal.Misses(measured()); len(misses) != 1 || misses[0].String() != "cost is unknown" {
		t.Errorf("without a price the misses are %v", misses)
	}
}

func TestMisses(t *testing.T) {
	t.Parallel()
	least := 500.0
	goal := func(c ...search.Constraint) search.Goal { return search.Goal{Constraints: c} }
	check := func(name string, g search.Goal, m measure.Measurement, want ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			misses := g.Misses(m)
			if diff := cmp.Diff(misses, g.MissesBy(m, g.Estimates(m, g.Metrics()))); diff != "" {
				t.Errorf("by estimates it misses others (-want +got):\n%s", diff)
			}
			if g.Satisfies(m) != (len(want) == 0) || len(misses) != len(want) {
				t.Fatalf("satisfies: %t, misses: %v; want %q", g.Satisfies(m), misses, want)
			}
			for i, miss := range misses {
				if miss.String() != want[i] {
					t.Errorf("miss is %q, want %q", miss, want[i])
				}
			}
		})
	}
	p99 := func(limit float64) search.Constraint { return searchtest.AtMost(measure.LatencyP99, limit) }
	failed := measured()
	failed.Failure = &measure.Failure{Stage: measure.StageHang}
	check("none", goal(), measured())
	check("within", goal(p99(0.021)), measured())
	check("maximum", goal(p99(0.016)), measured(), "latency_p99 is 20.0 ms, 25 % above the limit of 16.0 ms")
	check("minimum", goal(search.Constraint{Metric: measure.Throughput, Min: &least}), measured(),
		"throughput is 400.0 infer/s, 20 % below the least of 500.0 infer/s")
	check("unknown is missed", goal(searchtest.AtMost(measure.CPU, 1)), measured(), "cpu is unknown")
	check("all of them", goal(p99(0.016), searchtest.AtMost(measure.Memory, 50e6)), measured(),
		"latency_p99 is 20.0 ms, 25 % above the limit of 16.0 ms", "memory is 100 MB, 2.0 × the limit of 50 MB")
	check("failed", goal(p99(1)), failed, "latency_p99 is unknown")
	refusing := func(share float64) measure.Measurement { // of all requests
		m := measured()
		m.Windows = slices.Clone(m.Windows)
		for i, w := range m.Windows {
			m.Windows[i].Errors = int(share / (1 - share) * float64(w.Requests))
		}
		return m
	}
	check("few failed requests", goal(), refusing(0.009))
	check("many failed requests", goal(), refusing(0.2), "error_rate is 20.0 %, 20.0 × the limit of 1.0 %")
	if goal().Satisfies(failed) {
		t.Error("a failed trial satisfies a goal without constraints")
	}
}

// A goal has misses for figures without a score, and only for them.
func TestUnscored(t *testing.T) {
	t.Parallel()
	idle := searchtest.Measured(search.Trial{Windows: 1, Window: time.Second}, 0, time.Second)
	check := func(name string, m measure.Measurement, metric measure.Metric, want ...string) {
		t.Helper()
		goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: metric, Weight: 1}, {Metric: measure.Memory, Weight: 2}}}}
		var got []string
		for _, miss := range goal.Unscored(func(metric measure.Metric) (float64, bool) { return goal.Value(m, metric) }) {
			got = append(got, miss.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if _, ok := goal.Score(m); ok != (len(want) == 0) {
			t.Errorf("%s: there is a score: %t", name, ok)
		}
	}
	check("known", measured(), measure.Throughput)
	check("unknown", measured(), measure.CPU, "cpu is unknown")
	check("0", idle, measure.Throughput, "throughput is 0.0 infer/s, which has no score")
}
