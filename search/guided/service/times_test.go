package service

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/tuning"
)

// window returns one in which a batch takes the given seconds in an instance, and 0.3 ms elsewhere.
func window(size int, seconds float64) measure.Window {
	const requests = 50
	latency := measure.NewHistogram(slices.Repeat([]time.Duration{time.Duration((seconds + 0.0003) * 1e9)}, requests))
	return measure.Window{
		Duration: 200 * time.Millisecond, Requests: requests, Inferences: requests * size,
		Sub: []measure.SubWindow{{Requests: requests, Latency: latency}},
		Server: measure.ServerStats{Requests: requests, Inferences: requests * size, Executions: requests,
			ComputeInfer: time.Duration(seconds * requests * 1e9)},
	}
}

func TestServiceTimesOfWindows(t *testing.T) {
	t.Parallel()
	latency := measure.NewHistogram(slices.Repeat([]time.Duration{12 * time.Millisecond}, 100))
	w := measure.Window{Sub: []measure.SubWindow{{Requests: 100, Latency: latency}}, Server: measure.ServerStats{
		Requests: 100, Inferences: 400, Executions: 98,
		Queue: 100 * time.Millisecond, ComputeInput: 50 * time.Millisecond, ComputeOutput: 50 * time.Millisecond, ComputeInfer: time.Second,
		Batches: []measure.BatchStat{{Size: 4, Executions: 96, ComputeInfer: 768 * time.Millisecond}, {Size: 8, Executions: 2, ComputeInfer: 32 * time.Millisecond}},
	}}
	// 768 ms / 96 = 8 ms for a batch of 4, and 0.5 ms each for input and output. 12 − 9 − 1 of
	// queue = 2 ms elsewhere.
	seconds, _, overhead, ok := ofWindow(w, 4)
	if !ok || math.Abs(seconds-0.009) > 1e-9 || math.Abs(overhead-0.002) > 2e-5 {
		t.Errorf("a batch takes %v s and %v s elsewhere (%v), want 0.009 and 0.002", seconds, overhead, ok)
	}
	w.Server = measure.ServerStats{}
	if seconds, _, overhead, _ = ofWindow(w, 4); math.Abs(seconds-0.012) > 2e-5 || overhead != 0 {
		t.Errorf("without the server's statistics a batch takes %v s and %v s elsewhere, want 0.012 and 0", seconds, overhead)
	}
	if _, _, _, ok = ofWindow(measure.Window{}, 4); ok {
		t.Error("an empty window tells a time")
	}
}

func TestSuspects(t *testing.T) {
	t.Parallel()
	check := func(times []float64, want []int) {
		t.Helper()
		s := New([]int{1, 2, 4, 8}, times, nil, 1)
		if diff := cmp.Diff(want, s.Suspects(tuning.Default().Service)); diff != "" {
			t.Errorf("of the times %v (-want +got):\n%s", times, diff)
		}
	}
	check([]float64{1, 2, 4, 8}, nil)
	check([]float64{1, 1, 1, 1}, nil)
	check([]float64{1, 1.2, 4, 4.1}, []int{2, 4}) // more than twice as long
	check([]float64{1, 2, 1.5, 3}, []int{2, 4})   // shorter
}

func TestRepeatedServiceTimesKeepTheShorter(t *testing.T) {
	t.Parallel()
	event := func(sizes []int, seconds ...float64) search.Event {
		e := search.Event{Trial: search.Trial{Sizes: sizes}}
		for i, s := range seconds {
			e.Measurement.Windows = append(e.Measurement.Windows, window(sizes[i], s))
		}
		return e
	}
	var s Times
	s.Record(event([]int{1, 2, 4}, 0.001, 0.009, 0.003))
	s.Record(event([]int{2, 4}, 0.002, 0.004))
	if diff := cmp.Diff([]float64{0.001, 0.002, 0.003}, s.seconds); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
}

// A curve of an earlier campaign is discarded only if a trial measures all of it again, and beyond.
func TestInheritedTimesAreReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sizes   []int
		largest int
		isOld   bool
	}{{[]int{1, 2, 4, 8}, 8, false}, {[]int{1, 2}, 4, true}, {[]int{8}, 8, true}} {
		var s Times
		if s.Inherit(New([]int{1, 2, 4}, []float64{0.001, 0.002, 0.003}, []float64{0.1, 0.1, 0.1}, 1)); !s.IsInherited() {
			t.Fatal("nothing was inherited")
		}
		e := search.Event{Trial: search.Trial{Sizes: c.sizes}}
		for _, size := range c.sizes {
			e.Measurement.Windows = append(e.Measurement.Windows, window(size, 0.01))
		}
		s.Record(e)
		if s.Largest() != c.largest || s.IsInherited() != c.isOld {
			t.Errorf("after %v the curve goes up to %d and is old: %v, want %d, %v", c.sizes, s.Largest(), s.IsInherited(), c.largest, c.isOld)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	check := func(client, most int, want ...int) {
		t.Helper()
		if diff := cmp.Diff(want, Anchors{}.Sizes(client, most)); diff != "" {
			t.Errorf("of client batches of %d up to %d (-want +got):\n%s", client, most, diff)
		}
	}
	check(1, 1, 1)
	check(1, 8, 1, 2, 4, 8)
	check(1, 12, 1, 2, 4, 8, 12)
	check(4, 32, 4, 8, 16, 32)
	check(3, 8, 3, 6, 8)
}

// Sizes that were omitted, and one without an answer by chance, are not refused: they rule out no
// larger batch.
func TestRefusedSizes(t *testing.T) {
	t.Parallel()
	failure := &measure.Failure{Stage: measure.StageHang, Reason: "no answer"}
	for name, c := range map[string]struct {
		requests []int
		failure  *measure.Failure
		want     int // 0: none
	}{
		"all answered":            {[]int{9, 9, 9, 9}, nil, 0},
		"broke off":               {[]int{9, 9}, failure, 4},
		"broke off at the first":  {nil, failure, 1},
		"left out":                {[]int{9, 9}, nil, 0},
		"the largest got none":    {[]int{9, 9, 9, 0}, nil, 8},
		"one was unlucky":         {[]int{0, 9, 9, 9}, nil, 0},
		"unlucky, and left out":   {[]int{9, 0}, nil, 2},
		"the largest two refused": {[]int{9, 0, 9, 0}, nil, 8},
	} {
		e := search.Event{Trial: search.Trial{Sizes: []int{1, 2, 4, 8}}, Measurement: measure.Measurement{Failure: c.failure}}
		for _, n := range c.requests {
			e.Measurement.Windows = append(e.Measurement.Windows, measure.Window{Requests: n})
		}
		size, found := Refused(e)
		if size != c.want || found != (c.want > 0) {
			t.Errorf("%s: %d, %v, want %d", name, size, found, c.want)
		}
	}
}

// The deviation of a size beyond the last one grows by one unit for each doubling.
func TestVarianceBeyond(t *testing.T) {
	t.Parallel()
	for batch, doublings := range map[int]float64{4: 0, 8: 0, 12: math.Log2(1.5), 16: 1, 32: 2} {
		want := math.Pow(0.2*doublings, 2)
		if got := VarianceBeyond(batch, 8, 0.2); math.Abs(got-want) > 1e-12 {
			t.Errorf("a batch of %d varies by %g, want %g", batch, got, want)
		}
	}
	if got := VarianceBeyond(8, 0, 0.2); got != 0 {
		t.Errorf("without any size a batch of 8 varies by %g", got)
	}
}
