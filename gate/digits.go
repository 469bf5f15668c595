package gate

import "math"

// six rounds to six significant digits, more than any measurement has.
func six(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// Number returns a figure for a file, with six significant digits; nil if it is not a finite
// number.
func Number(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	v = six(v)
	return &v
}
