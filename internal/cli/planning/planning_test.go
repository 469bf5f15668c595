package planning

import (
	"strings"
	"testing"
	"time"

	"tuner/capacity"
	"tuner/measure"
	"tuner/search"
)

// asked is a result whose question has limits, in pairs of a metric and its most.
func asked(path string, limits ...any) named {
	r := named{path: path, name: path}
	for i := 0; i < len(limits); i += 2 {
		most := limits[i+1].(float64)
		r.result.Goal.Constraints = append(r.result.Goal.Constraints, search.Constraint{Metric: limits[i].(measure.Metric), Max: &most})
	}
	return r
}

// A plan keeps one limit on a percentile. With several it is the user who says which: none is dropped.
func TestLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		p99     time.Duration
		results []named
		limit   time.Duration
		share   float64
		problem string
	}{
		"of the question":      {0, []named{asked("a", measure.Memory, 1e9, measure.LatencyP95, 0.05)}, 50 * time.Millisecond, 0.95, ""},
		"of all questions":     {0, []named{asked("a", measure.LatencyP99, 0.05), asked("b", measure.LatencyP99, 0.05)}, 50 * time.Millisecond, 0.99, ""},
		"of the other one":     {0, []named{asked("a"), asked("b", measure.LatencyP99, 0.05)}, 50 * time.Millisecond, 0.99, ""},
		"two percentiles":      {0, []named{asked("a", measure.LatencyP50, 0.01, measure.LatencyP99, 0.0303)}, 0, 0, "latency_p50 ≤ 10ms and latency_p99 ≤ 30.3ms, and a plan keeps one: say with --p99"},
		"two questions":        {0, []named{asked("a", measure.LatencyP99, 0.05), asked("b", measure.LatencyP99, 0.04)}, 0, 0, "latency_p99 ≤ 50ms and latency_p99 ≤ 40ms"},
		"none":                 {0, []named{asked("a", measure.Memory, 1e9)}, 0, 0, "a has no limit on a percentile of the latency"},
		"the user's, of three": {20 * time.Millisecond, []named{asked("a", measure.LatencyP50, 0.01, measure.LatencyP95, 0.02, measure.LatencyP99, 0.03)}, 20 * time.Millisecond, 0.99, ""},
	} {
		var q capacity.Question
		err := (&Options{P99: c.p99}).addLimit(&q, c.results)
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: %v, want %s", name, err, c.problem)
			}
		} else if err != nil || q.Limit != c.limit || q.Share != c.share {
			t.Errorf("%s: %v of %g, %v; want %v of %g", name, q.Limit, q.Share, err, c.limit, c.share)
		}
	}
}
