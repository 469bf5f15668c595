package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/journal"
	"tuner/precision/accuracy"
	"tuner/search"
)

// The figure that the limit bounds is the worst output's by that metric, which need not be the one with the least cosine.
func TestLimitedFigureIsNamed(t *testing.T) {
	t.Parallel()
	figures := func(cosine, top5 float64) accuracy.Figures {
		nan := math.NaN()
		return accuracy.Figures{CosineMean: cosine, CosineP1: cosine, CosineMin: cosine, MaxAbs: 0.1, MeanAbs: 0.1, MaxRel: nan, MeanRel: nan,
			Top1: nan, Top5: top5, Neighbour: nan}
	}
	least, half := 0.9, 0.5
	one := accuracy.Report{Rows: 8, Outputs: map[string]accuracy.Figures{"a": figures(0.99, 0.97)}, Command: &half}
	two := accuracy.Report{Rows: 8, Outputs: map[string]accuracy.Figures{"a": figures(0.99, 0.97), "b": figures(0.98, 0.99)}}
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

// With several builds every one is named, and in which of them a variant was judged.
func TestSeveralRuntimesAreNamed(t *testing.T) {
	t.Parallel()
	r := ranked(t, withVariants(t), analyze.Options{})
	if text := subtitle(r); !strings.HasSuffix(text, "ONNX Runtime 1.31.1") {
		t.Errorf("subtitle of one build is %q", text)
	}
	b := withVariants(t).Campaign()
	b.Header.Runtimes = []journal.RuntimeInfo{b.Header.Runtime, {Flavour: "openvino", Version: "1.24.1"}}
	b.Facts.Runtimes = []search.RuntimeFacts{{Name: "cpu@1.31.1", Unavailable: map[string]string{"openvino": "no"}}, {Name: "openvino@1.24.1"}}
	for _, v := range b.Header.Variants {
		inRuntimes(v.Accuracy)
		inRuntimes(v.Rejected)
	}
	r, err := analyze.Analyze(b, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := subtitle(r); !strings.HasSuffix(text, "ONNX Runtime cpu@1.31.1, openvino@1.24.1") {
		t.Errorf("subtitle of two builds is %q", text)
	}
	check := func(write func(*bytes.Buffer) error, want string) {
		t.Helper()
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	check(func(b *bytes.Buffer) error { return WriteMarkdown(b, r, false) }, "| int8 | cpu in cpu@1.31.1 | 58.7 MB |")
	check(func(b *bytes.Buffer) error { return WriteMarkdown(b, r, false) }, "- int8 on openvino in openvino@1.24.1: cosine is 0.9612")
	check(func(b *bytes.Buffer) error { return WriteJSON(b, r) }, `"runtimes": [ "cpu@1.31.1", "openvino@1.24.1" ]`)
	check(func(b *bytes.Buffer) error { return WriteJSON(b, r) }, `{ "execution_provider": "openvino", "runtime": "openvino@1.24.1" }`)
	check(func(b *bytes.Buffer) error { return WriteJSON(b, r) }, `"rejected": [ { "execution_provider": "openvino", "runtime": "openvino@1.24.1", "reason":`)
	best, _ := r.Winner()
	if text := accuracyReason(r, best); !strings.HasPrefix(text, "Accuracy of int8 on cpu in cpu@1.31.1: cosine 0.9931 ") {
		t.Errorf("accuracy of the best is %q", text)
	}
}

// inRuntimes names places as a campaign with two builds does: cpu in the one, openvino in the other.
func inRuntimes[V any](byPlace map[string]V) {
	for provider, runtime := range map[string]string{"cpu": "cpu@1.31.1", "openvino": "openvino@1.24.1"} {
		if v, ok := byPlace[provider]; ok {
			byPlace[search.Place{Provider: provider, Runtime: runtime}.String()] = v
			delete(byPlace, provider)
		}
	}
}

// The gain of a stage is the objective's, that of a load the throughput's.
func TestGainsSayOfWhat(t *testing.T) {
	t.Parallel()
	profile := strings.Replace(analyzetest.Profile, "objective: throughput", "objective: latency_p99", 1)
	best := analyzetest.Candidate(2, 1, 16)
	r := ranked(t, analyzetest.New(t, profile).Measure(search.Candidate{}, 4, 8).Measure(best, 4, 8), analyze.Options{})
	var b strings.Builder
	writeStages(&b, r, false)
	for _, want := range []string{"| p99 | gain in p99 |", "after both stages (infer/s) | gain in throughput |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
