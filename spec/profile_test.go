package spec

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/internal/golden"
	"tuner/measure"
	"tuner/model/precision/accuracy"
	"tuner/ort/provider"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec/document"
	"tuner/spec/goals"
)

func parse(t *testing.T, text string) Profile {
	t.Helper()
	p, err := ParseProfile("work/profile.yaml", []byte(text))
	if err != nil {
		t.Fatalf("ParseProfile: %v", err)
	}
	return p
}

// mistakes returns "line path: problem" of each error.
func mistakes(t *testing.T, err error) []string {
	t.Helper()
	var es document.Errors
	if !errors.As(err, &es) {
		t.Fatalf("error is %T (%v), want Errors", err, err)
	}
	return mapped(es, func(e document.Error) string {
		short := e
		short.File, short.Hint, short.Allowed, short.Value = "", "", "", ""
		return strings.TrimPrefix(short.Error(), ":")
	})
}

func pointer[T any](x T) *T { return &x }

func TestParseProfileComplete(t *testing.T) {
	t.Parallel()
	text := `
model: ../models/minilm.onnx
config: config.pbtxt
name: mini
output: /srv/out
deploy_target: tuner
runner: {mode: bundled, protocol: http}
search:
  strategy: random
  budget: {time: 90s, trials: 40}
  seed: 7
  window: 500ms
  confidence: 0.9
  until: 2%
  earlier: [out/first, /srv/second]
space:
  execution_provider: [cpu, openvino]
  runtime: [cpu, openvino@1.24.1]
  precision: {fp32: a.onnx, int8: b.onnx}
  openvino.num_of_threads: [1, 2]
  intra_op_threads: {min: 1, max: 8, scale: pow2}
  inter_op_threads: 1
  execution_mode: [sequential, parallel]
  graph_optimization: all
  memory_arena: [true, false]
  allow_spinning: true
  session.set_denormal_as_zero: ["0", "1"]
  instance_count: {min: 1, max: 4}
  max_batch_size: [8, 4]
  preferred_batch_size: [[], [2, 4]]
  max_queue_delay: [0, 100us, 1ms]
  dynamic_batching: {preserve_ordering: [false, true], default_queue_policy: {timeout_action: [REJECT, DELAY]}}
  parameters: {my_key: [a, b]}
load:
  concurrency: {min: 2, max: 10, step: 4}
  client_batch_size: 4
  inputs: {shape: {input_ids: [32], image: [3, 224, 224]}, examples: {image: sides of 224 pixels}}
weights: {throughput: 10, perf_latency_p99: 5}
constraints:
  latency_p99: {max: 30}
  latency_avg: {max: 1.5s}
  cpu_used_ram: {max: 2GiB}
  perf_throughput: {min: 100}
  accuracy: {metric: max_abs_error, max: 1e-3}
accuracy:
  data: rows.npz
  calibration: ../more
  calibration_method: entropy
  rows: 100
  max_kept: 10%
`
	knob := func(name string, scope search.Scope, values ...search.Value) search.Knob {
		return search.Knob{Name: name, Scope: scope, Values: values}
	}
	want := Profile{
		Path: "work/profile.yaml", Text: []byte(text), Name: "mini", Output: "/srv/out", DeployTarget: TargetTuner,
		Model: ModelSource{Path: "models/minilm.onnx", Config: "work/config.pbtxt",
			Precisions: map[string]string{"fp32": "work/a.onnx", "int8": "work/b.onnx"}},
		Runner: Runner{Mode: RunnerBundled, Protocol: ProtocolHTTP},
		Search: Search{plan.Random, search.Budget{Time: 90 * time.Second, Trials: 40}, 7, 500 * time.Millisecond, []string{"work/out/first", "/srv/second"}, 0.9, 0.02},
		Knobs: []search.Knob{
			knob("execution_provider", search.ScopeArtifact, "cpu", "openvino"),
			knob("runtime", search.ScopeArtifact, "cpu", "openvino@1.24.1"),
			knob("precision", search.ScopeArtifact, "fp32", "int8"),
			knob("openvino.num_of_threads", search.ScopeEngine, "1", "2"),
			knob("intra_op_threads", search.ScopeEngine, "1", "2", "4", "8"),
			knob("inter_op_threads", search.ScopeEngine, "1"),
			knob("execution_mode", search.ScopeEngine, "sequential", "parallel"),
			knob("graph_optimization", search.ScopeEngine, "all"),
			knob("memory_arena", search.ScopeEngine, "true", "false"),
			knob("allow_spinning", search.ScopeEngine, "true"),
			knob("session.set_denormal_as_zero", search.ScopeEngine, "0", "1"),
			knob("instance_count", search.ScopePool, "1", "2", "3", "4"),
			knob("max_batch_size", search.ScopeBatcher, "8", "4"),
			knob("preferred_batch_size", search.ScopeBatcher, "[]", "[2,4]"),
			knob("max_queue_delay", search.ScopeBatcher, "0us", "100us", "1000us"),
			knob("dynamic_batching.preserve_ordering", search.ScopePool, "false", "true"),
			knob("dynamic_batching.default_queue_policy.timeout_action", search.ScopePool, "REJECT", "DELAY"),
			knob("parameters.my_key", search.ScopePool, "a", "b"),
		},
		Load:   search.LoadAxis{Levels: []float64{2, 6, 10}, Any: true, BatchSize: 4},
		Inputs: Inputs{Shape: map[string][]int64{"input_ids": {32}, "image": {3, 224, 224}}, Examples: map[string]string{"image": "sides of 224 pixels"}},
		Goal: search.Goal{
			Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 10}, {Metric: measure.LatencyP99, Weight: 5}}},
			Constraints: []search.Constraint{
				{Metric: measure.LatencyP99, Max: pointer(0.030)}, // a bare number is milliseconds
				{Metric: measure.LatencyAvg, Max: pointer(1.5)},
				{Metric: measure.Memory, Max: pointer(2147483648.0)}, // 2 · 2^30
				{Metric: measure.Throughput, Min: pointer(100.0)},
			},
		},
		Accuracy: Accuracy{
			Limit: &accuracy.Limit{Metric: "max_abs_error", Max: pointer(1e-3)},
			Data:  "work/rows.npz", Calibration: "more", CalibrationMethod: CalibrationEntropy, Rows: 100, MaxKept: 0.1,
		},
	}
	if diff := cmp.Diff(want, parse(t, text)); diff != "" {
		t.Error(diff)
	}
}

