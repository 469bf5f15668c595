package gates

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/spec"
)

// The metrics and limits of all models have their names, and those of the server have none.
func TestSeveralModels(t *testing.T) {
	t.Parallel()
	g, err := Parse("dir/gate.yaml", []byte(`
models:
  encoder: {baseline: old.onnx, candidate: new.onnx, load: {request_rate: 60}, limits: {latency_p99: 50ms, accuracy: {metric: cosine, min: 0.99}}}
  ranker: {baseline: {model: r.onnx, runtime: cpu@1.31.1}, candidate: r.onnx, load: {concurrency: 2, client_batch_size: 2}, metrics: [{name: throughput, margin: 5%}]}
metrics: [memory]
limits: {memory: 1GiB}
budget: 3m
`))
	if err == nil || !strings.Contains(err.Error(), "models.ranker.baseline: has another runtime or engine than encoder") {
		t.Fatalf("error %v, want one runtime for all", err)
	}
	g, err = Parse("dir/gate.yaml", []byte(`
models:
  encoder: {baseline: old.onnx, candidate: new.onnx, load: {request_rate: 60}, limits: {latency_p99: 50ms, accuracy: {metric: cosine, min: 0.99}}}
  ranker: {baseline: r.onnx, candidate: r.onnx, load: {concurrency: 2, client_batch_size: 2}, metrics: [{name: throughput, margin: 5%}]}
metrics: [memory]
limits: {memory: 1GiB}
budget: 3m
`))
	if err != nil {
		t.Fatal(err)
	}
	// an open loop fixes the throughput, so its default is the mean latency
	want := []spec.GateMetric{{Metric: "encoder.latency_avg", Margin: 0.02}, {Metric: "encoder.latency_p99", Margin: 0.1}, {Metric: "ranker.throughput", Margin: 0.05}, {Metric: "memory", Margin: 0.02}}
	if diff := cmp.Diff(want, g.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	var limits []measure.Metric
	for _, c := range g.Limits {
		limits = append(limits, c.Metric)
	}
	if diff := cmp.Diff([]measure.Metric{"encoder.latency_p99", "memory"}, limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	encoder := g.Each()[0]
	if g.Name != "encoder+ranker" || g.Output != "dir/out/encoder+ranker-gate" || encoder.Output != g.Output || encoder.Budget != g.Budget ||
		encoder.Candidate.Model != "dir/new.onnx" || encoder.Accuracy.Limit == nil || encoder.Path != "dir/gate.yaml: models.encoder" {
		t.Errorf("gate %+v", g)
	}
	if load := (measure.Load{Concurrency: 2, BatchSize: 2}); g.Models[1].Load != load {
		t.Errorf("load %v, want %v", g.Models[1].Load, load)
	}
}

// Each model has the fields of the server, also as flags have changed them.
func TestEachHasTheServersFields(t *testing.T) {
	t.Parallel()
	g, err := Parse("gate.yaml", []byte("models: {a: {candidate: a.onnx, load: {concurrency: 1}}, b: {candidate: b.onnx, load: {concurrency: 1}}}\nlimits: {memory: 1GB}\nwindow: 2s"))
	if err != nil {
		t.Fatal(err)
	}
	g.Output, g.Budget = "elsewhere", time.Hour
	for i, m := range g.Each() {
		if m.Name != g.Models[i].Name || m.Output != "elsewhere" || m.Budget != time.Hour || m.Window != 2*time.Second || len(m.Models) != 0 {
			t.Errorf("%+v", m)
		}
	}
	one, err := Parse("gate.yaml", []byte("candidate: a.onnx\nlimits: {memory: 1GB}"))
	if list := one.Each(); err != nil || len(list) != 1 || list[0].Name != "a" {
		t.Errorf("%v, %v", list, err)
	}
}

// Any text gives an error, or a gate whose criteria belong to one of its models or to the server.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"models: {a: {baseline: b, candidate: c, load: {request_rate: 9}, metrics: [latency_p99], limits: {throughput: {min: 1}}}}\nmetrics: [memory]\nlimits: {cpu: 2}",
		"models: {a: {candidate: c, load: {concurrency: 1}}, b: {candidate: c, load: {concurrency: 1}}}", "models: {a: &x {candidate: c}, b: *x}", "candidate: a\nmodels:", "models: []",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := Parse("gate.yaml", text)
		if err != nil {
			return
		}
		var names []string
		for _, m := range g.Models {
			names = append(names, m.Name)
		}
		for _, m := range g.AllMetrics() {
			if model, of := m.Split(); len(names) > 0 && model == "" && !isOfServer(of) || model != "" && !slices.Contains(names, model) {
				t.Errorf("%q of the models %q", m, names)
			}
		}
	})
}

