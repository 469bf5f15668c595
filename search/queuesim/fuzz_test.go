package queuesim

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"tuner/measure"
)

// watched simulates and checks that every request is served once, in the order of arrival. It also
// checks that batches are allowed and that no more instances run than exist. It returns the
// finished executions and the requests, too.
func watched(t *testing.T, b Batcher, c ServiceCurve, load measure.Load, o Options) (r Result, all []ended, requests []request) {
	t.Helper()
	var s Simulator
	s.observe = func(e execution, at float64) { all = append(all, ended{e, at}) }
	r = s.Simulate(b, c, load, o)
	served := slices.Clone(all)
	for _, e := range s.running {
		served = append(served, ended{e, math.Inf(1)})
	}
	slices.SortFunc(served, func(x, y ended) int { return cmp.Compare(x.first, y.first) })
	next := 0 // request to be served
	for i, e := range served {
		count := e.end - e.first
		if count < 1 || e.first != next {
			t.Fatalf("requests %d to %d are executed, the next one is %d", e.first, e.end, next)
		}
		next = e.end
		if e.rows != count*max(load.BatchSize, 1) || e.rows > max(b.MaxBatch, 1) || !b.Dynamic && count != 1 {
			t.Errorf("an execution of %d requests has %d rows, at most %d are allowed", count, e.rows, b.MaxBatch)
		}
		if arrived := s.batcher.requests[e.end-1].at; e.begin < arrived || e.at < e.begin || i > 0 && e.begin < served[i-1].begin {
			t.Errorf("an execution of a request of %v begins at %v and ends at %v", arrived, e.begin, e.at)
		}
		running := 0
		for _, other := range served[max(0, i-64):i] {
			if other.at > e.begin {
				running++
			}
		}
		if running >= max(b.Instances, 1) {
			t.Errorf("%d executions run at %v on %d instances", running+1, e.begin, b.Instances)
		}
	}
	return r, all, s.batcher.requests
}

// Little's law in open loops: the mean number of requests in the server is the throughput times the
// latency.
func TestLittlesLawInOpenLoops(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.003, 0.010}, Crowded: []float64{0.004, 0.016}, Spread: 0.2}
	for _, b := range []Batcher{
		{Instances: 1, MaxBatch: 8},
		{Instances: 1, MaxBatch: 8, Dynamic: true},
		{Instances: 2, MaxBatch: 8, Dynamic: true, Delay: 2 * time.Millisecond},
		{Instances: 2, MaxBatch: 8, Dynamic: true, Delay: 5 * time.Millisecond, Preferred: []int{2, 4}},
	} {
		r, all, requests := watched(t, b, c, measure.Load{RequestRate: 200, BatchSize: 1}, Options{Requests: 40_000})
		inServer, last := 0.0, 0.0 // s, sum over requests; s, end of the last
		for _, e := range all {
			for _, q := range requests[e.first:e.end] {
				inServer += e.at - q.at
			}
			last = max(last, e.at)
		}
		check(t, fmt.Sprintf("%+v: requests in the server", b), inServer/last, r.Throughput*r.Mean, 0.02)
	}
}

func FuzzSimulate(f *testing.F) {
	f.Add(uint8(1), uint8(8), true, uint8(0), uint8(0), uint16(0), uint8(8), uint16(0), uint8(1), uint8(10), uint64(1))
	f.Add(uint8(3), uint8(32), true, uint8(4), uint8(7), uint16(900), uint8(0), uint16(500), uint8(3), uint8(50), uint64(2))
	f.Add(uint8(2), uint8(0), false, uint8(0), uint8(0), uint16(0), uint8(200), uint16(0), uint8(0), uint8(0), uint64(3))
	f.Add(uint8(4), uint8(16), true, uint8(16), uint8(1), uint16(65535), uint8(0), uint16(65535), uint8(16), uint8(255), uint64(4))
	f.Fuzz(func(t *testing.T, instances, maxBatch uint8, dynamic bool, preferred1, preferred2 uint8, delay uint16, clients uint8, rate uint16,
		clientBatch, spread uint8, seed uint64) {
		b := Batcher{Instances: int(instances % 20), MaxBatch: int(maxBatch), Dynamic: dynamic, Delay: time.Duration(delay) * time.Microsecond}
		for _, p := range []uint8{preferred1, preferred2} {
			if p > 0 && p <= maxBatch {
				b.Preferred = append(b.Preferred, int(p))
			}
		}
		c := ServiceCurve{Sizes: []int{1, 3, 17}, Alone: []float64{1e-3, 1.5e-3, 9e-3}, Crowded: []float64{3e-3, 2e-3, 30e-3},
			Spread: float64(spread) / 256, Overhead: float64(seed%5) * 1e-4}
		load := measure.Load{Concurrency: int(clients), BatchSize: int(clientBatch)}
		if clients == 0 {
			load.RequestRate = 1 + float64(rate)
		}
		r, _, _ := watched(t, b, c, load, Options{Requests: 300, Seed: seed})
		if load.BatchSize > max(b.MaxBatch, 1) {
			if !reflect.DeepEqual(r, Result{}) {
				t.Fatalf("a refused load has results: %+v", r)
			}
			return
		}
		for _, v := range []float64{r.Throughput, r.Mean, r.P50, r.P90, r.P95, r.P99, r.MeanBatch, r.Busy} {
			if !(v > 0) || math.IsInf(v, 0) {
				t.Fatalf("results are not positive and finite: %+v", r)
			}
		}
		if r.P50 > r.P90 || r.P90 > r.P95 || r.P95 > r.P99 || r.Queue < 0 || r.Queue > r.Mean ||
			r.Busy > float64(max(b.Instances, 1))+1e-6 || r.MeanBatch > float64(max(b.MaxBatch, 1)) || r.MeanBatch < float64(max(load.BatchSize, 1)) {
			t.Fatalf("results contradict each other: %+v", r)
		}
	})
}