// Earlier versions wrote the names of inputs with an example size, without reasons.
func TestExamplesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	for _, examples := range []string{"[image, ids]", "{image: a side, ids: a text}"} {
		got := parse(t, "model: a\nload: {inputs: {shape: {ids: [32], image: [3, 224, 224]}, examples: "+examples+"}}").Inputs.Examples
		if _, hasImage := got["image"]; !hasImage || len(got) != 2 {
			t.Errorf("%s: %v", examples, got)
		}
	}
	if got := parse(t, "model: a\nload: {inputs: {shape: {ids: [32]}, examples: ids}}").Inputs.Examples; !cmp.Equal(got, map[string]string{"ids": ""}) {
		t.Errorf("one name: %v", got)
	}
}

func TestParseProfileDefaults(t *testing.T) {
	t.Parallel()
	text := "model: models/my model.v2.onnx"
	want := Profile{
		Path: "work/profile.yaml", Text: []byte(text), Name: "my_model.v2", Output: "work/out/my_model.v2", DeployTarget: TargetTriton,
		Model:  ModelSource{Path: "work/models/my model.v2.onnx", Precisions: map[string]string{"fp32": "work/models/my model.v2.onnx"}},
		Runner: Runner{Mode: RunnerBundled, Protocol: ProtocolGRPC},
		Search: Search{plan.Guided, search.Budget{Time: 10 * time.Minute}, 1, time.Second, nil, 0, 0},
		Load:   search.LoadAxis{BatchSize: 1},
		Goal:   search.Goal{Objective: goals.Single(measure.Throughput)},

		Accuracy: Accuracy{MaxKept: 0.25},
	}
	if diff := cmp.Diff(want, parse(t, text)); diff != "" {
		t.Error(diff)
	}
}

// Every metric may be improved or limited, by its own name or Model Analyzer's. Limits below a
// millisecond keep all digits.
func TestGoals(t *testing.T) {
	t.Parallel()
	check := func(text string, want search.Goal) {
		t.Helper()
		if diff := cmp.Diff(want, parse(t, "model: a\n"+text).Goal, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	throughput := goals.Single(measure.Throughput)
	for limit, want := range map[string]float64{"0.4 ms": 0.0004, "0.4": 0.0004, "400us": 0.0004, "400 µs": 0.0004, "1.5us": 0.0000015, "2s": 2} {
		check("constraints: {latency_p99: {max: "+limit+"}}", search.Goal{Objective: throughput,
			Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &want}}})
	}
	check("objective: latency_p99.9", search.Goal{Objective: goals.Single("latency_p99.9")})
	check("objective: goodput_50ms\nconstraints: {goodput_2.5ms: {min: 300}}", search.Goal{Objective: goals.Single("goodput_50ms"),
		Constraints: []search.Constraint{{Metric: "goodput_2.5ms", Min: pointer(300.0)}}})
	check("objective: cost\nprice: {per_hour: 0.4}", search.Goal{Objective: goals.Single(measure.Cost), Price: 0.4})
	check("objective: energy\nconstraints: {gpu_used_memory: {max: 2000}, gpu_utilization: {min: 0.2, max: 80%}, gpu_power_usage: {max: 250}, energy: {max: 0.05}}",
		search.Goal{Objective: goals.Single(measure.Energy), Constraints: []search.Constraint{
			{Metric: measure.GPUMemory, Max: pointer(2e9)}, {Metric: measure.GPUUtilization, Min: pointer(0.2), Max: pointer(0.8)},
			{Metric: measure.GPUPower, Max: pointer(250.0)}, {Metric: measure.Energy, Max: pointer(0.05)},
		}})
	for _, m := range measure.Metrics() {
		check(fmt.Sprintf("weights: {%s: 2}\nprice: {per_hour: 1}", m), search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: m, Weight: 2}}}, Price: 1})
	}
}

