package profile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tuner/journal"
	"tuner/modelconfig"
	"tuner/precision/accuracy"
	"tuner/profile"
	"tuner/search"
	"tuner/spec"
)

// A model with two instance groups has no single count to search. That must be said before anything is measured.
func TestSpaceThatCannotBeConfiguredBeginsNoJournal(t *testing.T) {
	t.Parallel()
	text := `name: "m" backend: "onnxruntime" max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: 8 } output { name: "y" data_type: TYPE_FP32 dims: 8 }
instance_group [ { name: "a" kind: KIND_CPU count: 1 }, { name: "b" kind: KIND_CPU count: 1 } ]`
	config, err := modelconfig.Parse("config.pbtxt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := spec.ParseProfile("p.yaml", []byte("model: m.onnx\nspace: {instance_count: [1, 2]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p.Output = t.TempDir()
	setup := profile.Setup{Profile: p, Subject: profile.Subject{Name: "m", Config: config}, Facts: search.Facts{Batching: true}}
	_, err = profile.OpenLog(setup, time.Unix(0, 0))
	if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), "p.yaml: space: ") ||
		!strings.Contains(err.Error(), "needs a single one") {
		t.Errorf("error %v; want an InputError that names the profile's space and the groups", err)
	}
	if _, _, err := journal.Read(p.Output); err == nil {
		t.Error("a journal was begun")
	}
}

// A journal goes on only while the same variants are rejected and the same runtimes are compared.
func TestResumeComparesVariantsAndRuntimes(t *testing.T) {
	t.Parallel()
	p, subject, _ := variantCase(t, "output: out\nspace: {precision: [fp32, int8]}")
	setup := profile.Setup{Profile: p, Subject: subject, Facts: search.Facts{Batching: true},
		Runtime:  journal.RuntimeInfo{Flavour: "cpu", Version: "1.31.1"},
		Variants: []journal.Variant{{Precision: "int8", Accuracy: map[string]accuracy.Report{"cpu": {Rows: 4, Outputs: map[string]accuracy.Figures{}}}}}}
	open := func(s profile.Setup) (profile.Log, error) { return profile.OpenLog(s, time.Unix(0, 0)) }
	log, err := open(setup)
	if err != nil {
		t.Fatal(err)
	}
	if got := log.Header().Variants; len(got) != 1 || got[0].Accuracy["cpu"].Rows != 4 {
		t.Errorf("header has the variants %+v", got)
	}
	closed := func(log profile.Log, err error) error {
		if err != nil {
			return err
		}
		return log.Close()
	}
	if err := closed(log, nil); err != nil {
		t.Fatal(err)
	}
	if err := closed(open(setup)); err != nil {
		t.Errorf("the same campaign: %v", err)
	}
	rejected, runtimes := setup, setup
	rejected.Variants = []journal.Variant{{Precision: "int8", Rejected: map[string]string{"openvino": "x"}}, {Precision: "fp16", Rejected: map[string]string{"": "y"}}}
	runtimes.Runtimes = []journal.RuntimeInfo{{Flavour: "cpu", Version: "1.31.1"}, {Flavour: "openvino", Version: "1.24.1"}}
	for want, s := range map[string]profile.Setup{
		"rejected variants: none then, int8 on openvino, fp16 now":       rejected,
		"ONNX Runtime builds: one then, cpu@1.31.1, openvino@1.24.1 now": runtimes,
	} {
		if err := closed(open(s)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
