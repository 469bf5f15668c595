package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"tuner/search"
	"tuner/stats"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-rounds", "2"}, {"-budget", "1ms"}, {"-window", "0s"}, {"-budget"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := parse([]string{"-budget", "20s", "mlp", "cnn"}, io.Discard)
	if err != nil || !slices.Equal(o.names, []string{"mlp", "cnn"}) {
		t.Errorf("%v, models %q", err, o.names)
	}
}

func TestThreadCounts(t *testing.T) {
	t.Parallel()
	for cores, want := range map[int][]int{1: {1}, 2: {1, 2}, 6: {1, 2, 4, 6}, 8: {1, 2, 4, 8}} {
		if got := threadCounts(cores); !slices.Equal(got, want) {
			t.Errorf("%d cores: %v, want %v", cores, got, want)
		}
	}
}

// Olive runs passes in the order of their keys: the precision must come before the session.
func TestWorkflowOrder(t *testing.T) {
	t.Parallel()
	text, err := workflow(subject{path: "m.onnx", rows: "rows.npz"}, "rows.py", "out", "cache")
	if err != nil {
		t.Fatal(err)
	}
	precision, session := strings.Index(string(text), "OnnxPeepholeOptimizer"), strings.Index(string(text), "OrtSessionParamsTuning")
	if precision < 0 || session < precision {
		t.Errorf("the passes stand at %d and %d:\n%s", precision, session, text)
	}
}

func TestCause(t *testing.T) {
	t.Parallel()
	log := "[INFO] begin\nTraceback (most recent call last):\n  File \"a.py\", line 3, in f\n    run()\nerrors.InvalidArgument: no such input\n  more\n[INFO] end\n"
	if got := cause(log); got != "errors.InvalidArgument: no such input more" {
		t.Errorf("cause %q", got)
	}
	if got := cause("[INFO] all well\n"); got != "" {
		t.Errorf("cause %q of a log without a traceback", got)
	}
}

// Three models were measured with a pass behind them; the input model does not count. The fastest of the frontier is the
// answer, and its precision is that of the pass before.
func TestReadFootprint(t *testing.T) {
	t.Parallel()
	const text = `{
	 "in": {"parent_model_id": null, "from_pass": null, "metrics": {"value": {"latency-avg": {"value": 1}}}},
	 "q": {"parent_model_id": "in", "from_pass": "onnxdynamicquantization", "metrics": {"value": {"latency-avg": {"value": 0.9}}}},
	 "s1": {"parent_model_id": "q", "from_pass": "ortsessionparamstuning", "is_pareto_frontier": true,
	  "metrics": {"value": {"latency-avg": {"value": 0.5}}},
	  "model_config_data": {"config": {"inference_settings": {"session_options":
	   {"execution_mode": 1, "graph_optimization_level": 2, "intra_op_num_threads": 1, "inter_op_num_threads": 2}}}}},
	 "s2": {"parent_model_id": "q", "from_pass": "ortsessionparamstuning", "metrics": {"value": {"latency-avg": {"value": 0.7}}},
	  "model_config_data": {"config": {"inference_settings": {"session_options":
	   {"execution_mode": 0, "graph_optimization_level": 99, "intra_op_num_threads": 2}}}}},
	 "failed": {"parent_model_id": "q", "from_pass": "ortsessionparamstuning", "metrics": null}
	}`
	var a answer
	if err := a.readFootprint([]byte(text), "out/model.onnx"); err != nil {
		t.Fatal(err)
	}
	if a.measured != 3 || a.latency != 0.5e-3 || a.setting == nil || a.setting.Model != "out/model.onnx" {
		t.Fatalf("%+v", a)
	}
	if got, want := a.setting.String(), "int8, intra 1, inter 2, parallel, graph extended"; got != want {
		t.Errorf("setting %q, want %q", got, want)
	}
	want := "execution_mode parallel, sequential; graph_optimization all, extended; inter_op_threads 2; intra_op_threads 1, 2; precision int8"
	if got := strings.Join(a.tried, "; "); got != want {
		t.Errorf("tried %q, want %q", got, want)
	}
	var none answer
	if err := none.readFootprint([]byte(`{}`), ""); err != nil || none.setting != nil || none.message == "" {
		t.Errorf("%v, %+v of an empty footprint", err, none)
	}
}

// Olive writes an empty object, and exits with 0, when it could not run the model.
func TestReadSettings(t *testing.T) {
	t.Parallel()
	var a answer
	if err := a.readSettings([]byte(`{}`), "m.onnx"); err != nil || a.setting != nil {
		t.Errorf("%v, %+v of settings without content", err, a.setting)
	}
	const text = `{"session_options": {"execution_mode": null, "graph_optimization_level": null, "inter_op_num_threads": 2, "intra_op_num_threads": 2}}`
	if err := a.readSettings([]byte(text), "m.onnx"); err != nil || a.setting == nil || a.setting.String() != "intra 2, inter 2" {
		t.Errorf("%v, %+v", err, a.setting)
	}
}

