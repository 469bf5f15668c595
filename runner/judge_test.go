package runner

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/hostinfo"
	"tuner/measure"
)

func TestWindowLength(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		p99        time.Duration
		executions float64 // per second
		instances  int
		want       time.Duration
	}{
		"as asked":               {50 * ms, 100, 2, time.Second},
		"5 of the slowest":       {300 * ms, 100, 1, 1500 * ms},
		"30 batches":             {50 * ms, 20, 1, 1500 * ms},
		"30 batches by instance": {50 * ms, 40, 2, 1500 * ms},
		"three times at most":    {2 * time.Second, 1, 4, 3 * time.Second},
		"without statistics":     {50 * ms, 0, 1, time.Second},
	} {
		if got := windowLength(Job{Window: time.Second, Instances: c.instances}, c.p99, c.executions); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
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

func TestShares(t *testing.T) {
	t.Parallel()
	// Two cores for 1 s: 1.4 s busy, of which 0.8 s ours; 0.1 s stolen, 0.5 s idle.
	steal, foreign := shares(hostinfo.CPUUsage{Busy: 1400 * ms, Idle: 500 * ms, Steal: 100 * ms}, 800*ms)
	if steal != 0.05 || foreign < 0.299 || foreign > 0.301 {
		t.Errorf("steal %v, foreign %v, want 0.05 and 0.3", steal, foreign)
	}
	// Counters tick differently: ours may seem to exceed the machine's.
	if _, foreign := shares(hostinfo.CPUUsage{Busy: 10 * ms, Idle: 90 * ms}, 20*ms); foreign != 0 {
		t.Errorf("foreign %v, want 0", foreign)
	}
	if steal, foreign := shares(hostinfo.CPUUsage{}, 0); steal != 0 || foreign != 0 {
		t.Errorf("of no time: %v, %v", steal, foreign)
	}
}

func TestMachineFlags(t *testing.T) {
	t.Parallel()
	all := time.Duration(runtime.GOMAXPROCS(0)) * time.Second
	for name, c := range map[string]struct {
		w    measure.Window
		want []measure.Flag
	}{
		"good":       {measure.Window{ClientCPU: all / 2, Steal: 0.01, Foreign: 0.1}, nil},
		"client CPU": {measure.Window{ClientCPU: all * 9 / 10}, []measure.Flag{measure.FlagClientCPU}},
		"steal":      {measure.Window{Steal: 0.011}, []measure.Flag{measure.FlagSteal}},
		"foreign":    {measure.Window{Foreign: 0.11}, []measure.Flag{measure.FlagForeign}},
	} {
		c.w.Duration = time.Second
		if diff := cmp.Diff(c.want, machineFlags(c.w)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
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
		windows := flagFew([]measure.Window{{Requests: c.requests}, {Requests: c.requests}}, c.metrics)
		if few := len(windows[0].Flags) > 0 && len(windows[1].Flags) > 0; few != c.few {
			t.Errorf("2 × %d requests for %v: few %t, want %t", c.requests, c.metrics, few, c.few)
		}
	}
}

func TestBatchDelta(t *testing.T) {
	t.Parallel()
	stat := func(size, count int) api.BatchStatistics {
		return api.BatchStatistics{BatchSize: uint64(size), ComputeInfer: api.Duration{Count: uint64(count), NS: uint64(count) * 1000}}
	}
	got := batchDelta([]api.BatchStatistics{stat(1, 5), stat(4, 2)}, []api.BatchStatistics{stat(8, 3), stat(4, 6), stat(1, 5)})
	want := []measure.BatchStat{{Size: 4, Executions: 4, ComputeInfer: 4 * time.Microsecond}, {Size: 8, Executions: 3, ComputeInfer: 3 * time.Microsecond}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
