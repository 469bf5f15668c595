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

// The output with the lowest cosine stands for all. Outputs without one, such as whole numbers, never
// hide it, whatever their names. Without any cosine it is the largest error that counts.
func TestLeastAgreement(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	whole := accuracy.Figures{CosineMean: nan, MaxAbs: nan, Top1: 0.9}
	single := func(most float64) accuracy.Figures { return accuracy.Figures{CosineMean: nan, MaxAbs: most} }
	row := func(cosine float64) accuracy.Figures { return accuracy.Figures{CosineMean: cosine, MaxAbs: 0.1} }
	for _, c := range []struct {
		outputs map[string]accuracy.Figures
		want    string
	}{
		{nil, ""},
		{map[string]accuracy.Figures{"label": whole}, "label"},
		{map[string]accuracy.Figures{"label": whole, "probabilities": row(0.97)}, "probabilities"},
		{map[string]accuracy.Figures{"probabilities": row(0.97), "z": whole}, "probabilities"},
		{map[string]accuracy.Figures{"a": row(0.97), "b": row(0.96), "c": row(0.98)}, "b"},
		{map[string]accuracy.Figures{"a": single(9), "b": row(0.97)}, "b"}, // the larger error may be of a larger unit
		{map[string]accuracy.Figures{"b": row(0.97), "c": single(9)}, "b"},
		{map[string]accuracy.Figures{"a": whole, "b": single(1), "c": single(2), "d": single(1)}, "c"},
		{map[string]accuracy.Figures{"a": single(1), "b": whole}, "a"},
	} {
		if got, _, ok := figuresOf(accuracy.Report{Outputs: c.outputs}); got != c.want || ok != (c.want != "") {
			t.Errorf("%v: %q (%t), want %q", c.outputs, got, ok, c.want)
		}
	}
}
