package analyze

import (
	"math"
	"testing"

	"tuner/measure"
)

// TestIntervalCoversTheSpreadOfTrials: memory peaks of 100, 200 and 300 bytes have mean 200, deviation 100 and Student's
// half-width 4.3027 · 100/√3 = 248.4; the estimate keeps its value, the highest peak. Two trials say too little to widen it.
func TestIntervalCoversTheSpreadOfTrials(t *testing.T) {
	t.Parallel()
	trials := func(peaks ...int64) []measure.Measurement {
		var parts []measure.Measurement
		for _, p := range peaks {
			parts = append(parts, measure.Measurement{Memory: p, Windows: []measure.Window{{}}})
		}
		return parts
	}
	check := func(e measure.Estimate, parts []measure.Measurement, lo, hi float64) {
		t.Helper()
		got := widened(e, measure.Memory, parts)
		if got.Value != e.Value || math.Abs(got.Lo-lo) > 0.1 || math.Abs(got.Hi-hi) > 0.1 {
			t.Errorf("widened(%v) = %v, want %.1f to %.1f", e, got, lo, hi)
		}
	}
	check(measure.Estimate{Value: 300, Lo: 300, Hi: 300}, trials(100, 200, 300), 51.6, 548.4)
	check(measure.Estimate{Value: 300, Lo: -500, Hi: 310}, trials(100, 200, 300), -500, 548.4)
	check(measure.Estimate{Value: 300, Lo: 299, Hi: 301}, trials(100, 300), 299, 301)
}