// A file of one model is read by package spec.
func TestOneModel(t *testing.T) {
	t.Parallel()
	g, err := Parse("gate.yaml", []byte("candidate: new.onnx\nlimits: {latency_p99: 30ms}\n"))
	if err != nil || len(g.Models) > 0 || g.Name != "new" {
		t.Errorf("%+v, %v", g, err)
	}
}

// All mistakes of a file are reported, each with its place and a remedy.
func TestMistakes(t *testing.T) {
	t.Parallel()
	const ok = "{candidate: b.onnx, load: {concurrency: 1}}"
	for name, test := range map[string]struct{ text, want string }{
		"no model":               {"models: {}", "models: has no model"},
		"no mapping":             {"models: a.onnx", "models: must be a mapping"},
		"a name of a metric":     {"models: {memory: " + ok + "}", "models.memory: collides with the metric of that name"},
		"a name with a dot":      {"models: {a.b: " + ok + "}", "models.a.b: cannot be the name of one of several models"},
		"no candidate":           {"models: {a: {load: {concurrency: 1}}}", "models.a.candidate: is required"},
		"no load":                {"models: {a: {candidate: b.onnx}}", "models.a.load: is required"},
		"a load without traffic": {"models: {a: {candidate: b.onnx, load: {client_batch_size: 2}}}", "models.a.load: is required"},
		"arrivals that repeat":   {"models: {a: {candidate: b.onnx, load: {request_rate: 9, arrivals: {on_off: {on: 1s, off: 1s}}}}}", "models.a.load.arrivals: repeats"},
		"the server's field":     {"models: {a: {candidate: b.onnx, load: {concurrency: 1}, budget: 1m}}", "models.a.budget: does not belong to one of several models"},
		"a model's field":        {"load: {concurrency: 1}\nmodels: {a: " + ok + "}", "load: belongs to a model"},
		"a side":                 {"candidate: c.onnx\nmodels: {a: " + ok + "}", "candidate: belongs to a model"},
		"one baseline":           {"models: {a: {baseline: a.onnx, candidate: b.onnx, load: {concurrency: 1}}, b: " + ok + "}", "models.b: has no baseline, and a has one"},
		"one without":            {"models: {a: " + ok + ", b: {baseline: a.onnx, candidate: b.onnx, load: {concurrency: 1}}}", "models.b: has a baseline, and a has none"},
		"a saved baseline":       {"models: {a: {baseline: a.json, candidate: b.onnx, load: {concurrency: 1}}}", "models.a.baseline: is a saved baseline, which is of one model"},
		"the server's limit":     {"models: {a: {candidate: b.onnx, load: {concurrency: 1}, limits: {memory: 1GB}}}", "models.a.limits.memory: names memory, which is a figure of the server"},
		"energy":                 {"models: {a: {candidate: b.onnx, load: {concurrency: 1}, limits: {energy: 9}}}", "models.a.limits.energy: names energy, which is not known of each of several models"},
		"energy of all":          {"limits: {energy: 9}\nmodels: {a: " + ok + "}", "limits: names energy, which is not a figure of the whole server"},
		"a model's limit":        {"limits: {latency_p99: 9ms}\nmodels: {a: " + ok + "}", "limits: names latency_p99, which is not a figure of the whole server"},
		"accuracy of the server": {"limits: {accuracy: {metric: cosine, min: 0.9}}\nmodels: {a: " + ok + "}", "belongs to a model"},
		"metrics without a side": {"metrics: [memory]\nmodels: {a: " + ok + "}", "metrics: cannot be compared without baselines"},
		"gpu_memory of two":      {"metrics: [gpu_memory]\nmodels: {a: {baseline: a.onnx, candidate: b.onnx, load: {concurrency: 1}}}", "cannot compare the gpu_memory of two engines"},
		"an unknown field":       {"models: {a: {candidate: b.onnx, load: {concurrency: 1}, limit: 1}}", `did you mean "limits"?`},
	} {
		if _, err := Parse("gate.yaml", []byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// The examples of the page are valid.
func TestDocsExamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/gate.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for block := range strings.SplitSeq(string(text), "```yaml\n") {
		if example, _, _ := strings.Cut(block, "```"); strings.HasPrefix(example, Field+":") {
			found++
			if _, err := Parse("gate.md", []byte(example)); err != nil {
				t.Error(err)
			}
		}
	}
	if found == 0 {
		t.Error("no example has several models")
	}
}
