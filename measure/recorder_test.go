package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// logNormal makes n latencies around a median. sigma is the standard deviation of their logarithm.
func logNormal(random *rand.Rand, n int, median time.Duration, sigma float64) []time.Duration {
	latencies := make([]time.Duration, n)
	for i := range latencies {
		latencies[i] = time.Duration(float64(median) * math.Exp(sigma*random.NormFloat64()))
	}
	return latencies
}

func TestRecorderKeepsQuantilesAndTheExactSum(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(21, 22))
	for _, median := range []time.Duration{80 * time.Microsecond, 20 * time.Millisecond} {
		latencies := logNormal(random, 100_000, median, 1)
		r := NewRecorder()
		var sum time.Duration
		for _, l := range latencies {
			r.Record(l)
			sum += l
		}
		h := r.Histogram()
		if r.Count() != len(latencies) || h.Count() != len(latencies) || r.Sum() != sum {
			t.Errorf("%d and %d latencies with the sum %v, want %d with %v", r.Count(), h.Count(), r.Sum(), len(latencies), sum)
		}
		slices.Sort(latencies)
		for rank := 1; rank <= len(latencies); rank += 97 {
			// Three digits above 1 ms; below, buckets of 512 ns. The range begins at 1 µs.
			want := max(latencies[rank-1], time.Microsecond)
			if got := h.Rank(rank); math.Abs(float64(got-want)) > max(0.001*float64(want), 600) {
				t.Fatalf("rank %d is %v, want %v", rank, got, want)
			}
		}
	}
}

func TestRecorderIsTheSameAsAHistogram(t *testing.T) {
	t.Parallel()
	latencies := []time.Duration{-time.Second, 0, 5 * time.Microsecond, time.Millisecond, 3 * time.Second, time.Hour}
	r := NewRecorder()
	for _, l := range latencies {
		r.Record(l)
	}
	if want := time.Hour + 2*time.Second + time.Millisecond + 5*time.Microsecond; r.Sum() != want {
		t.Errorf("the sum is %v, want %v", r.Sum(), want)
	}
	before := r.Histogram()
	if diff := cmp.Diff(histogram(latencies...), before); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	r.Reset()
	r.Reset() // an empty sum is empty
	if r.Count() != 0 || r.Sum() != 0 || !r.Histogram().Equal(Histogram{}) || before.Count() != len(latencies) {
		t.Errorf("after Reset there are %d latencies with the sum %v, and %d in the earlier histogram", r.Count(), r.Sum(), before.Count())
	}
}

func TestRecordAllocatesNothing(t *testing.T) { // not parallel: allocations of other tests would count
	r := NewRecorder()
	l := time.Microsecond
	if n := testing.AllocsPerRun(1000, func() { r.Record(l); l += 37 * time.Microsecond }); n != 0 {
		t.Errorf("Record allocates %g times", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	latencies := logNormal(rand.New(rand.NewPCG(23, 24)), 4096, 5*time.Millisecond, 1)
	r := NewRecorder()
	for i := 0; b.Loop(); i++ {
		r.Record(latencies[i%len(latencies)])
	}
}
