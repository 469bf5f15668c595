package planning

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/capacity"
	"tuner/measure"
	"tuner/report/result"
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

// Configurations are numbered within each campaign. A plan is of the result with its figures, or of
// that with its name and setup.
func TestPlanIsOfItsResult(t *testing.T) {
	t.Parallel()
	setup := func(instances int) result.Setup { return result.Setup{Precision: "int8", Instances: &instances} }
	load := measure.Load{Concurrency: 8, BatchSize: 1}
	p := capacity.Plan{
		Best:           capacity.Fleet{Type: "c7g", Configuration: "config_5", Setup: "2 × int8"},
		Configurations: []capacity.Candidate{{Type: "c7g", Configuration: "config_5", Checks: []capacity.Check{{Load: load, Measured: 0.012346}}}},
	}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		called    string // the result's folder
		kind      string // as the plan calls its own
		number    string
		instances int
		p99       float64
		want      bool
	}{
		"its result":                     {"c7g", "c7g", "config_5", 2, 0.0123456789, true},
		"in a folder that was moved":     {"moved", "c7g", "config_5", 2, 0.0123456789, true},
		"a campaign that was resumed":    {"c7g", "c7g", "config_5", 2, 0.0125, true},
		"one of a path":                  {"c7g", dir + "/c7g", "config_5", 2, 0.0125, true},
		"one of another path":            {"c7g", dir + "/other/c7g", "config_5", 2, 0.0125, false},
		"another campaign in the folder": {"c7g", "c7g", "config_5", 4, 0.0125, false},
		"another type":                   {"c7i", "c7g", "config_5", 2, 0.0125, false},
		"no such configuration":          {"c7g", "c7g", "config_6", 2, 0.0123456789, false},
	} {
		r := named{name: c.called, path: c.called, file: filepath.Join(dir, c.called, result.FileName), result: result.Result{Configurations: []result.Configuration{{
			Name: c.number, Setup: setup(c.instances),
			Points: []result.Point{{Load: load, Sample: result.Sample{Values: map[measure.Metric]result.Estimate{measure.LatencyP99: {Value: c.p99}}}}},
		}}}}
		asked := p
		asked.Best.Type = c.kind
		if got := isOf(asked, r); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
