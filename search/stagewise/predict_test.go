package stagewise

import (
	"math"
	"testing"

	"tuner/measure"
	"tuner/search/queuesim"
)

// On the line of an exponential tail through the median and the 90th percentile, the 10th is 1 ms − 0.365 · 9 ms: it
// is less than 0, and has no logarithm.
func TestQuantileFarBelowTheMedian(t *testing.T) {
	t.Parallel()
	r := result{Result: queuesim.Result{Throughput: 100, Mean: 0.004, P50: 0.001, P90: 0.010, P95: 0.012, P99: 0.02}}
	if q := r.Quantile(0.1); q >= 0 {
		t.Fatalf("the quantile is %v", q)
	}
	log, ok := new(Stagewise).value(r, measure.Metric("latency_p10"))
	if !ok || math.IsNaN(log) || math.IsInf(log, 0) {
		t.Errorf("its logarithm is %v, %t", log, ok)
	}
}
