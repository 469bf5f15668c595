package figures

import (
	"fmt"
	"math"

	"tuner/analyze"
	"tuner/measure"
	"tuner/search/verdict"
)

// Quantity is a metric on an axis.
type Quantity struct {
	Metric measure.Metric
	Title  string  // with the unit
	Factor float64 // from the base unit to that of the axis
}

// QuantityOf returns a metric in a unit for people.
func QuantityOf(m measure.Metric) Quantity {
	info, _ := m.Info()
	name := Capitalized(verdict.Label(m))
	switch info.Unit {
	case measure.Seconds:
		if _, isPercentile := m.Quantile(); isPercentile {
			name = verdict.Label(m) + " latency"
		}
		return Quantity{m, name + " (ms)", 1e3}
	case measure.Bytes:
		return Quantity{m, name + " (MB)", 1e-6}
	case measure.Share:
		return Quantity{m, name + " (%)", 100}
	}
	return Quantity{m, fmt.Sprintf("%s (%s)", name, info.Unit), 1}
}

// Of returns the metric at a point in the unit of the axis. It returns false if the value is
// unknown or not positive.
func (q Quantity) Of(p analyze.Point) (float64, bool) {
	e, ok := p.Values[q.Metric]
	return e.Value * q.Factor, ok && e.Value > 0
}

// Significant rounds to six significant digits, more than any measurement has. Files for programs
// have such numbers.
func Significant(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
