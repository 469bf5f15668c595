package search_test

import (
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

func TestFutileWindows(t *testing.T) {
	t.Parallel()
	least, most := 100.0, 0.05
	worth := []search.Constraint{{Metric: measure.Throughput, Min: &least}, {Metric: measure.LatencyP99, Max: &most}}
	window := func(requests int, latency time.Duration) measure.Window {
		w := measure.Window{Duration: time.Second, Requests: requests, Inferences: requests}
		if requests > 0 {
			w.Sub = []measure.SubWindow{{Requests: requests, Latency: measure.NewHistogram([]time.Duration{latency})}}
		}
		return w
	}
	for name, c := range map[string]struct {
		worth  []search.Constraint
		window measure.Window
		want   bool
	}{
		"good":           {worth, window(101, 40*time.Millisecond), false},
		"slow":           {worth, window(99, 40*time.Millisecond), true},
		"late":           {worth, window(101, 60*time.Millisecond), true},
		"nothing so far": {worth[1:], window(0, 0), false}, // an unknown latency misses nothing
		"no bounds":      {nil, window(1, time.Second), false},
	} {
		if got := (search.Trial{Worth: c.worth}).IsFutile(c.window); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The expected time of the next size continues the line of the last two. After 10 and 20 ms for
// batches of 1 and 2, it is 40 ms for 4 and 80 ms for 8.
func TestServiceTrialEndsBeforeWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		longest time.Duration
		times   []time.Duration
		want    bool
	}{
		"no end":                   {0, []time.Duration{time.Hour, 2 * time.Hour}, false},
		"nothing yet":              {ms, nil, false},
		"one size, short":          {10 * ms, []time.Duration{10 * ms}, false},
		"one size, too long":       {9 * ms, []time.Duration{10 * ms}, true},
		"the next one fits":        {40 * ms, []time.Duration{10 * ms, 20 * ms}, false},
		"the next one does not":    {39 * ms, []time.Duration{10 * ms, 20 * ms}, true},
		"later, it does not":       {79 * ms, []time.Duration{10 * ms, 20 * ms, 40 * ms}, true},
		"flat":                     {20 * ms, []time.Duration{20 * ms, 20 * ms}, false},
		"falling is taken as flat": {19 * ms, []time.Duration{30 * ms, 20 * ms}, true},
		"all are measured":         {ms, []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms}, false},
	} {
		trial := search.Trial{Sizes: []int{1, 2, 4, 8}, Longest: c.longest}
		if got := trial.EndsAfter(c.times); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