// The path of a library file is relative to the profile's folder, like other paths.
func TestRuntimeFiles(t *testing.T) {
	t.Parallel()
	p := parse(t, "model: a\nspace: {runtime: [cpu, lib/libonnxruntime.so, /opt/libonnxruntime.so]}")
	if diff := cmp.Diff([]string{"cpu", "work/lib/libonnxruntime.so", "/opt/libonnxruntime.so"}, p.Runtimes()); diff != "" {
		t.Error(diff)
	}
}

// Options without a comparison with the original, and a space with only the default.
func TestUncheckedOptionsAndNoSpace(t *testing.T) {
	t.Parallel()
	fp16 := "{name: tensorrt, parameters: {precision_mode: FP16}}"
	p := parse(t, "model: a\nspace: {optimization: {execution_accelerators: [null, {gpu_execution_accelerator: ["+fp16+"]}]}}\naccuracy: {unchecked_options: true}")
	want := []search.Knob{{Name: "optimization.execution_accelerators", Scope: search.ScopePool,
		Values: []search.Value{"{}", `{gpu_execution_accelerator:[{name:"tensorrt",parameters:[{key:"precision_mode",value:"FP16"}]}]}`}}}
	if diff := cmp.Diff(want, p.Knobs); diff != "" || p.Accuracy.Limit != nil {
		t.Errorf("%s; limit %v", diff, p.Accuracy.Limit)
	}
	none := parse(t, "model: a\nspace: none")
	if n, exact := none.Space(search.Facts{Cores: 2, Batching: true}).Candidates().Len(); n != 0 || !exact {
		t.Errorf("%d candidates beside the default, want none", n)
	}
}

func TestBudgetInTrialsHasNoTime(t *testing.T) {
	t.Parallel()
	p := parse(t, "model: a.onnx\nsearch: {budget: {trials: 20}}")
	if want := (search.Budget{Trials: 20}); p.Search.Budget != want {
		t.Errorf("budget %+v, want %+v", p.Search.Budget, want)
	}
}

// A share is a percentage or a number. If a number can only be a percentage, the error shows how to
// write it.
func TestUntil(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"2%": 0.02, "0.02": 0.02, "2.5 %": 0.025, "99%": 0.99} {
		if p := parse(t, "model: a.onnx\nsearch: {until: "+text+"}"); math.Abs(p.Search.Until-want) > 1e-15 {
			t.Errorf("%s is read as %v, want %v", text, p.Search.Until, want)
		}
	}
	_, err := ParseProfile("p.yaml", []byte("model: a.onnx\nsearch: {until: 2}"))
	var mistakes document.Errors
	if !errors.As(err, &mistakes) || len(mistakes) != 1 || mistakes[0].Value != "2" || mistakes[0].Hint != "write 2%" {
		t.Errorf("until 2: %v", err)
	}
}

func TestAliasesAndAnchors(t *testing.T) {
	t.Parallel()
	p := parse(t, "model: a.onnx\nspace: {intra_op_threads: &n [1, 2], instance_count: *n}")
	for _, k := range p.Knobs {
		if diff := cmp.Diff([]search.Value{"1", "2"}, k.Values); diff != "" {
			t.Errorf("%s: %s", k.Name, diff)
		}
	}
}

