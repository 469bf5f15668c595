package report_test

import (
	"bytes"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/profile/journal"
	"tuner/report/figures"
	resultjson "tuner/report/json"
	"tuner/report/markdown"
	"tuner/report/reporttest"
	"tuner/search"
)

// With several builds, reports name each one, and the one in which each variant was judged.
func TestSeveralRuntimesAreNamed(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.WithVariants(t), analyze.Options{})
	if text := figures.RuntimesText(r.Header); text != "1.31.1" {
		t.Errorf("the text of one build is %q", text)
	}
	b := reporttest.WithVariants(t).Campaign()
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
	if text := figures.RuntimesText(r.Header); text != "cpu@1.31.1, openvino@1.24.1" {
		t.Errorf("the text of two builds is %q", text)
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
	check(func(b *bytes.Buffer) error { return markdown.Write(b, r, false) }, "| int8 | cpu in cpu@1.31.1 | 58.7 MB |")
	check(func(b *bytes.Buffer) error { return markdown.Write(b, r, false) }, "- int8 on openvino in openvino@1.24.1: cosine is 0.9612")
	check(func(b *bytes.Buffer) error { return resultjson.Write(b, r) }, `"runtimes": [ "cpu@1.31.1", "openvino@1.24.1" ]`)
	check(func(b *bytes.Buffer) error { return resultjson.Write(b, r) }, `{ "execution_provider": "openvino", "runtime": "openvino@1.24.1" }`)
	check(func(b *bytes.Buffer) error { return resultjson.Write(b, r) }, `"rejected": [ { "execution_provider": "openvino", "runtime": "openvino@1.24.1", "reason":`)
	best, _ := r.Winner()
	if text := figures.AccuracyReason(r, best); !strings.HasPrefix(text, "Accuracy of int8 on cpu in cpu@1.31.1: cosine 0.9931 ") {
		t.Errorf("accuracy of the best is %q", text)
	}
}

// inRuntimes names places like a campaign with two builds: cpu in one, openvino in the other.
func inRuntimes[V any](byPlace map[string]V) {
	for provider, runtime := range map[string]string{"cpu": "cpu@1.31.1", "openvino": "openvino@1.24.1"} {
		if v, ok := byPlace[provider]; ok {
			byPlace[search.Place{Provider: provider, Runtime: runtime}.String()] = v
			delete(byPlace, provider)
		}
	}
}
