package replica

import (
	"math"
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
		shown = append(shown, Shown{k.Load, s.Mean, s.P99})
	}
	here := x.Refit(shown, 2, 1, 1)
	if ratio := x.Capacity / here.Capacity; math.Abs(ratio/4-1) > 0.05 {
		t.Errorf("%.2f times the capacity, want 4", ratio)
	}
	for _, share := range []float64{0.3, 0.6, 0.8} {
		load := measure.Load{RequestRate: share * here.Capacity, BatchSize: 1}
		o := queuesim.Options{Requests: 50_000, Seed: 6}
		got, want := queuesim.Simulate(batcher, here.Curve, load, o), queuesim.Simulate(batcher, slow, load, o)
		if math.Abs(got.P50/want.P50-1) > 0.05 || math.Abs(got.P99/want.P99-1) > 0.1 {
			t.Errorf("at %g of the capacity p50 %.4f p99 %.4f, the server has %.4f and %.4f", share, got.P50, got.P99, want.P50, want.P99)
		}
	}
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
