package standings_test

import (
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/searchtest"
	"tuner/search/standings"
)

// More load changes a point's misses: it lowers the cost and raises all other metrics.
func TestPointsThatNeedMoreLoad(t *testing.T) {
	t.Parallel()
	least := 500.0
	trial := search.Trial{Load: measure.Load{Concurrency: 1, BatchSize: 1}, Windows: 1}
	measured := searchtest.Measured(trial, 400, 20*time.Millisecond)
	for name, c := range map[string]struct {
		constraint search.Constraint
		want       bool
	}{
		"too little throughput": {search.Constraint{Metric: measure.Throughput, Min: &least}, true},
		"too dear":              {searchtest.AtMost(measure.Cost, 0.2), true},
		"too slow":              {searchtest.AtMost(measure.LatencyP99, 0.001), false},
		"too large":             {searchtest.AtMost(measure.Memory, 1e6), false},
		"unknown":               {searchtest.AtMost(measure.Energy, 1), false},
		"none":                  {searchtest.AtMost(measure.LatencyP99, 1), false},
	} {
		goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.LatencyP99, Weight: 1}}}, Constraints: []search.Constraint{c.constraint}, Price: 0.36}
		if got := standings.Judge(goal, measure.Load{Concurrency: 1}, measured).Direction(); (got == standings.Higher) != c.want {
			t.Errorf("%s: needs more load: %t", name, !c.want)
		}
	}
}
