package queuesim

import (
	"math"
	"math/rand/v2"
	"testing"

	"tuner/measure"
)

// Two instances of one thread on two cores take 8 ms alone and 10 ms together. At half of their capacity
// each is busy for a share s with s = 50 · (8 ms + 2 ms s), so 4/9, and a batch takes 8.9 ms. Four instances
// of two threads on four cores wait for half of the time.
func TestComputedTimes(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{0.008}, Crowded: []float64{0.010}, Cores: 2, Threads: 1}
	wide := ServiceCurve{Sizes: []int{1}, Alone: []float64{0.008}, Crowded: []float64{0.020}, Cores: 4, Threads: 2}
	lone := c
	lone.Crowded = nil
	for _, tc := range []struct {
		name      string
		curve     ServiceCurve
		rate      float64
		instances int
		want      float64
	}{
		{"idle", c, 0, 2, 0.008},
		{"part load", c, 100, 2, 0.008 + 0.002*4/9},
		{"full", c, 200, 2, 0.010},
		{"more than the curve allows", c, 1e6, 2, 0.010},
		{"one instance", lone, 100, 1, 0.008},
		{"waiting", wide, 1e6, 4, 2 * 0.010},
		{"no less than alone", wide, 1e6, 16, 2 * 0.008},
	} {
		check(t, tc.name, tc.curve.Computed(1, tc.rate, tc.instances), tc.want, 1e-9)
	}
	c.Threads = 0
	if got := c.Computed(1, 200, 2); got != 0 {
		t.Errorf("with a GPU, the processors compute %g s", got)
	}
}

// What the simulated instances and the path use together shows the path again, also where instances slow
// each other down. There are cores for all that asks for some.
func TestComputedShowsThePath(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		c := ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{1e-3, 6e-3}, Spread: 0.1, Threads: 1, Cores: 64}
		c.Path = 3e-4 * (1 + random.Float64())
		slower := 1 + random.Float64()
		c.Crowded = []float64{slower * c.Alone[0], slower * c.Alone[1]}
		c.Overhead = c.Path
		b := Batcher{Instances: 1 + random.IntN(3), MaxBatch: 8, Dynamic: true}
		load := measure.Load{Concurrency: 1 + random.IntN(40), BatchSize: 1}
		r := Simulate(b, c, load, Options{Requests: 4000, Seed: random.Uint64()})
		executions := r.Throughput / r.MeanBatch
		used := r.Busy + r.Path*r.Throughput
		path, ok := PathOf(used, executions*c.Computed(r.MeanBatch, executions, b.Instances), r.Throughput)
		if ok && math.Abs(path/c.Path-1) > 0.25 {
			t.Errorf("%+v, %d instances: a path of %.0f µs", c, b.Instances, 1e6*path)
		}
	}
}

// Batches of two neighbouring sizes take the mean of their times.
func TestMeanTime(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1, 2, 4}, Alone: []float64{1, 3, 4}}
	for _, tc := range []struct{ batch, want float64 }{{0, 1}, {1, 1}, {1.25, 1.5}, {2, 3}, {3, 3.5}, {3.5, 3.75}, {5, 4.5}} {
		check(t, "time", c.MeanTime(tc.batch, 1, 1), tc.want, 1e-9)
	}
}
