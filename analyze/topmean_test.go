package analyze

import (
	"math"
	"testing"

	"tuner/measure"
)

// The mean of 98 ± 4 and 100 ± 3 has half of the error √(4² + 3²). It is the same at request rates of 98/s and 100/s, which
// cut off the upper halves of both intervals.
func TestMeanOfRatesHasTheWholeError(t *testing.T) {
	t.Parallel()
	values := []measure.Estimate{{Value: 98, Lo: 94, Hi: 102}, {Value: 100, Lo: 97, Hi: 103}}
	var cut []measure.Estimate
	for _, e := range values {
		cut = append(cut, measure.Load{RequestRate: e.Value, BatchSize: 1}.Bounded(measure.Throughput, e))
	}
	for _, list := range [][]measure.Estimate{values, cut} {
		if got := meanScore(list, 2); math.Abs(got.Hi-got.Value-5.0/198) > 1e-12 {
			t.Errorf("the mean of %v is %v", list, got)
		}
	}
}