func TestReadSweep(t *testing.T) {
	t.Parallel()
	const text = `{"winner": {"settings": [{"knob": "precision", "value": "int8"}, {"knob": "allow_spinning", "value": "false"}]},
	 "model": {"files": [{"precision": "fp32", "path": "a.onnx"}, {"precision": "int8", "path": "b.onnx"}]},
	 "candidates": [
	  {"settings": [{"knob": "precision", "value": "int8"}, {"knob": "allow_spinning", "value": "false"}], "value": {"value": 0.002}, "windows": [[0.002]]},
	  {"settings": [], "value": {"value": 0.004}, "windows": [[0.004]]},
	  {"settings": [{"knob": "precision", "value": "fp16"}], "value": {"value": 0}, "windows": []}]}`
	var a answer
	if err := a.readSweep([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if a.measured != 2 || a.latency != 0.002 || a.setting.Model != "b.onnx" || a.setting.Entries["session.inter_op.allow_spinning"] != "0" {
		t.Errorf("%+v, %+v", a, a.setting)
	}
	if got := strings.Join(a.tried, "; "); got != "allow_spinning false; precision int8" {
		t.Errorf("tried %q", got)
	}
}

func TestWhatTheJudgeCannotOpen(t *testing.T) {
	t.Parallel()
	for knob, value := range map[string]string{search.KnobExecutionProvider: "openvino", search.KnobIntraOpThreads: "many", "openvino.num_of_threads": "2"} {
		if _, err := ofCandidate(search.Candidate{}.With(knob, search.Value(value)), map[string]string{"fp32": "m.onnx"}); err == nil {
			t.Errorf("%s=%s is judged", knob, value)
		}
	}
}

// The default and equal answers are measured once; each answer finds its own figures again.
func TestJudgedOnce(t *testing.T) {
	t.Parallel()
	j := job{Settings: []setting{{Model: "m.onnx"}}}
	var places []int
	for _, s := range []setting{{Model: "m.onnx", Precision: "fp32", Entries: map[string]string{}}, {Model: "m.onnx", IntraOpThreads: 1}, {Model: "m.onnx", IntraOpThreads: 1}} {
		places = append(places, place(&j, s))
	}
	if !slices.Equal(places, []int{0, 1, 1}) || len(j.Settings) != 2 {
		t.Fatalf("places %v of %d settings", places, len(j.Settings))
	}
	v := figures{Seconds: [][]float64{{4, 4, 4}, {2, 2, 2}}, Cosine: []float64{1, 0.5}}.verdict([]int{0, 1, -1})
	if !v.marks[0].same || v.marks[1].gain.Value != 2 || v.marks[1].cosine != 0.5 || v.marks[2].seconds != 0 {
		t.Errorf("%+v", v)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	one := setting{Model: "b.onnx", Precision: "int8", IntraOpThreads: 1}
	c := comparison{name: "mlp", answers: []answer{{by: "olive", exit: 1, message: "a|b"}, {by: "tuner", measured: 4, latency: 12e-6, setting: &one}},
		judged: verdict{base: 0.0025, marks: []mark{{}, {seconds: 0.00125, gain: stats.Estimate{Value: 2, Lo: 1.9, Hi: 2.1}, cosine: 0.99}}}}
	var out strings.Builder
	if err := report(&out, []comparison{c}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`| mlp | olive | 0 | 1 | 0 |  | no answer: a\|b |`,
		"| mlp | tuner | 0 | 0 | 4 | 12 µs | int8, intra 1 |",
		"| mlp | 2.50 ms | olive | no answer | | |  |",
		"| mlp | 2.50 ms | tuner | 1.25 ms | **2.00** | 1.90–2.10 | 0.9900 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}

// FuzzRead: whatever the programs write, reading it does not panic, and an answer has a file.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"a": {"from_pass": "ortsessionparamstuning", "is_pareto_frontier": true, "metrics": {"value": {"latency-avg": {"value": 1}}}}}`))
	f.Add([]byte(`{"winner": {"settings": [{"knob": "precision", "value": "int8"}]}, "model": {"files": [{"precision": "int8", "path": "b"}]}}`))
	f.Add([]byte(`{"session_options": {"execution_mode": 1}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, read := range []func(*answer) error{
			func(a *answer) error { return a.readFootprint(content, "m.onnx") },
			func(a *answer) error { return a.readSettings(content, "m.onnx") },
			func(a *answer) error { return a.readSweep(content) },
		} {
			var a answer
			if err := read(&a); err == nil && a.setting != nil && a.setting.Model == "" {
				t.Errorf("an answer without a file: %+v", a.setting)
			}
		}
	})
}

// What the judge reads has the names that judge.py asks for.
func TestJobNames(t *testing.T) {
	t.Parallel()
	off := false
	text, err := json.Marshal(setting{Model: "m", IntraOpThreads: 1, InterOpThreads: 1, Parallel: true, Graph: "all", MemoryArena: &off, MemoryPattern: &off,
		Entries: map[string]string{"session.x": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	var names map[string]any
	if err := json.Unmarshal(text, &names); err != nil || len(names) != 8 {
		t.Fatalf("%v, %s", err, text)
	}
	for name := range names {
		if !strings.Contains(judgeScript, `"`+name+`"`) {
			t.Errorf("judge.py does not read %q", name)
		}
	}
}
