package queuesim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tuner/measure/stats"
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

// The quantiles of values in any order are those of the sorted ones, to the last bit.
func TestQuantilesAreThoseOfTheSorted(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	orders := map[string]func(i, n int) float64{
		"random":     func(int, int) float64 { return random.ExpFloat64() },
		"few values": func(int, int) float64 { return float64(random.IntN(4)) },
		"rising":     func(i, _ int) float64 { return float64(i) },
		"falling":    func(i, _ int) float64 { return float64(-i) },
		"equal":      func(int, int) float64 { return 2 },
		"a cycle":    func(i, _ int) float64 { return float64(i % 7) },
		"a peak":     func(i, n int) float64 { return float64(min(i, n-i)) },
	}
	for name, value := range orders {
		for _, n := range []int{1, 2, 3, 4, 5, 10, 99, 100, 101, 2000, 2003} {
			values := make([]float64, n)
			for i := range values {
				values[i] = value(i, n)
			}
			sorted := slices.Sorted(slices.Values(values))
			got := quantiles(values)
			for k, q := range []float64{0.5, 0.9, 0.95, 0.99} {
				if want := stats.Quantile(sorted, q); got[k] != want {
					t.Errorf("%s, %d values: the quantile %v is %v, want %v", name, n, q, got[k], want)
				}
			}
			if slices.Sort(values); !slices.Equal(values, sorted) {
				t.Errorf("%s, %d values: others after the reordering", name, n)
			}
		}
	}
}
