package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A process with a known deviation and time constant, plus noise of each value, seen in short pieces.
func TestVariogramFindsAProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ noise, deviation, time float64 }{{0.05, 0.12, 0.7}, {0.1, 0.1, 2}, {0.02, 0.2, 0.3}, {0, 0.1, 0.7}} {
		r := rand.New(rand.NewPCG(1, 2))
		var v Variogram
		const pieces, length, step = 2000, 20, 0.1
		for range pieces {
			x := c.deviation * r.NormFloat64()
			var values []float64
			for range length {
				values = append(values, x+c.noise*r.NormFloat64())
				k := math.Exp(-step / c.time)
				x = x*k + c.deviation*math.Sqrt(1-k*k)*r.NormFloat64()
			}
			for i := range values {
				for j := range i {
					v.Add(step*float64(i-j), values[i], values[j])
				}
			}
		}
		nugget, sill, scale, ok := v.Exponential()
		if !ok || math.Abs(math.Sqrt(sill)/c.deviation-1) > 0.1 || math.Abs(math.Sqrt(nugget)-c.noise) > 0.03 || math.Abs(math.Log(scale/c.time)) > math.Log(1.3) {
			t.Errorf("%v: noise %v, deviation %v, time %v", c, math.Sqrt(nugget), math.Sqrt(sill), scale)
		}
	}
}

// Independent values share nothing that counts, and a few distances say nothing.
func TestVariogramOfNoise(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var v Variogram
	for i := range 20000 {
		v.Add(0.1*float64(1+i%20), r.NormFloat64(), r.NormFloat64())
	}
	if _, sill, scale, ok := v.Exponential(); ok && sill > 0.1 && scale > 0.2 {
		t.Errorf("independent values share a variance of %v for %v", sill, scale)
	}
	var few Variogram
	few.Add(1, 0, 1)
	few.Add(2, 0, 1)
	if _, _, _, ok := few.Exponential(); ok {
		t.Error("two distances have a fit")
	}
}
