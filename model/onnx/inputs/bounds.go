package inputs

import (
	"slices"
	"strings"

	"tuner/model/onnx"
)

// bound is the value of an input that bounds something: fmin and fmax of a pitch tracker. Random
// numbers there often leave nothing between the two, and the model answers NaN.
type bound struct {
	value  int64
	reason string
}

// The values of bounds. Of a frequency they are in Hz: 50 Hz is below the pitch of every voice, and the
// upper end is the highest frequency that sound has at its sampling rate.
const (
	lowerBound     = 0
	upperBound     = 1
	lowerFrequency = 50
)

// boundsOf finds pairs of inputs with one number each whose names differ in "min" and "max", or in words
// of the same meaning. rate is the sampling rate in Hz.
func boundsOf(m *onnx.Model, dims map[string][]int64, rate int64) map[string]bound {
	names := map[string]string{} // by their form in lower case
	for _, v := range m.Inputs() {
		if n, _ := onnx.Elements(dims[v.Name]); v.Type.IsFloat() && n == 1 {
			names[strings.ToLower(v.Name)] = v.Name
		}
	}
	bounds := map[string]bound{}
	for _, words := range [][2]string{{"min", "max"}, {"lower", "upper"}, {"low", "high"}} {
		for lower, name := range names {
			before, after, isLower := strings.Cut(lower, words[0])
			upper, isPair := names[before+words[1]+after]
			if !isLower || !isPair {
				continue
			}
			low, high, what := int64(lowerBound), int64(upperBound), "bound"
			if isFrequency(before + after) {
				low, high, what = lowerFrequency, rate/2, "bound of a frequency"
			}
			bounds[name], bounds[upper] = bound{low, "the lower " + what + " by its name"}, bound{high, "the upper " + what + " by its name"}
		}
	}
	return bounds
}

// isFrequency reports whether what remains of a bound's name is a frequency: the f of fmin, the
// frequency of min_frequency.
func isFrequency(name string) bool {
	name = strings.Trim(name, "_-. ")
	return slices.Contains([]string{"f", "f0", "hz", "f_hz"}, name) || strings.Contains(name, "freq") || strings.Contains(name, "pitch")
}
