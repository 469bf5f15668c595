package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"tuner/measure"
)

// ended makes a record of a closed loop.
func ended(sent, end time.Duration) record {
	return record{ready: sent - ms, sent: sent, end: end, responses: 1}
}

func TestSlicesOfAGrowingWindowAreJoined(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 9, 20, 21, 333, 10_000} {
		var s store
		w := newWindow(time.Second, 0, false, &s)
		for i := range n {
			end := time.Second + time.Duration(i)*ms
			w.addInFlight(ended(end-10*ms, end))
			w.addEnded(ended(end-10*ms, end))
		}
		w.to = time.Second + time.Duration(n)*ms
		got := w.close(1, nil)
		checkParts(t, got)
		if len(got.Sub) > 20 || n >= 20 && len(got.Sub) < 10 {
			t.Errorf("%d ms are in %d parts", n, len(got.Sub))
		}
		var sum time.Duration
		for i, sub := range got.Sub {
			sum += sub.Sum
			// One request per ms.
			if want := int(sub.Duration / ms); sub.Requests != want || i < len(got.Sub)-1 && sub.Duration != got.Sub[0].Duration {
				t.Errorf("part %d has %d requests in %v", i, sub.Requests, sub.Duration)
			}
		}
		if sum != time.Duration(n)*10*ms || got.SendDelay.Count() != n {
			t.Errorf("latencies add up to %v, %d send delays", sum, got.SendDelay.Count())
		}
		if len(s.free) == 0 || len(s.free) > mostSubWindows+1 {
			t.Errorf("%d recorders came back", len(s.free))
		}
	}
}

// A request in flight at an edge counts for the part within the window.
func TestInFlightCountsTheWindowsShare(t *testing.T) {
	t.Parallel()
	var s store
	w := newWindow(time.Second, time.Second, false, &s)
	w.addInFlight(ended(500*ms, 1500*ms)) // half a second within the window
	w.addInFlight(ended(1500*ms, 1750*ms))
	w.to = 2 * time.Second
	w.addInFlight(ended(1900*ms, 2500*ms)) // 0.1 s within the window, unfinished
	w.addInFlight(ended(2100*ms, 2500*ms))
	got := w.close(1, []time.Duration{900 * ms, 1800 * ms}) // 1 s and 0.2 s within the window
	if want := 0.5 + 0.25 + 0.1 + 1 + 0.2; math.Abs(got.InFlight-want) > 1e-9 {
		t.Errorf("%v in flight, want %v", got.InFlight, want)
	}
	if w.unfinished != 1 || w.oldest != 1900*ms {
		t.Errorf("%d unfinished, the first since %v", w.unfinished, w.oldest)
	}
	if len(got.Sub) != 10 {
		t.Errorf("%d parts", len(got.Sub))
	}
}

func TestWarmUpBinsKeepEverything(t *testing.T) {
	t.Parallel()
	w := newWarmUp(time.Second)
	const n = 100_000
	for i := range n {
		latency := 10 * ms
		if i < n/5 { // a cold start
			latency = 100 * ms
		}
		w.addLatency(time.Second+time.Duration(i)*ms/10, latency)
	}
	means, mean := w.latencies()
	if len(means) > mostBins || len(means) < mostBins/2 {
		t.Errorf("%d bins", len(means))
	}
	if math.Abs(mean-0.028) > 1e-9 || math.Abs(means[0]-0.1) > 1e-9 || math.Abs(means[len(means)-1]-0.01) > 1e-9 {
		t.Errorf("mean %v, bins from %v to %v", mean, means[0], means[len(means)-1])
	}
	if p99 := w.quantile(0.99); p99 > 11*ms {
		t.Errorf("p99 of the later part is %v: there is something cold in it", p99)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	histogram := func(n int, d time.Duration) measure.Histogram {
		return measure.NewHistogram(slices.Repeat([]time.Duration{d}, n))
	}
	// 100 requests of 10 ms in a second.
	window := func(spoil func(*measure.Window)) measure.Window {
		w := measure.Window{Duration: time.Second, Requests: 100, Scheduled: 100, InFlight: 1, SendDelay: histogram(100, 2*time.Microsecond)}
		for range 10 {
			w.Sub = append(w.Sub, measure.SubWindow{Requests: 10, Duration: 100 * ms, Latency: histogram(10, 10*ms), Sum: 100 * ms})
		}
		spoil(&w)
		return w
	}
	for name, c := range map[string]struct {
		concurrency int
		spoil       func(*measure.Window)
		want        []measure.Flag
	}{
		"a good closed loop": {1, func(*measure.Window) {}, nil},
		"a good open loop":   {0, func(*measure.Window) {}, nil},
		"little":             {1, func(w *measure.Window) { w.InFlight = 0.96 }, []measure.Flag{measure.FlagLittle}},
		"not little":         {0, func(w *measure.Window) { w.InFlight = 0.5 }, nil},
		"errors":             {1, func(w *measure.Window) { w.Errors = 1 }, []measure.Flag{measure.FlagErrors}},
		"slow to send":       {1, func(w *measure.Window) { w.SendDelay = histogram(100, ms) }, []measure.Flag{measure.FlagSendDelay}},
		"just fast enough":   {1, func(w *measure.Window) { w.SendDelay = histogram(100, ms/2) }, nil},
		"late in the median": {0, func(w *measure.Window) { w.SendDelay = histogram(100, 110*time.Microsecond) }, []measure.Flag{measure.FlagLate}},
		"two late":           {0, func(w *measure.Window) { w.Late = 2 }, []measure.Flag{measure.FlagLate}},
		"one late":           {0, func(w *measure.Window) { w.Late = 1 }, nil},
		"dropped":            {0, func(w *measure.Window) { w.Scheduled, w.Dropped = 101, 1 }, []measure.Flag{measure.FlagDropped}},
		"backlog":            {0, func(w *measure.Window) { w.Scheduled = 130 }, []measure.Flag{measure.FlagBacklog}},
		"chance":             {0, func(w *measure.Window) { w.Scheduled = 115 }, nil},
	} {
		if got := flags([]measure.Window{window(c.spoil)}, c.concurrency, true); !slices.Equal(got, c.want) {
			t.Errorf("%s: flags %v, want %v", name, got, c.want)
		}
	}
	if got := flags([]measure.Window{window(func(*measure.Window) {})}, 1, false); !slices.Equal(got, []measure.Flag{measure.FlagUnsteady}) {
		t.Errorf("unsteady: flags %v", got)
	}
}

func TestCorrelatedRatesAreFlagged(t *testing.T) {
	t.Parallel()
	series := func(rate func(i int) int) []measure.Window {
		windows := make([]measure.Window, 5)
		for i := range 50 {
			w := &windows[i/10]
			w.Sub = append(w.Sub, measure.SubWindow{Requests: rate(i), Duration: 100 * ms})
		}
		return windows
	}
	for name, c := range map[string]struct {
		windows []measure.Window
		want    bool
	}{
		"slow waves":  {series(func(i int) int { return 100 + 10*(i/5%2) }), true},
		"alternating": {series(func(i int) int { return 100 + 10*(i%2) }), false},
		"constant":    {series(func(int) int { return 100 }), false},
		"too few":     {series(func(i int) int { return 100 + i })[:4], false},
	} {
		if got := isCorrelated(c.windows); got != c.want {
			t.Errorf("%s: correlated is %t", name, got)
		}
	}
}
