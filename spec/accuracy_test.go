package spec

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/precision"
	"tuner/model/precision/accuracy"
	"tuner/search"
	"tuner/spec/document"
)

func TestAccuracyDefaults(t *testing.T) {
	t.Parallel()
	check := func(text string, want *accuracy.Limit) {
		t.Helper()
		if diff := cmp.Diff(want, parse(t, "model: a.onnx\n"+text).Accuracy.Limit); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	check("", nil)
	check("space: {precision: [fp32]}", nil)
	check("space: {execution_provider: auto}", nil)
	check("space: {precision: [fp32, int8]}", &accuracy.Limit{Metric: "cosine", Min: pointer(0.99)})
	check("space: {precision: {fp32: a.onnx, small: b.onnx}}", &accuracy.Limit{Metric: "cosine", Min: pointer(0.99)})
	check("space: {execution_provider: auto}\naccuracy: {rows: 8}", &accuracy.Limit{Metric: "cosine", Min: pointer(0.99)})
	check("space: {precision: int8}\nconstraints: {accuracy: {metric: mean_abs_error, max: 0.5}}",
		&accuracy.Limit{Metric: "mean_abs_error", Max: pointer(0.5)})
	check("space: {execution_provider: auto}\nconstraints: {accuracy: {metric: command, min: 3}}\naccuracy: {command: ./judge.sh}",
		&accuracy.Limit{Metric: "command", Min: pointer(3.0), Command: "./judge.sh"})
}

func TestConvertedPrecisions(t *testing.T) {
	t.Parallel()
	p := parse(t, "model: a.onnx\nspace: {precision: [int8, fp32, fp16]}")
	want := ModelSource{Path: "work/a.onnx", Precisions: map[string]string{"fp32": "work/a.onnx"}, Convert: []string{"int8", "fp16"}}
	if diff := cmp.Diff(want, p.Model); diff != "" {
		t.Error(diff)
	}
	// All of them can be candidates. The search later folds those that cannot be made or are
	// rejected.
	if diff := cmp.Diff([]string{"fp32", "int8", "fp16"}, p.Space(search.Facts{}).Facts.Precisions); diff != "" {
		t.Error(diff)
	}
}

// The default share is that of package precision, which this package does not import.
func TestDefaultShareIsThatOfTheMaker(t *testing.T) {
	t.Parallel()
	if got := parse(t, "model: a").Accuracy.MaxKept; got != precision.DefaultMaxKept {
		t.Errorf("max_kept is %v, package precision has %v", got, precision.DefaultMaxKept)
	}
}

func TestRuntimesGetTheirFullNames(t *testing.T) {
	t.Parallel()
	p := parse(t, "model: a\nspace: {runtime: [openvino, cpu]}")
	if diff := cmp.Diff([]string{"openvino", "cpu"}, p.Runtimes()); diff != "" {
		t.Error(diff)
	}
	facts := search.Facts{Runtimes: []search.RuntimeFacts{{Name: "openvino@1.24.1"}, {Name: "cpu@1.31.1"}}}
	want := []search.Value{"openvino@1.24.1", "cpu@1.31.1"}
	if diff := cmp.Diff(want, valuesOf(p.Space(facts))[search.KnobRuntime]); diff != "" {
		t.Error(diff)
	}
	if parse(t, "model: a").Runtimes() != nil {
		t.Error("a profile without the knob has runtimes")
	}
}

func TestAnalysisDoesNotDecideOnAccuracy(t *testing.T) {
	t.Parallel()
	_, err := ParseAnalyze("a.yaml", []byte("input: out\nconstraints: {accuracy: {metric: cosine, min: 0.9}}"), allFormats())
	var es document.Errors
	if !errors.As(err, &es) || len(es) != 1 || es[0].Path != "constraints.accuracy" {
		t.Errorf("error %v, want one at constraints.accuracy", err)
	}
}
