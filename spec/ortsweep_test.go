package spec

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/search"
	"tuner/spec/document"
	"tuner/spec/knobs"
)

func TestSweepDefaults(t *testing.T) {
	t.Parallel()
	s, err := ParseSweep("work/ortsweep.yaml", []byte("model: minilm.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Model.Path != "work/minilm.onnx" || s.Name != "minilm" || s.Output != "work/out/minilm-ortsweep" || s.DeployTarget != TargetTuner {
		t.Errorf("model %q, name %q, output %q, target %q", s.Model.Path, s.Name, s.Output, s.DeployTarget)
	}
	if s.Measure != SweepLatency || s.Batch != 1 || s.Sessions != 1 || s.Search.Budget.Time != 3*time.Minute {
		t.Errorf("measure %q, batch %d, sessions %d, budget %v", s.Measure, s.Batch, s.Sessions, s.Search.Budget.Time)
	}
	if s.Accuracy.Limit == nil {
		t.Error("int8 is in the usual space, but no limit of accuracy")
	}
	// With two cores, 1 and 2 threads are added to the default space.
	values := map[string][]search.Value{}
	for _, k := range s.Space(search.Facts{Cores: 2, Batching: true}).Knobs {
		values[k.Name] = k.Values
	}
	if diff := cmp.Diff([]search.Value{"1", "2"}, values[search.KnobIntraOpThreads]); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]search.Value{"fp32", "int8", "int8_static"}, values[search.KnobPrecision]); diff != "" {
		t.Errorf("precisions (-want +got):\n%s", diff)
	}
	if !slices.Contains(values[search.KnobExecutionProvider], "xnnpack") || slices.Contains(values[search.KnobExecutionProvider], knobs.Auto) {
		t.Errorf("auto is expanded to %q", values[search.KnobExecutionProvider])
	}
}

// docs/reference/ortsweep.md: there is a limit if the space has other precisions or providers.
func TestSweepLimit(t *testing.T) {
	t.Parallel()
	for space, want := range map[string]bool{
		"intra_op_threads: [1, 2]":                         false,
		"execution_provider: cpu, precision: fp32":         false,
		"execution_provider: [cpu, openvino]":              true,
		"execution_provider: auto":                         true,
		"execution_provider: cpu, precision: [fp32, int8]": true,
	} {
		s, err := ParseSweep("s.yaml", []byte("model: m.onnx\nspace: {"+space+"}"))
		if err != nil {
			t.Fatal(err)
		}
		if has := s.Accuracy.Limit != nil; has != want {
			t.Errorf("%s: a limit: %t, want %t", space, has, want)
		}
	}
}

