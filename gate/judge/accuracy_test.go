package judge

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/gate"
	"tuner/model/precision"
	"tuner/model/precision/accuracy"
	"tuner/spec"
)

// The result has the candidate's figure in its place. Without a comparison both sides have the same
// file, unless the variant was refused.
func TestNewAccuracy(t *testing.T) {
	t.Parallel()
	least := 0.99
	setup := gate.Setup{Spec: spec.Gate{Accuracy: spec.Accuracy{Limit: &accuracy.Limit{Metric: "cosine", Min: &least}}}}
	compared := map[string]accuracy.Report{"cpu": {Rows: 64, Outputs: map[string]accuracy.Figures{"y": {CosineMean: 0.98}}}}
	for name, tt := range map[string]struct {
		variant   precision.Variant
		synthetic bool
		want      gate.Accuracy
	}{
		"data":      {precision.Variant{Accuracy: compared}, false, gate.Accuracy{Value: 0.98, Note: "on 64 rows"}},
		"synthetic": {precision.Variant{Accuracy: compared}, true, gate.Accuracy{Value: 0.98, Note: "on 64 rows of random inputs; accuracy: {data: FILE} takes your own"}},
		"missed": {precision.Variant{Accuracy: compared, Rejected: map[string]string{"cpu": "too far"}}, false,
			gate.Accuracy{Value: 0.98, Miss: "too far", Note: "on 64 rows"}},
		"refused":       {precision.Variant{Rejected: map[string]string{"cpu": "it does not run"}}, false, gate.Accuracy{Value: math.NaN(), Miss: "it does not run"}},
		"the same file": {precision.Variant{}, false, gate.Accuracy{Value: math.NaN(), Note: "the same file serves on both sides"}},
		"another place": {precision.Variant{Accuracy: map[string]accuracy.Report{"openvino": {}}}, false,
			gate.Accuracy{Value: math.NaN(), Note: "the same file serves on both sides"}},
	} {
		tt.want.Limit = "cosine ≥ 0.99"
		got := newAccuracy(setup, tt.variant, "cpu", tt.synthetic)
		if diff := cmp.Diff(&tt.want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
