package main

import (
	"cmp"
	"math"
	"slices"

	"tuner/internal/testserver"
)

// truth holds the true figures of the requests that were answered in a program's windows.
type truth struct {
	rate      float64   // per second
	latencies []float64 // ascending, in s
	mean      float64   // of the latencies
	service   float64   // mean from the begin of the service to the answer, in s
}

// recorded returns the truth by the server's record: from the arrival of a request to its answer.
func recorded(entries []testserver.Entry, from, to int64) truth {
	return gather(entries, from, to, func(_ int, e testserver.Entry) int64 { return e.Written - e.Arrival })
}

// recursed returns the truth of one server and a queue, by Lindley's recursion on the recorded
// arrivals and service times. A request waits as long as its predecessor waited and was served,
// minus the time between their arrivals. A late answer, written after the end of its service, adds
// to its latency but not to the waits. The entries must reach back to a time when the queue was
// empty.
func recursed(entries []testserver.Entry, from, to int64) truth {
	entries = slices.SortedFunc(slices.Values(entries), func(a, b testserver.Entry) int { return cmp.Compare(a.Arrival, b.Arrival) })
	waits := make([]int64, len(entries))
	for i := 1; i < len(entries); i++ {
		waits[i] = max(0, waits[i-1]+entries[i-1].End-entries[i-1].Begin-(entries[i].Arrival-entries[i-1].Arrival))
	}
	return gather(entries, from, to, func(i int, e testserver.Entry) int64 { return waits[i] + e.Written - e.Begin })
}

// gather takes the latencies, in ns, of the requests that were answered from `from` until before
// `to`.
func gather(entries []testserver.Entry, from, to int64, latency func(i int, e testserver.Entry) int64) truth {
	var t truth
	for i, e := range entries {
		if e.Written < from || e.Written >= to {
			continue
		}
		l := float64(latency(i, e)) / 1e9
		t.latencies = append(t.latencies, l)
		t.mean += l
		t.service += float64(e.Written-e.Begin) / 1e9
	}
	n := float64(len(t.latencies))
	t.mean, t.service = t.mean/n, t.service/n
	t.rate = n / (float64(to-from) / 1e9)
	slices.Sort(t.latencies)
	return t
}

// quantile returns the range that a program may report as the q-quantile: the latencies of the rank
// ⌈q·n⌉ and of its neighbours. The programs have different rules for ranks, and count a request at
// an edge by its arrival at the client.
func (t truth) quantile(q float64) (lo, middle, hi float64) {
	n := len(t.latencies)
	if n == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	rank := min(max(int(math.Ceil(q*float64(n)))-1, 0), n-1)
	return t.latencies[max(rank-1, 0)], t.latencies[rank], t.latencies[min(rank+1, n-1)]
}

// The goal of accuracy: within a share of the truth or, for times, within a time in s.
const (
	closeShare = 0.01
	closeTime  = 100e-6
)

// figure is one reported figure beside the truth.
type figure struct {
	reported    float64
	lo, mid, hi float64 // the truth
	isTime      bool
}

// deviation returns the deviation of the report from the truth. It is 0 within the truth's range,
// and NaN without a truth.
func (f figure) deviation() float64 {
	switch {
	case math.IsNaN(f.mid):
		return f.mid
	case f.reported < f.lo:
		return f.reported - f.lo
	case f.reported > f.hi:
		return f.reported - f.hi
	default:
		return 0
	}
}

// isClose reports whether the goal is met.
func (f figure) isClose() bool {
	d := math.Abs(f.deviation())
	return d <= closeShare*f.mid || f.isTime && d <= closeTime
}

// exact returns a figure whose truth is one value.
func exact(reported, truth float64, isTime bool) figure {
	return figure{reported, truth, truth, truth, isTime}
}

// percentile returns a figure of a latency's percentile.
func percentile(reported float64, t truth, q float64) figure {
	lo, mid, hi := t.quantile(q)
	return figure{reported, lo, mid, hi, true}
}