func TestSweepFields(t *testing.T) {
	t.Parallel()
	s, err := ParseSweep("s.yaml", []byte(`
model: m.onnx
measure: throughput
batch: 8
sessions: 2
search: {budget: 30s, seed: 7, window: 100ms}
space: {intra_op_threads: [1, 2], session.dynamic_block_base: "4"}
load: {inputs: {shape: {ids: [32]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Measure != SweepThroughput || s.Batch != 8 || s.Sessions != 2 || s.Search.Seed != 7 || s.Search.Window != 100*time.Millisecond {
		t.Errorf("read as %+v", s)
	}
	space := s.Space(search.Facts{Cores: 2, Batching: true})
	if len(space.Knobs) != 2 || space.Load.BatchSize != 8 {
		t.Errorf("space is %+v", space)
	}
	if got := s.WithRuntimes([]string{"cpu", "openvino"}); len(got.Knobs) != 2 {
		t.Error("a file with a space gets builds that it does not name")
	}
}

// Options that lower the precision are accepted for every place of the section that allows them.
func TestSweepUncheckedOptions(t *testing.T) {
	t.Parallel()
	const space, accuracy = "space: {tensorrt.precision_mode: FP16}\n", "accuracy: {unchecked_options: true}\n"
	for _, text := range []string{space + accuracy, accuracy + space} {
		if s, err := ParseSweep("s.yaml", []byte("model: m.onnx\n"+text)); err != nil || len(s.Knobs) != 1 {
			t.Errorf("%q: %v, knobs %v", text, err, s.Knobs)
		}
	}
}

// A sweep without a space compares the installed builds. A single build makes no knob.
func TestSweepWithRuntimes(t *testing.T) {
	t.Parallel()
	s, err := ParseSweep("s.yaml", []byte("model: m.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cpu", "openvino"}, s.WithRuntimes([]string{"cpu", "openvino"}).Runtimes()); diff != "" {
		t.Errorf("builds (-want +got):\n%s", diff)
	}
	if got := s.WithRuntimes([]string{"cpu"}).Runtimes(); len(got) != 0 {
		t.Errorf("one build makes the knob %q", got)
	}
}

func TestSweepMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"batch: 0\nmodel: m":                     "s.yaml:1: batch: is out of range",
		"{}":                                     "model: is required",
		"model: m\nspace: {max_batch_size: [4]}": "max_batch_size is not a setting of a session",
		"model: m\nspace: {instance_count: [1, 2]}":                      "write sessions: N",
		"model: m\nobjective: throughput":                                "belongs to a profile.yaml",
		"model: m\nload: {concurrency: [1]}":                             "load.concurrency: belongs to a profile.yaml",
		"model: m\nload: {client_batch_size: 4}":                         "write batch: N",
		"model: m\nsearch: {strategy: grid}":                             "belongs to a profile.yaml",
		"model: m\nconstraints: {latency_p99: {max: 30ms}}":              "names another constraint than accuracy",
		"model: m\nsessions: 2":                                          "contradicts measure: latency",
		"model: m\nmesure: latency":                                      `did you mean "measure"?`,
		"model: m\nmeasure: speed":                                       "is not known",
		"model: m\nspace: {precision: [fp32, fp64]}":                     "is not a precision that tuner makes",
		"model: m\nmeasure: throughput\nsessions: 2\nsearch: {seed: -1}": "search.seed",
	} {
		_, err := ParseSweep("s.yaml", []byte(text))
		var es document.Errors
		if !errors.As(err, &es) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
}

func FuzzParseSweep(f *testing.F) {
	seeds(f)
	f.Add([]byte("model: m\nmeasure: throughput\nbatch: 8\nsessions: 2\nspace: {intra_op_threads: [1], openvino.num_of_threads: [1]}"))
	facts := search.Facts{Cores: 4, Batching: true}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		s, err := ParseSweep("f.yaml", text)
		if err != nil {
			checkErrors(t, err)
			return
		}
		again, err := ParseSweep(s.Path, s.Text)
		if diff := cmp.Diff(s, again, cmp.AllowUnexported(Sweep{})); err != nil || diff != "" {
			t.Fatalf("a sweep does not read the same from its own text: %v %s", err, diff)
		}
		if s.Model.Path == "" || s.Output == "" || s.Batch < 1 || s.Sessions < 1 || s.Search.Budget.Time <= 0 || len(s.Space(facts).Knobs) == 0 {
			t.Fatalf("sweep without its defaults: %+v", s)
		}
	})
}

// The examples of the page in docs/reference are valid.
func TestSweepDocs(t *testing.T) {
	t.Parallel()
	parse := func(text string) error { _, err := ParseSweep("s.yaml", []byte(text)); return err }
	page := readPage(t, "../docs/reference/ortsweep.md")
	found := 0
	for block := range strings.SplitSeq(page, "```yaml\n") {
		example, _, fenced := strings.Cut(block, "```")
		if fenced && strings.HasPrefix(example, "model:") {
			found++
			if err := parse(example); err != nil {
				t.Error(err)
			}
		}
	}
	if found == 0 {
		t.Error("the page has no example")
	}
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