// Every mistake of a file is reported with its line and path.
func TestProfileMistakes(t *testing.T) {
	t.Parallel()
	check := func(name, text string, want ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseProfile("p.yaml", []byte(text))
			if diff := cmp.Diff(want, mistakes(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
	check("empty", "", "1: the file is empty")
	check("comments", "# nothing\n", "1: the file is empty")
	check("not a mapping", "- a", "1: must be a mapping (field: value)", "1: model: is required")
	check("null", "~", "1: must be a mapping (field: value)", "1: model: is required")
	check("not YAML", "model: [a", "1: the file is not valid YAML: did not find expected ',' or ']'")
	check("two documents", "model: a\n---\nmodel: b", "2: a second YAML document begins here")
	check("alias loop", "model: a\nspace: &x {instance_count: [*x]}", "1: the file has more than 100000 values once its aliases (*name) are expanded")
	check("model missing", "name: a", "1: model: is required")
	check("key twice", "model: a\nmodel: b", "2: model: is given twice")
	check("no value", "model: a\nspace:\n", "2: space: has no value")
	check("model list", "model: [a, b]", "1: model: must be one file name")
	check("models", "models: [a, b]", "1: models: must be a mapping (field: value)")
	check("bad name", "model: a\nname: a/b", "2: name: is not usable as a model name and as a folder")
	check("Model Analyzer", "model_repository: x\nprofile_models: [a]\nfoo: 1",
		"2: profile_models: belongs to Triton Model Analyzer's files, which profile and analyze read")
	check("strategy", "model: a\nsearch: {strategy: genetic}", "2: search.strategy: is not known")
	check("budget", "model: a\nsearch: {budget: 10}", "2: search.budget: is a duration without a unit")
	check("budget 0", "model: a\nsearch: {budget: 0s}", "2: search.budget: is out of range")
	check("confidence", "model: a\nsearch: {confidence: 0.5}", "2: search.confidence: must be a probability")
	check("no doubt", "model: a\nsearch: {confidence: 1}", "2: search.confidence: must be a probability")
	check("until", "model: a\nsearch: {until: 1.5x}", "2: search.until: is not a share")
	check("until a share above the whole", "model: a\nsearch: {until: 150%}", "2: search.until: is not a share")
	check("until nothing", "model: a\nsearch: {until: 0}",
		"2: search.until: must be above 0 and below 1: without it the search continues while anything is worth a trial")
	check("until anything", "model: a\nsearch: {until: 100%}",
		"2: search.until: must be above 0 and below 1: without it the search continues while anything is worth a trial")
	check("seed", "model: a\nsearch: {seed: -1}", "2: search.seed: is out of range")
	check("earlier", "model: a\nsearch: {earlier: [out, ./out, {}]}", "2: search.earlier[1]: appears twice in the list", "2: search.earlier[2]: must be text")
	check("no earlier", "model: a\nsearch: {earlier: []}", "2: search.earlier: is an empty list")
	check("both objectives", "model: a\nobjective: throughput\nweights: {throughput: 1}", "3: weights: contradicts objective")
	check("rate", "model: a\nload: {request_rate: 2, concurrency: auto}", "2: load.request_rate: contradicts concurrency")
	check("rows and sizes", "model: a\nload: {inputs: {shape: {x: [3]}, data: rows.npz}}", "2: load.inputs.shape: contradicts data, whose rows have their own shapes")
	check("no rows", "model: a\nload: {inputs: {data: [a, b]}}", "2: load.inputs.data: must be text")
	check("no rate", "model: a\nload: {request_rate: auto}", "2: load.request_rate: must be a whole number")
	check("rates", "model: a\nload: {request_rate: [0, 20000000, 2.5]}", "2: load.request_rate[0]: is out of range",
		"2: load.request_rate[1]: is out of range", "2: load.request_rate[2]: must be a whole number")
}

// A field of a section that stands at the top is named with its section. Each of these sections has
// the field.
func TestMisplacedFields(t *testing.T) {
	t.Parallel()
	check := func(text, want string) {
		t.Helper()
		if _, err := ParseProfile("p.yaml", []byte("model: a\n"+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	for field, section := range map[string]string{
		"strategy": "search", "budget": "search", "seed": "search", "window": "search", "confidence": "search", "until": "search", "earlier": "search",
		"concurrency": "load", "request_rate": "load", "client_batch_size": "load", "inputs": "load",
		"protocol": "runner", "server": "runner", "url": "runner", "precision": "space", "instance_count": "space",
	} {
		check(field+": {x: 1}", fmt.Sprintf("p.yaml:2: %s: belongs in the section %s\n    hint: write %s: {%s: …}", field, section, section, field))
		_, err := ParseProfile("p.yaml", []byte(fmt.Sprintf("model: a\n%s: {%s: {x: 1}}", section, field)))
		if err != nil && (strings.Contains(err.Error(), section+"."+field+": unknown field") || strings.Contains(err.Error(), "neither a knob")) {
			t.Errorf("the section %s does not have %s: %v", section, field, err)
		}
	}
	check("budjet: 5m", "p.yaml:2: budjet: unknown field\n    hint: did you mean search: {budget: …}?")
	check("serch: {budget: 5m}", `hint: did you mean "search"?`)
	check("formats: [png]", "p.yaml:2: formats: belongs in analyze.yaml")
	check("knobs: {}", "hint: write the knobs into the section space")
	check("constraints: {p9: {max: 30}, latency_p09: 3, p0: 1}", `constraints.p0: is not a metric`)
	check("constraints: {latency_p9x: 30}", `did you mean "latency_p90"?`)
	check("objective: goodput", "name the limit on the latency in milliseconds: goodput_50ms")
	check("objective: goodput_2s", "name the limit on the latency in milliseconds: goodput_2000ms")
	check("constraints: {goodput_50ms: {max: 3}}", "would reject the better values of goodput_50ms")
	check("constraints: {gpu_utilization: 50%}", "constraints.gpu_utilization: must be a mapping")
	check("\x00\x01", "p.yaml:1: the file is not YAML but binary data")
}

func TestRequestRates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]search.LoadAxis{
		"[400, 100]":                               {Rate: true, Levels: []float64{100, 400}, BatchSize: 1},
		"{min: 200, max: 1600}":                    {Rate: true, Levels: []float64{200, 400, 800, 1600}, Any: true, BatchSize: 1},
		"{min: 10, max: 30, step: 10}":             {Rate: true, Levels: []float64{10, 20, 30}, Any: true, BatchSize: 1},
		"{min: 100, max: 500, scale: pow2}":        {Rate: true, Levels: []float64{100, 200, 400}, Any: true, BatchSize: 1},
		"{min: 50, max: 60}, client_batch_size: 4": {Rate: true, Levels: []float64{50, 60}, Any: true, BatchSize: 4},
	} {
		p := parse(t, "model: a\nload: {request_rate: "+text+"}")
		if diff := cmp.Diff(want, p.Space(search.Facts{Cores: 2, Batching: true}).Load); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestSpaceMistakes(t *testing.T) {
	t.Parallel()
	check := func(space string, want ...string) {
		t.Run(space, func(t *testing.T) {
			t.Parallel()
			_, err := ParseProfile("p.yaml", []byte("model: a\nspace:\n  "+space))
			if diff := cmp.Diff(mapped(want, func(w string) string { return "3: space." + w }), mistakes(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
	check(`intra_op_thread: 1`, "intra_op_thread: is neither a knob nor a field of Triton's ModelConfig")
	check(`intra_op_threads: "2"`, "intra_op_threads: must be a whole number")
	check(`intra_op_threads: [1, x, 2.5]`, "intra_op_threads[1]: must be a whole number", "intra_op_threads[2]: must be a whole number")
	check(`intra_op_threads: []`, "intra_op_threads: is an empty list")
	check(`intra_op_threads: [1, 1]`, "intra_op_threads[1]: appears twice in the list")
	check(`intra_op_threads: -1`, "intra_op_threads: is out of range")
	check(`intra_op_threads: {min: 4, max: 2}`, "intra_op_threads: is an empty range: min is greater than max")
	check(`intra_op_threads: {min: 4}`, `intra_op_threads: range without "max"`)
	check(`intra_op_threads: {min: 0, max: 4, scale: pow2}`, "intra_op_threads: cannot double from 0")
	check(`intra_op_threads: {min: 1, max: 4, scale: pow2, step: 1}`, "intra_op_threads.scale: contradicts step")
	check(`intra_op_threads: {min: 1, max: 4, step: 0}`, "intra_op_threads.step: must be above 0")
	check(`intra_op_threads: {min: 1, max: 4, scale: log}`, "intra_op_threads.scale: is not known")
	check(`instance_count: {min: 1, max: 2000000000}`, "instance_count: is a range of 2000000000 values")
	check(`instance_count: 0`, "instance_count: is out of range")
	check(`max_batch_size: [0, 4]`, "max_batch_size: mixes 0 (the model has no batch dimension) with batch sizes")
	check(`preferred_batch_size: [4, [8]]`,
		"preferred_batch_size[0]: mixes sizes with lists of sizes")
	check(`max_queue_delay: 100`, "max_queue_delay: is a duration without a unit")
	check(`max_queue_delay: 5parsecs`, "max_queue_delay: is not a duration")
	check(`max_queue_delay: 1500ns`, "max_queue_delay: is finer than a microsecond")
	check(`max_queue_delay: -1ms`, "max_queue_delay: is negative")
	check(`max_queue_delay: {min: 0, max: 1ms}`, "max_queue_delay: range without a step")
	check(`memory_arena: yes please`, "memory_arena: must be true or false")
	check(`execution_provider: gpu`, "execution_provider: is not known")
	check(`execution_provider: xnnpack`, "execution_provider: xnnpack is not an execution provider of a stock Triton")
	check(`precision: [fp32, int4]`, "precision[1]: is not a precision that tuner makes")
	check(`precision: [int8, fp16, int8]`, "precision[2]: appears twice in the list")
	check(`precision: {}`, "precision: is empty")
	check(`runtime: [cpu, cpu]`, "runtime[1]: appears twice in the list")
	check(`runtime: {min: 1}`, "runtime: must be text")
	check(`openvino.num_of_threads: [1, many]`,
		`openvino.num_of_threads[1]: cannot set option "num_of_threads" of execution provider openvino to "many": expected a whole number from 1 to 1024`)
	check(`tensorrt.precision_mode: [FP32, FP16]`,
		"tensorrt.precision_mode[1]: computes with fewer bits than the model says, and would not be compared with the original")
	check(`openvino.device_type: [CPU, GPU, "HETERO:GPU,CPU"]`,
		"openvino.device_type[1]: computes on another device than the one on which the provider is tried and its outputs are compared",
		"openvino.device_type[2]: computes on another device than the one on which the provider is tried and its outputs are compared")
	check(`coreml.MLComputeUnits: [ALL, CPUOnly]`,
		"coreml.MLComputeUnits[1]: computes on another device than the one on which the provider is tried and its outputs are compared")
	check(`rocm.device_id: 1`, "rocm.device_id: is neither a knob nor a field of Triton's ModelConfig")
	check(`dynamic_batching: {max_queue_delay_microseconds: 5}`,
		"dynamic_batching.max_queue_delay_microseconds: cannot be swept as a field of ModelConfig")
	check(`dynamic_batching: {preserve_order: true}`, "dynamic_batching.preserve_order: unknown field")
	check(`version_policy: {specific: {versions: [1]}}`, "version_policy: cannot be swept as a field of ModelConfig")
	check(`parameters: {enable_mem_arena: [1]}`, "parameters.enable_mem_arena: cannot be swept as a parameter")
	check(`parameters: {session.x: [1]}`, "parameters.session.x: cannot be swept as a parameter")
	check(`instance_group: [{kind: KIND_TPU, count: 1}]`, "instance_group[0].kind: is not known")
	check(`instance_group: [{kind: KIND_CPU, cont: 1}]`, "instance_group[0].cont: unknown field")
	check(`instance_group: [{kind: KIND_CPU, count: two}]`, "instance_group[0].count: must be a whole number")
	check(`instance_group: [{kind: KIND_CPU}]`, "instance_group: cannot be [{kind:KIND_CPU}]: group 0 needs a kind, KIND_CPU or KIND_GPU, and a count from 1")
	check(`instance_group: [[{kind: KIND_CPU, count: 1}], []]`, "instance_group: cannot be []: it has no group; write [{kind: KIND_CPU, count: 1}]")
	check(`instance_group: [{kind: KIND_CPU, count: 1}, [{kind: KIND_CPU, count: 2}]]`, "instance_group: mixes elements with lists of elements")
	check(`instance_group: [[{kind: KIND_CPU, count: 1}], [{count: 1, kind: KIND_CPU}]]`, "instance_group: appears twice in the list")
	check(`instance_group: 2`, "instance_group: must be a mapping (field: value)")
	check(`{instance_group: [{kind: KIND_CPU, count: [1, 2]}], instance_count: [1, 2], execution_provider: cpu}`,
		"instance_group: is set by instance_count and execution_provider, too")
	check(`{optimization: {execution_accelerators: {cpu_execution_accelerator: [{name: openvino}]}}, openvino.num_streams: 1}`,
		"optimization.execution_accelerators.cpu_execution_accelerator: is set by openvino.num_streams, too")
	check(`optimization: {execution_accelerators: {cpu_execution_accelerator: [{name: openvno}]}}`,
		`optimization.execution_accelerators.cpu_execution_accelerator: cannot be [{name:"openvno"}]: "openvno" is not an execution provider; allowed: `+strings.Join(provider.Names(), ", "))
	check(`optimization: {execution_accelerators: {gpu_execution_accelerator: [{name: tensorrt, parameters: {precision_mode: [FP32, FP16]}}]}}`,
		`optimization.execution_accelerators.gpu_execution_accelerator: cannot be [{name:"tensorrt",parameters:[{key:"precision_mode",value:"FP16"}]}]: option precision_mode of tensorrt: computes with fewer bits than the model says, and would not be compared with the original`)
	check(`optimization: {execution_accelerators: {cpu_execution_accelerator: [{name: xnnpack}]}}`,
		"optimization.execution_accelerators.cpu_execution_accelerator: xnnpack is not an execution provider of a stock Triton")
	check(`dynamic_batching: {priority_queue_policy: {one: {max_queue_size: 1}}}`, "dynamic_batching.priority_queue_policy.one: must be a whole number")
	check(`dynamic_batching: {priority_queue_policy: [1, 2]}`,
		"dynamic_batching.priority_queue_policy[0]: must be a mapping (field: value)", "dynamic_batching.priority_queue_policy[1]: must be a mapping (field: value)")
	check(`optimization: {priority: HIGH}`, "optimization.priority: is not known")
	const ignored = ": has no effect: the bundled engine ignores it"
	check(`{allow_spinning: [true, false], session.intra_op.allow_spinning: ["0", "1"]}`, "session.intra_op.allow_spinning: is set by allow_spinning, too")
	check(`response_cache: {enable: [false, true]}`, "response_cache.enable"+ignored)
	check(`optimization: {priority: PRIORITY_MAX, eager_batching: true, gather_kernel_buffer_threshold: 8, input_pinned_memory: {enable: false}}`,
		"optimization.priority"+ignored, "optimization.eager_batching"+ignored, "optimization.gather_kernel_buffer_threshold"+ignored,
		"optimization.input_pinned_memory.enable"+ignored)
	check(`optimization: {cuda: {graphs: [false, true]}, output_pinned_memory: {enable: true}}`,
		"optimization.cuda.graphs"+ignored, "optimization.output_pinned_memory.enable"+ignored)
}

// Fields that only a Triton honours are refused if the bundled engine serves any trial.
func TestFieldsOfAnotherServer(t *testing.T) {
	t.Parallel()
	const space = "\nspace: {response_cache: {enable: [false, true]}}"
	if p := parse(t, "model: a\nrunner: {mode: local}"+space); len(p.Knobs) != 1 {
		t.Errorf("the knobs for a Triton are %v", p.Knobs)
	}
	for _, servers := range []string{"finals: {runner: {mode: local}}", "runner: {mode: local}\nfinals: {runner: {mode: bundled}}"} {
		_, err := ParseProfile("p.yaml", []byte("model: a\n"+servers+space))
		if err == nil || !strings.Contains(err.Error(), "space.response_cache.enable: has no effect: the bundled engine ignores it") {
			t.Errorf("%s: error is %v", servers, err)
		}
	}
}

func TestGoalMistakes(t *testing.T) {
	t.Parallel()
	check := func(line string, want ...string) {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			_, err := ParseProfile("p.yaml", []byte("model: a\n"+line))
			if diff := cmp.Diff(mapped(want, func(w string) string { return "2: " + w }), mistakes(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
	check("objective: speed", "objective: is not a metric")
	check("objective: [throughput]", "objective: must be one metric")
	check("objective: accuracy", "objective: cannot be accuracy, which is only a constraint")
	check("objective: latency_p100", "objective: is not a metric")
	check("objective: cost", "objective: needs the price of the machine")
	check("objective: error_rate", "objective: has a fixed limit: a load at which more than 1 % of the requests fail satisfies nothing")
	check("weights: {throughput: 3, error_rate: 1}", "weights.error_rate: has a fixed limit: a load at which more than 1 % of the requests fail satisfies nothing")
	check("constraints: {error_rate: {max: 5%}}", "constraints.error_rate: has a fixed limit: a load at which more than 1 % of the requests fail satisfies nothing")
	check("weights: {throughput: 3, cost: 1}", "weights.cost: needs the price of the machine")
	check("constraints: {latency_p99: {max: 1ms}, cost: {max: 1}}", "constraints.cost: needs the price of the machine")
	check("price: 0.4", "price: must be a mapping (field: value)")
	check("price: {per_hour: 0}", "price.per_hour: must be a number above 0")
	check("price: {}", "price: has no number")
	check("constraints: {gpu_utilization: {max: 80}}", "constraints.gpu_utilization.max: is not a share")
	check("constraints: {gpu_utilization: {max: 0%}}", "constraints.gpu_utilization.max: must be above 0")
	check("constraints: {gpu_utilization: {min: 90%, max: 80%}}", "constraints.gpu_utilization: has a min above its max")
	check("constraints: {gpu_power: {min: 80}}", "constraints.gpu_power.min: would reject the better values of gpu_power")
	check("constraints: {throughput: {max: 80}}", "constraints.throughput.max: would reject the better values of throughput")
	check("constraints: {energy: {max: 5 parsecs}}", "constraints.energy.max: must be a number above 0")
	check("weights: {throughput: 0}", "weights.throughput: must be a number above 0")
	check("weights: {throughput: 1, perf_throughput: 2}", "weights.perf_throughput: names the metric throughput a second time")
	check("weights: {}", "weights: has no metric")
	check("constraints: {p99: 30ms, latency_p99: {max: 40ms}}", "constraints.latency_p99: names the metric latency_p99 a second time")
	check("constraints: {latency_p99: {}}", "constraints.latency_p99: is a constraint without a bound")
	check("constraints: {latency_p99: {min: 3ms}}", "constraints.latency_p99.min: would reject the better values of latency_p99")
	check("constraints: {latency_p99: {max: 0}}", "constraints.latency_p99.max: must be above 0")
	check("constraints: {latency_p99: {max: -3}}", "constraints.latency_p99.max: must be above 0")
	check("constraints: {latency_p99: {max: .inf}}", "constraints.latency_p99.max: is not a duration")
	check("constraints: {memory: {max: 2 gigs}}", "constraints.memory.max: is not a size above 0")
	check("constraints: {throughput: {min: lots}}", "constraints.throughput.min: must be a number above 0")
	check("constraints: {accuracy: {metric: cosin, min: 0.99}}", "constraints.accuracy.metric: is not known")
	check("constraints: {accuracy: {min: 0.99}}", "constraints.accuracy: has no metric")
	check("constraints: {accuracy: {metric: cosine, min: lots}}", "constraints.accuracy.min: must be a number")
	check("constraints: {accuracy: {metric: cosine}}", `constraints.accuracy: the metric "cosine" needs a bound: min or max`)
	check("constraints: {accuracy: {metric: cosine, max: 1}}", `constraints.accuracy: more of "cosine" is better: it takes min, not max`)
	check("constraints: {accuracy: {metric: command, min: 1}}", "constraints.accuracy: the metric command needs the command to run")
	check("accuracy: {command: judge.sh}", "accuracy.command: is a command, and no constraint uses its number")
	check("accuracy: {rows: 10}", "accuracy: has no effect: the space has nothing but the model as given on the cpu provider")
	check("accuracy: {rows: 0, max_kept: 125%, calibration_method: median, dat: x}", "accuracy.rows: is out of range",
		"accuracy.max_kept: is not a share", "accuracy.calibration_method: is not known", "accuracy.dat: unknown field")
	check("load: {inputs: {shape: {ids: [32, 0]}}}", "load.inputs.shape.ids[1]: is out of range")
	check("load: {inputs: {shape: {ids: 32}}}", "load.inputs.shape.ids: must be a list of dimensions without the batch dimension")
	check("load: {inputs: {shape: {ids: [32]}, examples: {ids: }}}", "load.inputs.examples.ids: must be text")
	check("load: {inputs: {shape: {ids: [32]}, examples: [mask]}}", "load.inputs.examples[0]: has no shape in load.inputs.shape, which could be an example")
	check("load: {inputs: {shape: {ids: [32]}, examples: [ids, ids]}}", "load.inputs.examples[1]: appears twice in the list")
	check("load: {concurrency: 0}", "load.concurrency: is out of range")
	check("load: {client_batch_size: 8, concurrency: 1}\nspace: {max_batch_size: 4}",
		"load.client_batch_size: is larger than every max_batch_size of the space (at most 4)")
}

// A golden file has the errors as a user sees them: three mistakes, with values, allowed values and
// hints.
func TestErrorText(t *testing.T) {
	t.Parallel()
	_, err := ParseProfile("work/profile.yaml", []byte(`model: m.onnx
serach: {strategy: grid}
space:
  instance_count: {min: 4, max: 2}
  max_queue_delay: [0, 100]
  intra_op_thread: [1, 2]
constraints:
  speed: {max: 100}
`))
	golden.Check(t, filepath.Join("testdata", "mistakes.txt"), err.Error()+"\n")
}

// A setting that is refused today is still read from a journal.
func TestRecordedProfile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"model: m.onnx\nconstraints: {error_rate: {max: 0.1%}}\n",
		"model: m.onnx\nspace: {response_cache: {enable: [false, true]}}\n",
	} {
		if _, err := ParseProfile("p.yaml", []byte(text)); err == nil {
			t.Errorf("a user's file may say %q", text)
		}
		if _, err := RecordedProfile("p.yaml", []byte(text)); err != nil {
			t.Errorf("of a journal: %v", err)
		}
	}
}

// A limit may be a bare value, and a latency may have its name in reports.
func TestShortLimits(t *testing.T) {
	t.Parallel()
	long, err := ParseProfile("p.yaml", []byte("model: a\nobjective: latency_p95\nconstraints: {latency_p99: {max: 50ms}, throughput: {min: 100}, latency_avg: {max: 20ms}}"))
	if err != nil {
		t.Fatal(err)
	}
	short, err := ParseProfile("p.yaml", []byte("model: a\nobjective: p95\nconstraints: {p99: 50ms, throughput: 100, avg: 20}"))
	if diff := cmp.Diff(long.Goal, short.Goal); diff != "" || err != nil {
		t.Errorf("(-long +short), %v:\n%s", err, diff)
	}
}
