package queuesim

import (
	"math"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/measure/arrivals"
)

// twoKinds returns a curve of two kinds whose batches take a fixed time, in seconds.
func twoKinds(share, short, long float64) ServiceCurve {
	c := constant(share*short + (1-share)*long)
	c.Kinds = []Kind{{share, constant(short).Alone, nil}, {1 - share, constant(long).Alone, nil}}
	return c
}

// A batch ends at the first request of another kind: of A A B A, with all present, A A is a batch,
// then B, then A. The blocker keeps the instance busy until they are present.
func TestABatchHasOneKind(t *testing.T) {
	t.Parallel()
	arrivals := []arrival{{0, 1, 1}, {0.1, 1, 1}, {0.1, 1, 1}, {0.1, 1, 1}, {0.1, 1, 1}}
	var rows []int
	for _, e := range playKinds(Batcher{Instances: 1, MaxBatch: 8, Dynamic: true}, twoKinds(0.5, 1, 1), []int{0, 0, 0, 1, 0}, arrivals...) {
		rows = append(rows, e.rows)
	}
	if d := gocmp.Diff([]int{1, 2, 1, 1}, rows); d != "" {
		t.Errorf("rows of the executions (-want +got):\n%s", d)
	}
}

// Without batching, a queue of two kinds is M/G/1: the mean wait is λ·E[S²]/(2·(1−ρ))
// (Pollaczek and Khinchine). Half of the requests take 0.5 s, half 1.5 s: E[S] = 1, E[S²] = 1.25.
func TestTwoKindsWithoutBatches(t *testing.T) {
	t.Parallel()
	for _, rho := range []float64{0.3, 0.6, 0.8} {
		r := Simulate(Batcher{}, twoKinds(0.5, 0.5, 1.5), measure.Load{RequestRate: rho}, Options{Requests: many})
		check(t, "wait", r.Queue, rho*1.25/(2*(1-rho)), 0.05)
		check(t, "busy", r.Busy, rho, 0.01)
	}
}

// In a closed loop of one client the kinds come by their shares, so the mean latency is the mean
// time, and the median the short one.
func TestOneClientOfTwoKinds(t *testing.T) {
	t.Parallel()
	r := Simulate(Batcher{MaxBatch: 8, Dynamic: true}, twoKinds(0.75, 0.010, 0.050), measure.Load{Concurrency: 1}, Options{Requests: many})
	check(t, "mean", r.Mean, 0.75*0.010+0.25*0.050, 0.01)
	check(t, "median", r.P50, 0.010, 1e-9)
	check(t, "p99", r.P99, 0.050, 1e-9)
}

// With many requests waiting, a batch grows while the next request is of its kind. With shares p
// and 1 − p the runs of a kind have the mean length 1/(1−p) and 1/p, and each of the two begins
// equally often. Where the largest batch is out of reach, the mean batch is (1/p + 1/(1−p))/2.
func TestRunsOfKinds(t *testing.T) {
	t.Parallel()
	const p = 0.6
	r := Simulate(Batcher{MaxBatch: 100, Dynamic: true}, twoKinds(p, 0.01, 0.01), measure.Load{Concurrency: 1000}, Options{Requests: many})
	check(t, "mean batch", r.MeanBatch, (1/p+1/(1-p))/2, 0.03)
}

// Kinds with the same times and one kind are the same where nothing is batched.
func TestEqualKindsWithoutBatches(t *testing.T) {
	t.Parallel()
	load := measure.Load{RequestRate: 60, BatchSize: 1}
	one := constant(0.01)
	one.Spread = 0.2
	two := twoKinds(0.5, 0.01, 0.01)
	two.Spread = 0.2
	if d := gocmp.Diff(Simulate(Batcher{Instances: 2}, one, load, Options{}), Simulate(Batcher{Instances: 2}, two, load, Options{})); d != "" {
		t.Errorf("one kind and two (-one +two):\n%s", d)
	}
}

// Batches of several kinds never become more throughput than those of one kind with the mean time.
func TestKindsCostThroughput(t *testing.T) {
	t.Parallel()
	load := measure.Load{Concurrency: 32, BatchSize: 1}
	b := Batcher{Instances: 2, MaxBatch: 8, Dynamic: true, Delay: time.Millisecond}
	two := affine(5, 1)
	two.Spread = 0.1
	one := Simulate(b, two, load, Options{})
	two.Kinds = []Kind{{0.5, two.Alone, nil}, {0.5, two.Alone, nil}}
	if r := Simulate(b, two, load, Options{}); r.Throughput > one.Throughput {
		t.Errorf("two kinds have %v infer/s, one has %v", r.Throughput, one.Throughput)
	}
}

// Ranks give each arrival its kind. Two requests arrive each second, one of 0.1 s and then one of
// 0.2 s, and no queue forms: the mean is 0.15 s, and half take 0.1 s. Where padding has joined the
// kinds to one of 0.2 s, the same ranks give that.
func TestRanksGiveKinds(t *testing.T) {
	t.Parallel()
	every := func() Arrivals {
		s, err := arrivals.Constant(2)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	load := measure.Load{RequestRate: 2, BatchSize: 1}
	o := Options{Requests: 400, Ranks: []float64{0.25, 0.75}}
	o.Arrivals = every()
	r := Simulate(Batcher{Instances: 1}, twoKinds(0.5, 0.1, 0.2), load, o)
	if math.Abs(r.Mean-0.15) > 1e-9 || math.Abs(r.P99-0.2) > 1e-9 || r.P50 > 0.2 {
		t.Errorf("mean %v, p50 %v, p99 %v", r.Mean, r.P50, r.P99)
	}
	o.Arrivals, o.Ranks = every(), []float64{0.25, 0.25}
	if r := Simulate(Batcher{Instances: 1}, twoKinds(0.5, 0.1, 0.2), load, o); math.Abs(r.P99-0.1) > 1e-9 {
		t.Errorf("all of the first kind: p99 %v", r.P99)
	}
	o.Arrivals, o.Ranks = every(), []float64{0.25, 0.75}
	joined := constant(0.2)
	joined.Kinds = []Kind{{1, joined.Alone, nil}}
	if r := Simulate(Batcher{Instances: 1}, joined, load, o); math.Abs(r.Mean-0.2) > 1e-9 {
		t.Errorf("joined kinds: mean %v", r.Mean)
	}
}
