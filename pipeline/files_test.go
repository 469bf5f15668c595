package pipeline

import (
	"slices"
	"testing"
)

// Other rows and another mix of shapes make another run.
func TestOtherRequestsAreAnotherRun(t *testing.T) {
	t.Parallel()
	text := func(inputs string) []byte { return []byte("model: m.onnx\nload: {inputs: {" + inputs + "}}\n") }
	const mix = "mix: {dimension: sequence, values: {16: 6, 64: 3}}"
	for _, c := range []struct {
		there, asked string
		isSame       bool
	}{
		{"data: a.npz", "data: ./a.npz", true},
		{"data: a.npz", "data: b.npz", false},
		{"", "data: a.npz", false}, // random values, and rows
		{mix, "mix: {dimension: sequence, values: {16: 6, 64: 3}}", true},
		{mix, "mix: {dimension: sequence, values: {16: 6, 64: 4}}", false},
		{mix, "mix: {dimension: sequence, histogram: a.csv}", false},
		{"mix: {dimension: sequence, histogram: a.csv}", "mix: {dimension: sequence, histogram: ./a.csv}", true},
		{"mix: {dimension: sequence, histogram: a.csv}", "mix: {dimension: sequence, histogram: b.csv}", false},
		{mix + ", shape: {image: [3, 8]}", mix + ", shape: {image: [3, 9]}", false},
	} {
		for _, texts := range [][2][]byte{{text(c.there), text(c.asked)}, {text(c.asked), text(c.there)}} {
			different, _, err := compareProfiles("profile.yaml", texts[0], texts[1])
			if isSame := len(different) == 0; err != nil || isSame != c.isSame || !isSame && !slices.Equal(different, []string{"load.inputs"}) {
				t.Errorf("%s%sdiffer in %v, %v", texts[0], texts[1], different, err)
			}
		}
	}
}
