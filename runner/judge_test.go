package runner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
)

func TestWindowLength(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		p99        time.Duration
		executions float64 // per second
		instances  int
		want       time.Duration
		inTurn     time.Duration // length in a turn
	}{
		"as asked":               {50 * ms, 100, 2, time.Second, time.Second},
		"5 of the slowest":       {300 * ms, 100, 1, 1500 * ms, time.Second},
		"30 batches":             {50 * ms, 20, 1, 1500 * ms, time.Second},
		"30 batches by instance": {50 * ms, 40, 2, 1500 * ms, time.Second},
		"three times at most":    {time.Second, 1, 4, 3 * time.Second, 6 * time.Second},
		"2 of the slowest":       {800 * ms, 100, 1, 3 * time.Second, 1600 * ms},
		"2 of them in any case":  {6 * time.Second, 1, 1, 12 * time.Second, 12 * time.Second},
		"2 of them, 6 s in turn": {2 * time.Second, 1, 4, 4 * time.Second, 6 * time.Second},
		"without statistics":     {50 * ms, 0, 1, time.Second, time.Second},
	} {
		job := Job{Window: time.Second, Instances: c.instances}
		if got := windowNeed.length(job)(c.p99, c.executions); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got := turnNeed.length(job)(c.p99, c.executions); got != c.inTurn {
			t.Errorf("%s, in turn: %v, want %v", name, got, c.inTurn)
		}
	}
}

func TestRamp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		concurrency, rows, maxBatch, ramped int
		levels                              []int
		largest                             int
	}{
		"powers of two and its own":     {6, 1, 8, 0, []int{1, 2, 4, 6}, 6},
		"up to the largest batch":       {64, 1, 4, 0, []int{1, 2, 4}, 4},
		"only what is new":              {64, 1, 16, 4, []int{8, 16}, 16},
		"nothing new":                   {8, 1, 8, 8, nil, 8},
		"without batching":              {8, 1, 0, 0, []int{1}, 1},
		"client batches":                {8, 4, 16, 0, []int{1, 2, 4}, 16},
		"client batch without batching": {8, 4, 0, 0, []int{1}, 4},
	} {
		j := Job{MaxBatch: c.maxBatch, Load: measure.Load{Concurrency: c.concurrency, BatchSize: c.rows}}
		levels, largest := ramp(j, c.ramped)
		if diff := cmp.Diff(c.levels, levels); diff != "" || largest != c.largest {
			t.Errorf("%s: %v up to %d, want %v up to %d", name, levels, largest, c.levels, c.largest)
		}
	}
}

func TestFlagFew(t *testing.T) {
	t.Parallel()
	// The 99th percentile needs 368 requests, the 90th 36.
	for _, c := range []struct {
		requests int
		metrics  []measure.Metric
		few      bool
	}{
		{1, nil, false},
		{184, []measure.Metric{measure.LatencyP99}, false},
		{183, []measure.Metric{measure.LatencyP99}, true},
		{183, []measure.Metric{measure.LatencyP90, measure.Throughput}, false},
	} {
		windows := Job{Percentiles: c.metrics}.flagFew([]measure.Window{{Requests: c.requests}, {Requests: c.requests}})
		if few := len(windows[0].Flags) > 0 && len(windows[1].Flags) > 0; few != c.few {
			t.Errorf("2 × %d requests for %v: few %t, want %t", c.requests, c.metrics, few, c.few)
		}
	}
}
