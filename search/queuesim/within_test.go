package queuesim

import (
	"math"
	"testing"

	"tuner/measure"
)

// In an M/M/1 queue at half its capacity latencies are exponential with mean 1/(μ−λ) = 2 s: the share
// within t is 1 − e^(−t/2).
func TestShareWithinALimit(t *testing.T) {
	t.Parallel()
	s := exponential(new(Simulator))
	limits := []float64{0, 1, 2, 6, 1e9}
	r := s.Simulate(Batcher{}, constant(1), measure.Load{RequestRate: 0.5}, Options{Requests: 200_000, Within: limits})
	for i, limit := range limits {
		if want := 1 - math.Exp(-limit/2); math.Abs(r.Within[i]-want) > 0.01 {
			t.Errorf("the share within %v s is %v, want %v", limit, r.Within[i], want)
		}
	}
	if r := Simulate(Batcher{}, constant(1), measure.Load{RequestRate: 0.5}, Options{}); r.Within != nil {
		t.Errorf("without a limit there are shares %v", r.Within)
	}
}
