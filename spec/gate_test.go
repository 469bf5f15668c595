package spec

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/precision/recipe"
	"tuner/search"
	"tuner/spec/document"
)

func TestGateDefaults(t *testing.T) {
	t.Parallel()
	text := "baseline: old.onnx\ncandidate: minilm.onnx"
	g, err := ParseGate("work/gate.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := Gate{Path: "work/gate.yaml", Text: []byte(text), Name: "minilm", Output: "work/out/minilm-gate", History: "work/out/minilm-gate/history.jsonl",
		Baseline: GateSide{Model: "work/old.onnx"}, Candidate: GateSide{Model: "work/minilm.onnx"}, Load: measure.Load{BatchSize: 1},
		Metrics:  []GateMetric{{measure.Throughput, 0.02}, {measure.LatencyP99, 0.1}},
		Accuracy: Accuracy{MaxKept: 0.25}, Budget: 15 * time.Minute, Window: 500 * time.Millisecond}
	if diff := cmp.Diff(want, g); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// At a rate the schedule sets the throughput. Without a baseline there is nothing to compare.
	for text, want := range map[string][]GateMetric{
		"baseline: b.onnx\ncandidate: c.onnx\nload: {request_rate: 200}": {{measure.LatencyAvg, 0.02}, {measure.LatencyP99, 0.1}},
		"candidate: c.onnx\nlimits: {memory: {max: 1GiB}}":               nil,
	} {
		g, err := ParseGate("g.yaml", []byte(text))
		if diff := cmp.Diff(want, g.Metrics); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestGateFields(t *testing.T) {
	t.Parallel()
	g, err := ParseGate("work/gate.yaml", []byte(`
name: encoder
output: results
history: ../history.jsonl
baseline: {model: base, runtime: cpu@1.30.0, engine: old/tuner}
candidate: {model: new.onnx, config: new.pbtxt, runtime: lib/libonnxruntime.so}
load: {request_rate: 200, client_batch_size: 2, inputs: {shape: {ids: [32]}}}
metrics: [latency_p50, {name: perf_latency_p99, margin: 5%}, {name: memory}]
limits:
  latency_p99: {max: 30ms}
  memory: {max: 1GiB}
  accuracy: {metric: cosine, min: 0.99}
accuracy: {data: rows.npz, rows: 10}
budget: 5m
window: 250ms
inconclusive: fail
`))
	if err != nil {
		t.Fatal(err)
	}
	if want := (GateSide{Model: "work/base", Runtime: "cpu@1.30.0", Engine: "work/old/tuner"}); g.Baseline != want {
		t.Errorf("baseline %+v", g.Baseline)
	}
	if want := (GateSide{Model: "work/new.onnx", Config: "work/new.pbtxt", Runtime: "work/lib/libonnxruntime.so"}); g.Candidate != want {
		t.Errorf("candidate %+v", g.Candidate)
	}
	if want := []GateMetric{{measure.LatencyP50, 0.02}, {measure.LatencyP99, 0.05}, {measure.Memory, 0.02}}; !cmp.Equal(want, g.Metrics) {
		t.Errorf("metrics %+v", g.Metrics)
	}
	limits := []search.Constraint{{Metric: measure.LatencyP99, Max: pointer(0.03)}, {Metric: measure.Memory, Max: pointer(float64(1 << 30))}}
	if diff := cmp.Diff(limits, g.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if g.Name != "encoder" || g.Output != "work/results" || g.History != "history.jsonl" || g.Budget != 5*time.Minute || g.Window != 250*time.Millisecond ||
		g.Inconclusive != GateFail || g.Load != (measure.Load{RequestRate: 200, BatchSize: 2}) || g.Accuracy.Limit == nil || g.Accuracy.Data != "work/rows.npz" {
		t.Errorf("read as %+v", g)
	}
	if diff := cmp.Diff([]measure.Metric{measure.LatencyP50, measure.LatencyP99, measure.Memory}, g.AllMetrics()); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	p := g.Profile("candidate", g.Candidate)
	if p.Model.Path != "work/new.onnx" || p.Model.Config != "work/new.pbtxt" || p.Name != "encoder" || p.Load.BatchSize != 2 || p.Path != "work/gate.yaml: candidate" ||
		p.Model.Precisions[recipe.Original] != "work/new.onnx" || len(p.Inputs.Shape) != 1 {
		t.Errorf("profile %+v", p)
	}
	saved, err := ParseGate("work/gate.yaml", []byte("baseline: base.json\ncandidate: new.onnx"))
	if err != nil || saved.Baseline != (GateSide{Saved: "work/base.json"}) {
		t.Errorf("a saved baseline is %+v, %v", saved.Baseline, err)
	}
}

func TestGateMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{}":                              "g.yaml:1: candidate: is required",
		"candidate: base.json":            "is not a model: a candidate is always measured",
		"candidate: {config: c.pbtxt}":    "candidate: has no model",
		"candidate: c\nmetrics: [memory]": "g.yaml:2: metrics: cannot be compared without a baseline",
		"baseline: b\ncandidate: c\nmetrics: [cost]":                                "metrics[0]: follows from throughput and a price",
		"baseline: b\ncandidate: c\nmetrics: [error_rate]":                          "has a fixed limit",
		"baseline: b\ncandidate: c\nmetrics: [memory, memory]":                      "names the metric memory a second time",
		"baseline: b\ncandidate: c\nmetrics: [{margin: 2%}]":                        "has no name",
		"baseline: b\ncandidate: c\nmetrics: [{name: memory, margin: 0}]":           "must be above 0 and below 1",
		"baseline: b\ncandidate: c\nmetrics: [{name: memory, margin: 2}]":           "is not a share",
		"baseline: b\ncandidate: c\nmetrics: [throughput]\nload: {request_rate: 5}": "cannot compare throughput at 5 requests/s",
		"candidate: c\nload: {concurrency: [1, 2]}":                                 "a gate has one load",
		"candidate: c\nload: {concurrency: 1, request_rate: 2}":                     "contradicts concurrency",
		"candidate: c\nlimits: {latency_p99: {min: 3ms}}":                           "would reject the better values",
		"candidate: c\nlimits: {cost: {max: 3}}":                                    "limits.cost: follows from",
		"candidate: c\nlimits: {error_rate: {max: 5%}}":                             "limits.error_rate: has a fixed limit",
		"candidate: c\nlimits: {accuracy: {metric: cosine, min: 0.9}}":              "needs the baseline's model",
		"baseline: b\ncandidate: c\nlimits: {accuracy: {metric: cosine, max: 0.9}}": "takes min, not max",
		"baseline: b\ncandidate: c\naccuracy: {rows: 5}":                            "has no effect without a limit",
		"baseline: b\ncandidate: c\nmetrics: [gpu_memory]":                          "metrics: cannot compare the gpu_memory of two engines",
		"baseline: b\ncandidate: c\nlimits: {gpu_memory: {max: 1GB}}":               "limits: cannot compare the gpu_memory of two engines",
		"candidate: c\nbudget: 100":                                                 "is a duration without a unit",
		"candidate: c\ninconclusive: maybe":                                         "is not known",
		"candidat: c":                                                               `did you mean "candidate"?`,
	} {
		_, err := ParseGate("g.yaml", []byte(text))
		var es document.Errors
		if !errors.As(err, &es) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"baseline: b.json\ncandidate: c\nmetrics: [gpu_memory]", "candidate: c\nlimits: {gpu_memory: {max: 1GB}}"} {
		if _, err := ParseGate("g.yaml", []byte(text)); err != nil {
			t.Errorf("%q: the candidate is alone on the GPUs: %v", text, err)
		}
	}
	// One value is reported once.
	_, err := ParseGate("g.yaml", []byte("baseline: b\ncandidate: c\nmetrics: [{name: memory, margin: 2}]"))
	var es document.Errors
	if !errors.As(err, &es) || len(es) != 1 {
		t.Errorf("%v, want one mistake", err)
	}
}

func FuzzParseGate(f *testing.F) {
	seeds(f)
	f.Add([]byte("baseline: {model: a, engine: b}\ncandidate: b\nmetrics: [{name: latency_p99, margin: 5%}]\nlimits: {memory: {max: 1GiB}}\ninconclusive: pass"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		g, err := ParseGate("f.yaml", text)
		if err != nil {
			checkErrors(t, err)
			return
		}
		again, err := ParseGate(g.Path, g.Text)
		if diff := cmp.Diff(g, again); err != nil || diff != "" {
			t.Fatalf("a gate does not read the same from its own text: %v %s", err, diff)
		}
		for _, m := range g.Metrics {
			if !(m.Margin > 0 && m.Margin < 1) {
				t.Fatalf("margin %g", m.Margin)
			}
		}
		if g.Candidate.Model == "" || g.Output == "" || g.History == "" || modelconfig.ServableName(g.Name) != g.Name || g.Budget <= 0 || g.Window <= 0 || g.Load.BatchSize < 1 {
			t.Fatalf("gate without its defaults: %+v", g)
		}
	})
}

// The examples of the page in docs/reference are valid.
func TestGateDocs(t *testing.T) {
	t.Parallel()
	parse := func(text string) error { _, err := ParseGate("g.yaml", []byte(text)); return err }
	page := readPage(t, "../docs/reference/gate.md")
	found := 0
	for block := range strings.SplitSeq(page, "```yaml\n") {
		example, _, fenced := strings.Cut(block, "```")
		if fenced && strings.HasPrefix(example, "baseline:") {
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
