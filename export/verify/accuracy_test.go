package verify

import (
	"math"
	"testing"

	"tuner/model/precision"
	"tuner/model/precision/accuracy"
)

// The output with the lowest cosine counts. Outputs without a cosine do not. Other builds may
// differ by a thousandth.
func TestSameAccuracy(t *testing.T) {
	t.Parallel()
	v := precision.Variant{Accuracy: map[string]accuracy.Report{"cpu": {Rows: 64, Outputs: map[string]accuracy.Figures{
		"a": {CosineMean: 0.999}, "b": {CosineMean: 0.9951}, "c": {CosineMean: math.NaN()}}}}}
	for _, tt := range []struct {
		provider string
		reported float64
		status   Status
		text     string
	}{
		{"cpu", 0.9951, Passed, "cosine 0.9951 with the original on 64 rows; reported 0.9951"},
		{"cpu", 0.9942, Passed, "cosine 0.9951 with the original on 64 rows; reported 0.9942"},
		{"cpu", 0.9970, Failed, "cosine 0.9951 with the original on 64 rows; reported 0.997"},
		{"cpu", 0.9930, Failed, "cosine 0.9951 with the original on 64 rows; reported 0.993"},
		{"openvino", 0.9951, Skipped, "this model on this provider is the one that all others are compared with"},
	} {
		status, text, err := sameAccuracy(v, tt.provider, tt.reported)
		if status != tt.status || text != tt.text || err != nil {
			t.Errorf("%s, reported %g: %s, %q, %v; want %s, %q", tt.provider, tt.reported, status, text, err, tt.status, tt.text)
		}
	}
}
