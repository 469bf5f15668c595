package replica

import (
	"math"
	"math/rand/v2"
	"testing"

	"tuner/measure"
	"tuner/search/queuesim"
)

// A server that takes four times as long as the plan's replica, with three times its spread, is simulated as it is: also in an open loop,
// which it did not show.
func TestRefitServesAsShown(t *testing.T) {
	t.Parallel()
	r, c := measured(1, 8, 32)
	x, err := Of("c7i", r, c, 1)
	if err != nil {
		t.Fatal(err)
	}
	slow := truth
	slow.Alone, slow.Overhead, slow.Spread = scaled(truth.Alone, 4), 4*truth.Overhead, 0.3
	var shown []Shown
	for _, k := range x.Checks {
		s := queuesim.Simulate(batcher, slow, k.Load, queuesim.Options{Requests: 50_000, Seed: 4})
		shown = append(shown, Shown{Load: k.Load, Mean: s.Mean, P99: s.P99, MeanBatch: s.MeanBatch, BatchTime: s.BatchTime()})
	}
	here := x.Refit(shown, 2, 1, 1)
	if ratio := x.Capacity / here.Capacity; math.Abs(ratio/4-1) > 0.05 {
		t.Errorf("%.2f times the capacity, want 4", ratio)
	}
	checkOpenLoops(t, here, slow, 50_000)
	if len(x.Checks) != 3 || x.Curve.Alone[0] == here.Curve.Alone[0] {
		t.Error("the plan's replica has changed")
	}
}

// The spread is found between those of the list too.
func TestSpreadIsFound(t *testing.T) {
	t.Parallel()
	for _, spread := range []float64{0.03, 0.07, 0.14, 0.27, 0.45} {
		there := truth
		there.Spread = spread
		r, c := measuredOf(there, batcher, config, 1, 8, 32)
		x, err := Of("c7i", r, c, 1)
		if err != nil {
			t.Fatal(err)
		}
		if off := x.Curve.Spread / spread; off > 1.25 || off < 0.8 {
			t.Errorf("spread %g, the server has %g", x.Curve.Spread, spread)
		}
	}
}

// Times are those that the server's batches took, alone and beside others, however much service trials missed
// them. So the server makes the batches that it showed, whose clients come back together.
func TestTimesAreThoseOfBatches(t *testing.T) {
	t.Parallel()
	slow := queuesim.ServiceCurve{
		Sizes: []int{1, 2, 4}, Alone: []float64{8.8e-3, 14.1e-3, 27.7e-3}, Crowded: []float64{9.6e-3, 18e-3, 34.5e-3},
		Spread: 0.1, Overhead: 0.4e-3, Cores: 2, Threads: 1,
	}
	b := queuesim.Batcher{Instances: 2, MaxBatch: 4, Dynamic: true}
	random := rand.New(rand.NewPCG(8, 8))
	for range 10 {
		trials := slow
		trials.Alone, trials.Crowded = scaled(slow.Alone, 0.7+0.6*random.Float64()), scaled(slow.Crowded, 0.7+0.6*random.Float64())
		planned := Replica{Rows: 1, Batcher: b, Curve: trials, Cores: 2}
		var shown []Shown
		for _, clients := range []int{1, 6, 16} {
			l := measure.Load{Concurrency: clients, BatchSize: 1}
			s := queuesim.Simulate(b, slow, l, queuesim.Options{Requests: 20_000, Seed: 4})
			shown = append(shown, Shown{Load: l, Mean: s.Mean, P99: s.P99, MeanBatch: s.MeanBatch, BatchTime: s.BatchTime()})
		}
		here := planned.Refit(shown, 2, 1, 1)
		for i, size := range slow.Sizes {
			if a, c := here.Curve.Alone[i]/slow.Alone[i], here.Curve.Crowded[i]/slow.Crowded[i]; math.Abs(a-1) > 0.03 || math.Abs(c-1) > 0.03 {
				t.Errorf("trials of %v and %v: a batch of %d takes %.3f times as long alone and %.3f crowded", trials.Alone, trials.Crowded, size, a, c)
			}
		}
		got := queuesim.Simulate(b, here.Curve, shown[1].Load, queuesim.Options{Requests: 20_000, Seed: 4}).MeanBatch
		if want := shown[1].MeanBatch; math.Abs(got/want-1) > 0.05 {
			t.Errorf("batches of %.2f, want %.2f", got, want)
		}
	}
}

// checkOpenLoops compares a replica with the server that it stands for, in open loops below its capacity.
func checkOpenLoops(t *testing.T, x Replica, server queuesim.ServiceCurve, requests int) {
	t.Helper()
	for _, share := range []float64{0.3, 0.6, 0.8} {
		load := measure.Load{RequestRate: share * x.Capacity, BatchSize: 1}
		o := queuesim.Options{Requests: requests, Seed: 6}
		got, want := queuesim.Simulate(batcher, x.Curve, load, o), queuesim.Simulate(batcher, server, load, o)
		if math.Abs(got.P50/want.P50-1) > 0.05 || math.Abs(got.P99/want.P99-1) > 0.1 {
			t.Errorf("at %g of the capacity p50 %.4f p99 %.4f, the server has %.4f and %.4f", share, got.P50, got.P99, want.P50, want.P99)
		}
	}
}
