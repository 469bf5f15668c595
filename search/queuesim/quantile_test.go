package queuesim

import (
	"math"
	"testing"
)

// A percentile that the simulation lacks is placed on an exponential tail: −ln(1−q) seconds for a
// mean of 1 s.
func TestTailOfAnExponential(t *testing.T) {
	t.Parallel()
	at := func(q float64) float64 { return -math.Log(1 - q) }
	r := Result{P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99)}
	for _, q := range []float64{0.25, 0.5, 0.75, 0.9, 0.925, 0.95, 0.97, 0.99, 0.999} {
		if got := r.Quantile(q); math.Abs(got-at(q)) > 1e-9 {
			t.Errorf("the quantile %v is %v, want %v", q, got, at(q))
		}
	}
}
