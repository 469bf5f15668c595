// Package service holds the batch times of an engine process, as measured by service trials.
//
// It is the first part of the guided search: service trials come in, and a service curve goes out
// to package predict. It chooses no trial and knows no load.
package service

import (
	"math"
	"slices"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/tuning"
	"tuner/search/queuesim"
)

// Times is the time of a batch by its size. The zero value has no data.
type Times struct {
	sizes        []int     // ascending
	seconds      []float64 // of a batch of each size
	spreads      []float64 // standard deviation of the logarithm of a batch's time
	overhead     float64   // s per request of the smallest size, outside instance and queue
	largestAsked int       // of all trials
	trials       int
	isInherited  bool // from an earlier campaign

	// of a mix: the times above are means over its kinds, those of the anchors are here
	anchors Anchors
	kinds   []Times
}

// Of returns times without data for requests of the measured kinds.
func Of(a Anchors) Times { return Times{anchors: a} }

// New returns the result of trials of an instance: the times of batches of ascending sizes, and the
// standard deviations of their logarithms.
func New(sizes []int, seconds, spreads []float64, trials int) Times {
	return Times{sizes: sizes, seconds: seconds, spreads: spreads, trials: trials}
}

// IsKnown reports whether any size was measured.
func (t *Times) IsKnown() bool { return len(t.sizes) > 0 }

// IsInherited reports whether an earlier campaign measured them.
func (t *Times) IsInherited() bool { return t.isInherited }

// Trials returns the number of service trials behind them.
func (t *Times) Trials() int { return t.trials }

// LargestAsked returns the largest size that a trial requested, even if it was not measured.
func (t *Times) LargestAsked() int { return t.largestAsked }

// Has reports whether a size was measured.
func (t *Times) Has(size int) bool { return slices.Contains(t.sizes, size) }

// Largest returns the largest measured size; 0 without one.
func (t *Times) Largest() int {
	if len(t.sizes) == 0 {
		return 0
	}
	return t.sizes[len(t.sizes)-1]
}

// Record adds a service trial. If a size was measured before, the shorter time counts, since
// disturbances only make a window longer. If the trial measures times of an earlier campaign again,
// it replaces them.
func (t *Times) Record(e search.Event) {
	if t.isInherited && e.Trial.Sizes[0] <= t.sizes[0] && slices.Max(e.Trial.Sizes) > t.Largest() {
		*t = Of(t.anchors)
	}
	t.trials++
	t.largestAsked = max(t.largestAsked, slices.Max(e.Trial.Sizes))
	if len(e.Trial.Kinds) > 0 {
		t.recordKinds(e)
		return
	}
	for i, w := range e.Measurement.Windows {
		if size, ok := e.Trial.SizeOf(i); ok {
			t.recordWindow(size, w)
		}
	}
}

func (t *Times) recordWindow(size int, w measure.Window) {
	seconds, spread, overhead, ok := ofWindow(w, size)
	if !ok {
		return
	}
	at, known := slices.BinarySearch(t.sizes, size)
	switch {
	case !known:
		t.sizes = slices.Insert(t.sizes, at, size)
		t.seconds = slices.Insert(t.seconds, at, seconds)
		t.spreads = slices.Insert(t.spreads, at, spread)
	case seconds < t.seconds[at]:
		t.seconds[at], t.spreads[at] = seconds, spread
	}
	if at == 0 {
		t.overhead = overhead
	}
}

// Inherit copies the times of an earlier campaign if there are none yet, and reports whether it
// did.
func (t *Times) Inherit(then Times) bool {
	if t.IsKnown() || !then.IsKnown() {
		return false
	}
	*t, t.isInherited = then, true
	return true
}

// Suspects lists the sizes whose times contradict a neighbour's, of any kind.
func (t *Times) Suspects(n tuning.Service) []int {
	var sizes []int
	for k := range t.kinds {
		sizes = append(sizes, t.kinds[k].Suspects(n)...)
	}
	if t.kinds != nil {
		slices.Sort(sizes)
		return slices.Compact(sizes)
	}
	for i := 1; i < len(t.sizes); i++ {
		factor, larger := t.seconds[i]/t.seconds[i-1], float64(t.sizes[i])/float64(t.sizes[i-1])
		if factor >= 1/n.Margin && factor <= larger*n.Margin {
			continue
		}
		for _, size := range t.sizes[i-1 : i+1] {
			if !slices.Contains(sizes, size) {
				sizes = append(sizes, size)
			}
		}
	}
	return sizes
}

