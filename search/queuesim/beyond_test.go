package queuesim

import (
	"math"
	"testing"

	"tuner/measure"
)

// A curve is known up to batches of 2. With a single instance, 8 clients wait together for the next batch, of 8 requests at most:
// two doublings beyond the curve, or about one and a half where batches are of 8 and 4. With as many instances as clients
// no request waits for others, and with batches of 2 none is larger.
func TestBeyondTheCurve(t *testing.T) {
	t.Parallel()
	curve := ServiceCurve{Sizes: []int{1, 2}, Alone: []float64{0.010, 0.015}, Overhead: 0.0001, Spread: 0.05}
	check := func(name string, b Batcher, least, most, largest float64) {
		t.Helper()
		r := Simulate(b, curve, measure.Load{Concurrency: 8, BatchSize: 1}, Options{Seed: 1})
		if r.Beyond < least || r.Beyond > most || math.Abs(r.MostBeyond-largest) > 1e-9 {
			t.Errorf("%s: %.3f doublings, %.3f at most; want %g to %g, and %g", name, r.Beyond, r.MostBeyond, least, most, largest)
		}
	}
	check("gathered in one instance", Batcher{Instances: 1, MaxBatch: 8, Dynamic: true, Delay: 5e6}, 1.9, 2, 2)
	check("as many instances as clients", Batcher{Instances: 8, MaxBatch: 8, Dynamic: true}, 0, 0, 0)
	check("small batches", Batcher{Instances: 1, MaxBatch: 2, Dynamic: true}, 0, 0, 0)
}
