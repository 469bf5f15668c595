package gate

import "math"

// six keeps six significant digits, which is more than any measurement has.
func six(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// Number is a figure of a file, with six significant digits; nil for what is none.
func Number(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	v = six(v)
	return &v
}