// leastSpread is the least standard deviation of the logarithm of a batch's time. No real server has
// less, and without any the simulation falls into an arbitrary cycle (queuesim.ServiceCurve). Between
// 0.01 and 0.1 it hardly matters.
const leastSpread = 0.03

// Curve returns the service curve of one instance, with a least spread.
func (t *Times) Curve() queuesim.ServiceCurve {
	c := queuesim.ServiceCurve{Sizes: t.sizes, Alone: t.seconds, Overhead: t.overhead}
	spreads := slices.Sorted(slices.Values(t.spreads))
	c.Spread = max(spreads[len(spreads)/2], leastSpread)
	return c
}

// ofWindow returns the times of a batch of a size from one window of a service trial. They are the
// seconds in the instance, the spread of their logarithm, and the seconds of a request elsewhere.
// Without the server's statistics all of the latency counts as service.
func ofWindow(w measure.Window, size int) (seconds, spread, overhead float64, ok bool) {
	m := measure.Measurement{Windows: []measure.Window{w}}
	latency, ok := m.Estimate(measure.LatencyAvg)
	if !ok || latency.Value <= 0 {
		return 0, 0, 0, false
	}
	ratio := m.Std().Seconds() / latency.Value
	spread = math.Sqrt(math.Log1p(ratio * ratio))
	s := w.Server
	if s.Requests == 0 || s.ComputeInfer <= 0 {
		return latency.Value, spread, 0, true
	}
	perRequest := func(d time.Duration) float64 { return d.Seconds() / float64(s.Requests) }
	infer := perRequest(s.ComputeInfer)
	for _, b := range s.Batches {
		if b.Size == size && b.Executions > 0 {
			infer = b.ComputeInfer.Seconds() / float64(b.Executions)
		}
	}
	seconds = infer + perRequest(s.ComputeInput) + perRequest(s.ComputeOutput)
	return seconds, spread, max(latency.Value-seconds-perRequest(s.Queue), 0), true
}

// Refused returns the smallest size of a service trial from which on no request got an answer;
// false if the largest size got one. A smaller size without an answer is chance. Sizes that were
// omitted without a failure took too long.
func Refused(e search.Event) (size int, found bool) {
	windows, kinds := e.Measurement.Windows, max(len(e.Trial.Kinds), 1)
	for i := len(e.Trial.Sizes) - 1; i >= 0; i-- {
		of := windows[min(i*kinds, len(windows)):min((i+1)*kinds, len(windows))]
		switch {
		case len(of) < kinds && e.Measurement.Failure == nil:
			continue
		case len(of) == kinds && !slices.ContainsFunc(of, func(w measure.Window) bool { return w.Requests == 0 }):
			return size, found
		}
		size, found = e.Trial.Sizes[i], true
	}
	return size, found
}

// Sizes returns the client batches of a service trial: from the requests' own in powers of two to
// the largest batch. Of several kinds they are powers of four, since each has a window for each
// size.
func (a Anchors) Sizes(client, maxBatch int) []int {
	var sizes []int
	factor := 2
	if len(a.Kinds) > 1 {
		factor = 4
	}
	for size := client; size < maxBatch; size *= factor {
		sizes = append(sizes, size)
	}
	return append(sizes, max(maxBatch, client))
}

// VarianceBeyond returns the variance of the logarithm of a batch's time if only sizes up to the
// last one were measured. The standard deviation grows by `deviation` for each doubling.
func VarianceBeyond(batch, last int, deviation float64) float64 {
	if batch <= last || last == 0 {
		return 0
	}
	return VarianceOf(math.Log2(float64(batch)/float64(last)), deviation)
}

// VarianceOf is VarianceBeyond by the number of doublings.
func VarianceOf(doublings, deviation float64) float64 {
	all := deviation * doublings
	return all * all
}
