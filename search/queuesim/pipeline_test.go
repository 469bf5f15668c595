package queuesim_test

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search/queuesim"
)

// stage has instances that take the same time for batches of every size, with hardly any spread.
func stage(instances, batch int, seconds float64, after ...int) queuesim.Stage {
	return queuesim.Stage{
		Batcher: queuesim.Batcher{Instances: instances, MaxBatch: batch, Dynamic: true},
		Curve:   queuesim.ServiceCurve{Sizes: []int{1, 64}, Alone: []float64{seconds, seconds}, Spread: 1e-4, Threads: 1},
		After:   after,
	}
}

// A lone client waits for the stages one after the other, and for the longest of those side by side.
func TestLoneClient(t *testing.T) {
	t.Parallel()
	check := func(want float64, stages ...queuesim.Stage) {
		t.Helper()
		r, _ := queuesim.Pipeline(stages, 8, measure.Load{Concurrency: 1, BatchSize: 1}, 0.001, queuesim.Options{Requests: 400})
		if math.Abs(r.Mean/want-1) > 0.01 || math.Abs(r.Throughput*want-1) > 0.01 {
			t.Errorf("a request takes %v s, %v/s; want %v s", r.Mean, r.Throughput, want)
		}
	}
	check(0.008, stage(1, 1, 0.002), stage(1, 1, 0.005, 0)) // 2 + 5 + 1 ms
	// 2 ms, then 5 beside 3 ms, then 1 ms, and 1 ms outside: 9 ms
	check(0.009, stage(1, 1, 0.002), stage(1, 1, 0.005, 0), stage(1, 1, 0.003, 0), stage(1, 1, 0.001, 1, 2))
}

// With many clients the slowest stage is always busy, and the throughput is its capacity: one batch of 4 in
// 4 ms on one instance is 1,000/s. Another stage of 2 ms works half of the time with batches of 4, and longer
// with smaller ones.
func TestSlowestStage(t *testing.T) {
	t.Parallel()
	r, busy := queuesim.Pipeline([]queuesim.Stage{stage(1, 4, 0.002), stage(1, 4, 0.004, 0)}, 8,
		measure.Load{Concurrency: 32, BatchSize: 1}, 0, queuesim.Options{Requests: 4000})
	if math.Abs(r.Throughput/1000-1) > 0.02 || busy[1] < 0.98 || busy[0] < 0.48 || busy[0] > 0.95 {
		t.Errorf("throughput %v, busy %v", r.Throughput, busy)
	}
	// Little's law: 32 requests are in flight.
	if inFlight := r.Throughput * r.Mean; math.Abs(inFlight/32-1) > 0.02 {
		t.Errorf("%v requests in flight, want 32", inFlight)
	}
}

// Two stages with one instance each share one core: a request needs 2 + 3 ms of it, whatever the order.
func TestOneCore(t *testing.T) {
	t.Parallel()
	r, _ := queuesim.Pipeline([]queuesim.Stage{stage(1, 1, 0.002), stage(1, 1, 0.003, 0)}, 1,
		measure.Load{Concurrency: 8, BatchSize: 1}, 0, queuesim.Options{Requests: 2000})
	if math.Abs(r.Throughput/200-1) > 0.03 {
		t.Errorf("throughput %v, want 200/s", r.Throughput)
	}
}

// A pipeline with one stage is that model: an M/D/1 queue at half load waits for S·ρ/(2(1−ρ)) = S/2.
func TestOneStage(t *testing.T) {
	t.Parallel()
	r, _ := queuesim.Pipeline([]queuesim.Stage{stage(1, 1, 0.010)}, 4, measure.Load{RequestRate: 50, BatchSize: 1}, 0, queuesim.Options{Requests: 40_000, Seed: 3})
	if math.Abs(r.Mean/0.015-1) > 0.03 {
		t.Errorf("mean latency %v, want 0.015 s", r.Mean)
	}
}

// A stage refuses requests that are larger than its batches, and so does the pipeline.
func TestTooLargeForAStage(t *testing.T) {
	t.Parallel()
	r, _ := queuesim.Pipeline([]queuesim.Stage{stage(1, 8, 0.001), stage(1, 4, 0.001, 0)}, 2, measure.Load{Concurrency: 1, BatchSize: 8}, 0, queuesim.Options{})
	if r.Throughput != 0 {
		t.Errorf("throughput %v", r.Throughput)
	}
}

// regular are arrivals at equal distances, which counts how many a simulation takes.
type regular struct {
	every time.Duration
	n     int
}

func (r *regular) Next() time.Duration {
	r.n++
	return time.Duration(r.n) * r.every
}

// Arrivals at a hundred times the capacity cost at most four times the requests that are counted and left out, and
// those that wait in batches: 4·(600 + 150) + 2·5. The pipeline answers what its slow stage does: 50 requests/s.
func TestFarBeyondTheCapacity(t *testing.T) {
	t.Parallel()
	arrivals := regular{every: time.Second / 5000}
	r, _ := queuesim.Pipeline([]queuesim.Stage{stage(1, 1, 0.0001), stage(1, 1, 0.020, 0)}, 4, measure.Load{RequestRate: 5000, BatchSize: 1}, 0,
		queuesim.Options{Requests: 600, Arrivals: &arrivals})
	if math.Abs(r.Throughput/50-1) > 0.02 {
		t.Errorf("throughput %v, want 50/s", r.Throughput)
	}
	if arrivals.n > 4*750+10+1 {
		t.Errorf("%d arrivals", arrivals.n)
	}
}

// Up to four times the capacity, the first stage takes its share of the one core until the end: 1 ms of it for each
// of 250 requests/s. That leaves 0.75 of it to the second stage, which answers 75/s at 10 ms each.
func TestFirstStageTakesItsShareToTheEnd(t *testing.T) {
	t.Parallel()
	r, _ := queuesim.Pipeline([]queuesim.Stage{stage(1, 1, 0.001), stage(1, 1, 0.010, 0)}, 1, measure.Load{RequestRate: 250, BatchSize: 1}, 0,
		queuesim.Options{Requests: 2000, Arrivals: &regular{every: time.Second / 250}})
	if math.Abs(r.Throughput/75-1) > 0.02 {
		t.Errorf("throughput %v, want 75/s", r.Throughput)
	}
}
