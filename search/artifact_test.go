package search_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/search"
)

// expand returns the keys of a space's candidates and its folds, at one load of single inferences.
func expand(f search.Facts, knobs ...search.Knob) ([]string, []search.Fold) {
	space := search.Space{Knobs: knobs, Facts: f, Load: search.LoadAxis{Levels: []float64{1}, BatchSize: 1}}
	candidates := space.Candidates()
	return keys(candidates.All()), candidates.Folds()
}

func TestRejectedVariantsAreFolded(t *testing.T) {
	t.Parallel()
	facts := search.Facts{Cores: 2, Batching: true, Precisions: []string{"fp32", "int8", "fp16"}, Rejected: []search.Rejection{
		{Precision: "int8", Provider: "openvino", Reason: "cosine is 0.96, less than 0.99"},
		{Precision: "fp16", Reason: "nothing to convert"},
	}}
	check := func(name string, f search.Facts, knobs []search.Knob, want []string, folds ...search.Fold) {
		t.Helper()
		got, gotFolds := expand(f, knobs...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: candidates (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(folds, gotFolds); diff != "" {
			t.Errorf("%s: folds (-want +got):\n%s", name, diff)
		}
	}
	unmade := search.Fold{Reason: "precision fp16 is rejected: nothing to convert", Count: 1}
	bad := search.Fold{Reason: "precision int8 is rejected on execution_provider openvino: cosine is 0.96, less than 0.99", Count: 1}
	check("pairs", facts, []search.Knob{knob("precision", "fp32", "int8"), knob("execution_provider", "cpu", "openvino")},
		[]string{"precision=fp32 execution_provider=cpu", "precision=fp32 execution_provider=openvino", "precision=int8 execution_provider=cpu"}, bad)
	check("everywhere", facts, []search.Knob{knob("precision", "fp32", "fp16", "int8")}, []string{"precision=fp32", "precision=int8"}, unmade)
	onOpenVINO := facts
	onOpenVINO.Base = map[string]search.Value{"execution_provider": "openvino"}
	check("the default's provider counts", onOpenVINO, []search.Knob{knob("precision", "fp32", "int8")}, []string{"precision=fp32"}, bad)
	original := facts
	original.Rejected = []search.Rejection{{Precision: "fp32", Provider: "openvino", Reason: "far off"}}
	check("the original on another provider", original, []search.Knob{knob("execution_provider", "cpu", "openvino")},
		[]string{"execution_provider=cpu"},
		search.Fold{Reason: "precision fp32 is rejected on execution_provider openvino: far off", Count: 1})
}

// Two builds may compute one provider differently, so a rejection in one does not apply to the
// other.
func TestRejectedInOneRuntime(t *testing.T) {
	t.Parallel()
	facts := search.Facts{Precisions: []string{"fp32", "int8"}, Runtimes: []search.RuntimeFacts{{Name: "cpu@1"}, {Name: "cpu@2"}}}
	check := func(runtime string, knobs []search.Knob, want ...string) {
		t.Helper()
		facts.Rejected = []search.Rejection{{Precision: "int8", Provider: "cpu", Runtime: runtime, Reason: "far off"}}
		got, folds := expand(facts, knobs...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("int8 rejected in %s: %s", runtime, diff)
		}
		reason := "precision int8 is rejected on execution_provider cpu in runtime " + runtime + ": far off"
		if diff := cmp.Diff([]search.Fold{{Reason: reason, Count: 1}}, folds); diff != "" {
			t.Errorf("int8 rejected in %s: %s", runtime, diff)
		}
	}
	both := []search.Knob{knob("runtime", "cpu@1", "cpu@2"), knob("precision", "int8")}
	check("cpu@2", both, "runtime=cpu@1 precision=int8")
	check("cpu@1", both, "runtime=cpu@2 precision=int8")
	// the first build serves candidates without the knob
	check("cpu@1", []search.Knob{knob("precision", "fp32", "int8")}, "precision=fp32")
}

func TestProvidersOfSeveralRuntimes(t *testing.T) {
	t.Parallel()
	facts := search.Facts{Cores: 2, Runtimes: []search.RuntimeFacts{
		{Name: "cpu@1.31.1", Unavailable: map[string]string{"openvino": "the build does not have it"}}, {Name: "openvino@1.24.1"},
	}}
	knobs := []search.Knob{knob("runtime", "cpu@1.31.1", "openvino@1.24.1"), knob("execution_provider", "cpu", "openvino")}
	missing := search.Fold{Reason: "execution_provider openvino is not available in runtime cpu@1.31.1: the build does not have it", Count: 1}
	got, folds := expand(facts, knobs...)
	want := []string{
		"runtime=cpu@1.31.1 execution_provider=cpu", "runtime=openvino@1.24.1 execution_provider=cpu",
		"runtime=openvino@1.24.1 execution_provider=openvino",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]search.Fold{missing}, folds); diff != "" {
		t.Error(diff)
	}
	// Candidates without a provider run on the default's, which the first build lacks.
	onOpenVINO := facts
	onOpenVINO.Base = map[string]search.Value{"execution_provider": "openvino"}
	got, folds = expand(onOpenVINO, knobs[0])
	if diff := cmp.Diff([]string{"runtime=openvino@1.24.1"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]search.Fold{missing}, folds); diff != "" {
		t.Error(diff)
	}
	// A stock Triton has one build: the first, which lacks openvino.
	facts.TritonOnly = true
	got, _ = expand(facts, knobs...)
	if diff := cmp.Diff([]string{"runtime=cpu@1.31.1 execution_provider=cpu"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOptionsOfProviders(t *testing.T) {
	t.Parallel()
	facts := search.Facts{Cores: 4}
	knobs := []search.Knob{
		knob("execution_provider", "cpu", "openvino"), knob("intra_op_threads", "1", "2"), knob("openvino.num_of_threads", "1", "2"),
	}
	got, _ := expand(facts, knobs...)
	// The cpu provider has only ONNX Runtime's threads, and OpenVINO only its own.
	want := []string{
		"execution_provider=cpu intra_op_threads=1", "execution_provider=cpu intra_op_threads=2",
		"execution_provider=openvino intra_op_threads=0 openvino.num_of_threads=1",
		"execution_provider=openvino intra_op_threads=0 openvino.num_of_threads=2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	facts.TritonOnly = true // passes OpenVINO no options
	got, _ = expand(facts, knobs...)
	want = []string{want[0], want[1], "execution_provider=openvino intra_op_threads=0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, _ = expand(facts, knob("execution_provider", "cuda"), knob("cuda.gpu_mem_limit", "1", "2"))
	if len(got) != 2 {
		t.Errorf("a stock Triton takes CUDA's options; candidates %v", got)
	}
	got, _ = expand(search.Facts{Cores: 4}, knob("execution_provider", "tensorrt", "cpu"), knob("cuda.gpu_mem_limit", "1", "2"))
	want = []string{"execution_provider=tensorrt cuda.gpu_mem_limit=1", "execution_provider=tensorrt cuda.gpu_mem_limit=2", "execution_provider=cpu"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// XNNPACK's own threads count like ONNX Runtime's: 5 are more than the 4 cores.
	got, _ = expand(search.Facts{Cores: 4}, knob("execution_provider", "xnnpack"), knob("xnnpack.intra_op_num_threads", "2", "3", "5"), knob("instance_count", "4"))
	if diff := cmp.Diff([]string{"execution_provider=xnnpack xnnpack.intra_op_num_threads=2 instance_count=4"}, got); diff != "" {
		t.Error(diff)
	}
	// 2 threads × 4 instances are 8, twice the 4 cores; 3 × 4 are more.
	got, _ = expand(search.Facts{Cores: 4}, knob("execution_provider", "openvino"), knob("openvino.num_of_threads", "2", "3"), knob("instance_count", "4"))
	if diff := cmp.Diff([]string{"execution_provider=openvino openvino.num_of_threads=2 instance_count=4"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestProviderOption(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{
		"openvino.num_streams": {"openvino", "num_streams"}, "tensorrt.trt_a.b": {"tensorrt", "trt_a.b"},
		"openvino": {}, "openvino.": {}, "session.x": {}, "parameters.cuda": {}, "": {},
	} {
		provider, option, ok := search.ProviderOption(name)
		if ok != (want[1] != "") || ok && (provider != want[0] || option != want[1]) {
			t.Errorf("%q: %q %q %t, want %v", name, provider, option, ok, want)
		}
		if scope, known := search.KnobScope(name); ok && (!known || scope != search.ScopeEngine) {
			t.Errorf("%q is no engine knob", name)
		}
	}
}

// A first stage keeps only the settings of the artifact and the session.
func TestFirstStageKnobs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"precision": true, "intra_op_threads": true, "session.x": true, "instance_count": false, "max_queue_delay": false, "optimization.priority": false,
	} {
		c := search.NewCandidate(search.Setting{Knob: "max_batch_size", Value: "1"}, search.Setting{Knob: name, Value: "1"})
		if got := !(search.Space{}).FirstStage(c).IsDefault(); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}

// The space lists batches of 4 and 8 on 1 or 2 threads; the default has batches of 4, 2 instances,
// and all threads.
func TestSpaceHas(t *testing.T) {
	t.Parallel()
	space := search.Space{
		Knobs: []search.Knob{knob("max_batch_size", "4", "8"), knob("intra_op_threads", "1", "2")},
		Facts: search.Facts{Base: map[string]search.Value{"max_batch_size": "4", "instance_count": "2", "intra_op_threads": "0"}},
	}
	check := func(c search.Candidate, want bool) {
		t.Helper()
		if got := space.Has(c); got != want {
			t.Errorf("%v is in the space: %t, want %t", c, got, want)
		}
	}
	one := search.NewCandidate(search.Setting{Knob: "intra_op_threads", Value: "1"})
	check(one, true)
	check(one.With("max_batch_size", "8"), true)
	check(one.With("max_batch_size", "16"), false)
	check(one.With("instance_count", "2"), true) // the default's value
	check(one.With("instance_count", "1"), false)
	check(one.With("precision", "int8"), false)
	check(search.Candidate{}, false) // 0 threads, which means all, is not listed
	check(search.NewCandidate(search.Setting{Knob: "max_batch_size", Value: "8"}), false)
}

func TestFirstStage(t *testing.T) {
	t.Parallel()
	space := search.Space{Facts: search.Facts{Base: map[string]search.Value{
		"precision": "fp32", "intra_op_threads": "0", "instance_count": "2", "max_batch_size": "4", "max_queue_delay": "0us",
	}}}
	candidate := func(pairs ...string) search.Candidate {
		var settings []search.Setting
		for i := 0; i < len(pairs); i += 2 {
			settings = append(settings, search.Setting{Knob: pairs[i], Value: search.Value(pairs[i+1])})
		}
		return search.NewCandidate(settings...)
	}
	check := func(c search.Candidate, first string, in bool) {
		t.Helper()
		if got := space.FirstStage(c).Key(); got != first {
			t.Errorf("first stage of %v is %v, want %v", c, got, first)
		}
		if got := space.InFirstStage(c); got != in {
			t.Errorf("%v is in the first stage: %t, want %t", c, got, in)
		}
	}
	check(search.Candidate{}, "default", true)
	check(candidate("precision", "int8", "intra_op_threads", "1", "instance_count", "2", "max_batch_size", "16"), "precision=int8 intra_op_threads=1", false)
	check(candidate("precision", "int8", "intra_op_threads", "0", "instance_count", "2", "max_batch_size", "4", "max_queue_delay", "0us"), "precision=int8", true)
	check(candidate("precision", "fp32", "instance_count", "1"), "default", false)
	// A knob whose value in the default is unknown counts as different.
	check(candidate("optimization.priority", "PRIORITY_MAX"), "default", false)
	check(candidate("session.x", "1", "openvino.num_streams", "2", "runtime", "a"), "session.x=1 openvino.num_streams=2 runtime=a", true)
	// The default's build is the first of several. XNNPACK does not spin unless the configuration
	// says so.
	space.Facts.Base["allow_spinning"] = "true"
	space.Facts.Runtimes = []search.RuntimeFacts{{Name: "cpu@1.31.1"}, {Name: "openvino@1.24.1"}}
	check(candidate("runtime", "cpu@1.31.1", "allow_spinning", "true"), "default", true)
	check(candidate("runtime", "openvino@1.24.1", "allow_spinning", "false"), "runtime=openvino@1.24.1 allow_spinning=false", true)
	check(candidate("execution_provider", "xnnpack", "allow_spinning", "true"), "execution_provider=xnnpack allow_spinning=true", true)
}
