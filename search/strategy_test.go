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
		"nothing so far": {worth[1:], window(0, 0), false}, // a latency that is not known misses nothing
		"no bounds":      {nil, window(1, time.Second), false},
	} {
		if got := (search.Trial{Worth: c.worth}).IsFutile(c.window); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
