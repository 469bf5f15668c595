package measure

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// pareto makes a measurement of n latencies of at least 10 ms. The logarithm of a latency has an
// exponential tail with mean hill. The q-quantile is 10 ms · (1−q)^−hill.
func pareto(random *rand.Rand, n int, hill float64) Measurement {
	latencies := make([]time.Duration, n)
	for i := range latencies {
		latencies[i] = time.Duration(float64(10*time.Millisecond) * math.Exp(hill*random.ExpFloat64()))
	}
	sub := []SubWindow{{Requests: n, Latency: NewHistogram(latencies)}}
	return Measurement{Windows: []Window{{Requests: n, Duration: time.Second, Sub: sub}}}
}

// The percentile of an exponential tail is known. With few requests and with many, the estimate is
// near it, within its own stated error.
func TestTailOfAKnownLaw(t *testing.T) {
	t.Parallel()
	const hill, runs = 0.2, 400
	want := math.Log(0.010) + hill*math.Log(100)
	for _, c := range []struct {
		n    int
		is   bool
		bias float64 // largest bias, in natural logarithms
	}{{40, true, 0.06}, {200, true, 0.03}, {800, true, 0.02}, {4000, false, 0.01}} {
		random := rand.New(rand.NewPCG(1, uint64(c.n)))
		sum, squares, within := 0.0, 0.0, 0
		for range runs {
			got, ok := pareto(random, c.n, hill).Tail(0.99)
			if !ok || got.IsExtrapolated != c.is {
				t.Fatalf("n %d: extrapolated %v, want %v", c.n, got.IsExtrapolated, c.is)
			}
			sum, squares = sum+got.Log-want, squares+(got.Log-want)*(got.Log-want)
			if math.Abs(got.Log-want) < 1.96*got.Deviation {
				within++
			}
		}
		if bias := sum / runs; math.Abs(bias) > c.bias {
			t.Errorf("n %d: bias %.3f, want at most %.3f", c.n, bias, c.bias)
		}
		if share := float64(within) / runs; share < 0.85 {
			t.Errorf("n %d: %.0f %% of the intervals hold the percentile, want about 95 %%", c.n, 100*share)
		}
	}
}

// The largest of a few latencies is no upper bound. The estimate is marked as extrapolated, and its
// error grows with fewer requests.
func TestTailOfFewRequests(t *testing.T) {
	t.Parallel()
	last := 0.0
	for _, n := range []int{900, 100, 20} {
		random := rand.New(rand.NewPCG(2, 2))
		mean := 0.0
		for range 50 {
			got, _ := pareto(random, n, 0.2).Tail(0.99)
			mean += got.Deviation / 50
		}
		if mean <= last {
			t.Errorf("%d requests: error %.4f, want more than the %.4f of more requests", n, mean, last)
		}
		last = mean
	}
	if _, ok := (Measurement{}).Tail(0.99); ok {
		t.Error("a measurement without requests tells a percentile")
	}
}

func TestNeeded(t *testing.T) {
	t.Parallel()
	for q, want := range map[float64]int{0.5: 5, 0.9: 29, 0.99: 299, 0.999: 2995} {
		if got := Needed(q); got != want {
			t.Errorf("quantile %g: %d, want %d", q, got, want)
		}
	}
}
