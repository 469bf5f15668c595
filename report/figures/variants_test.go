package figures

import (
	"math"
	"testing"

	"tuner/analyze"
	"tuner/model/precision/accuracy"
	"tuner/profile/journal"
)

// The limit bounds the figure of the output that is worst in that metric. Another output may have
// the lowest cosine.
func TestLimitedFigureIsNamed(t *testing.T) {
	t.Parallel()
	ObjectiveValues := func(cosine, top5 float64) accuracy.Figures {
		nan := math.NaN()
		return accuracy.Figures{CosineMean: cosine, CosineP1: cosine, CosineMin: cosine, MaxAbs: 0.1, MeanAbs: 0.1, MaxRel: nan, MeanRel: nan,
			Top1: nan, Top5: top5, Neighbour: nan}
	}
	least, half := 0.9, 0.5
	one := accuracy.Report{Rows: 8, Outputs: map[string]accuracy.Figures{"a": ObjectiveValues(0.99, 0.97)}, Command: &half}
	two := accuracy.Report{Rows: 8, Outputs: map[string]accuracy.Figures{"a": ObjectiveValues(0.99, 0.97), "b": ObjectiveValues(0.98, 0.99)}}
	check := func(l accuracy.Limit, report accuracy.Report, row, text string) {
		t.Helper()
		r := analyze.Result{}
		r.Accuracy.Limit = &l
		if got := accuracyText(r, report); got != text {
			t.Errorf("%s: text is %q, want %q", l.Metric, got, text)
		}
		cells := variantRow(r, journal.Variant{Accuracy: map[string]accuracy.Report{"cpu": report}}, "cpu")
		if got := cells[len(cells)-2]; got != row {
			t.Errorf("%s: cell is %q, want %q", l.Metric, got, row)
		}
	}
	check(accuracy.Limit{Metric: "cosine", Min: &least}, one, "cosine 0.99", "cosine 0.99 (least 0.99), largest error 0.1, command 0.5")
	check(accuracy.Limit{Metric: "cosine", Min: &least}, two, `cosine 0.98 (output "b")`,
		`cosine 0.98 (output "b"), cosine 0.98 (least 0.98), largest error 0.1`)
	check(accuracy.Limit{Metric: "top5_agreement", Min: &least}, two, `top5 agreement 0.97 (output "a")`,
		`top5 agreement 0.97 (output "a"), cosine 0.98 (least 0.98), largest error 0.1`)
	check(accuracy.Limit{Metric: "command", Command: "score", Min: &least}, one, "command 0.5", "command 0.5, cosine 0.99 (least 0.99), largest error 0.1")
}
