package knobs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/modelconfig"
	"tuner/search"
	"tuner/spec/knobs"
)

// base is a complete configuration with settings to keep: a host policy, a parameter, another
// session option.
const base = `
name: "m"
platform: "onnxruntime_onnx"
backend: "onnxruntime"
default_model_filename: "model.onnx"
version_policy { latest { num_versions: 1 } }
max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: [8] }
output { name: "y" data_type: TYPE_FP32 dims: [2] }
instance_group { name: "m" kind: KIND_CPU count: 2 host_policy: "numa0" }
dynamic_batching { preferred_batch_size: [4] max_queue_delay_microseconds: 50 }
parameters { key: "mine" value { string_value: "kept" } }
parameters { key: "enable_mem_arena" value { string_value: "0" } }
`

func parseConfig(t *testing.T, text string) *modelconfig.Config {
	t.Helper()
	c, err := modelconfig.Parse("config.pbtxt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func formatConfig(t *testing.T, c *modelconfig.Config) string {
	t.Helper()
	text, err := modelconfig.Format(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func candidate(pairs ...string) search.Candidate {
	var settings []search.Setting
	for i := 0; i < len(pairs); i += 2 {
		settings = append(settings, search.Setting{Knob: pairs[i], Value: search.Value(pairs[i+1])})
	}
	return search.NewCandidate(settings...)
}

// Each knob changes exactly its own lines: the expected text is base with lines replaced.
func TestApply(t *testing.T) {
	t.Parallel()
	const (
		group   = `instance_group { name: "m" kind: KIND_CPU count: 2 host_policy: "numa0" }`
		batcher = `dynamic_batching { preferred_batch_size: [4] max_queue_delay_microseconds: 50 }`
		arena   = `parameters { key: "enable_mem_arena" value { string_value: "0" } }`
	)
	parameter := func(key, v string) string {
		return `parameters { key: "` + key + `" value { string_value: "` + v + `" } }`
	}
	check := func(name string, c search.Candidate, replace ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := parseConfig(t, base)
			got, err := knobs.Apply(from, c)
			if err != nil {
				t.Fatal(err)
			}
			want := formatConfig(t, parseConfig(t, strings.NewReplacer(replace...).Replace(base)))
			if diff := cmp.Diff(want, formatConfig(t, got)); diff != "" {
				t.Error(diff)
			}
			if !modelconfig.Equal(from, parseConfig(t, base)) {
				t.Error("Apply changed its base")
			}
		})
	}
	check("default", search.Candidate{})
	check("precision is not configuration", candidate("precision", "int8"))
	check("threads", candidate("intra_op_threads", "3", "inter_op_threads", "2", "execution_mode", "parallel"),
		arena, arena+parameter("intra_op_thread_count", "3")+parameter("inter_op_thread_count", "2")+parameter("execution_mode", "1"))
	check("memory", candidate("memory_arena", "true", "memory_pattern", "false"),
		arena, parameter("enable_mem_arena", "1")+parameter("enable_mem_pattern", "0"))
	check("graph", candidate("graph_optimization", "basic"), arena, arena+`optimization { graph { level: -1 } }`)
	check("session", candidate("allow_spinning", "false", "session.x", "y"), arena,
		arena+parameter("session.intra_op.allow_spinning", "0")+parameter("session.inter_op.allow_spinning", "0")+parameter("session.x", "y"))
	check("instances", candidate("instance_count", "5"), "count: 2", "count: 5")
	check("same batch", candidate("max_batch_size", "4", "max_queue_delay", "200us"), "microseconds: 50", "microseconds: 200")
	check("other batch", candidate("max_batch_size", "16"),
		"max_batch_size: 4", "max_batch_size: 16", batcher, `dynamic_batching { max_queue_delay_microseconds: 50 }`)
	check("preferred", candidate("max_batch_size", "16", "preferred_batch_size", "[8,16]", "max_queue_delay", "0us"),
		"max_batch_size: 4", "max_batch_size: 16", batcher, `dynamic_batching { preferred_batch_size: [8, 16] }`)
	check("no batching", candidate("max_batch_size", "0"), "max_batch_size: 4", "", batcher, "")
	check("options of a provider", candidate("execution_provider", "openvino", "openvino.num_of_threads", "2"), arena,
		arena+`optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" parameters { key: "num_of_threads" value: "2" } } } }`)
	check("runtime is not configuration", candidate("runtime", "cpu@1.31.1"))
	check("cpu", candidate("execution_provider", "cpu"))
	check("openvino", candidate("execution_provider", "openvino"), arena,
		arena+`optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }`)
	check("cuda", candidate("execution_provider", "cuda"), group, strings.Replace(group, "CPU", "GPU", 1))
	check("tensorrt", candidate("execution_provider", "tensorrt"), group, strings.Replace(group, "CPU", "GPU", 1), arena,
		arena+`optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }`)
	check("field", candidate("dynamic_batching.preserve_ordering", "true", "optimization.priority", "PRIORITY_MAX"),
		"microseconds: 50", "microseconds: 50 preserve_ordering: true", arena, arena+`optimization { priority: PRIORITY_MAX }`)
	check("parameter", candidate("parameters.mine", "a b"), `"kept"`, `"a b"`)
}

// A value that equals protobuf's default still replaces base's value.
func TestApplyFieldToDefault(t *testing.T) {
	t.Parallel()
	from := parseConfig(t, base+`optimization { eager_batching: true }`)
	got, err := knobs.Apply(from, candidate("optimization.eager_batching", "false"))
	if err != nil {
		t.Fatal(err)
	}
	if got.GetOptimization().GetEagerBatching() {
		t.Error("eager_batching is still true")
	}
}

func TestApplyLeavesProvider(t *testing.T) {
	t.Parallel()
	from := parseConfig(t, base+`optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }`)
	got, err := knobs.Apply(from, candidate("execution_provider", "cpu"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(formatConfig(t, parseConfig(t, base)), formatConfig(t, got)); diff != "" {
		t.Error(diff)
	}
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	check := func(name, config string, c search.Candidate, want string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := knobs.Apply(parseConfig(t, config), c)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q in it", err, want)
			}
		})
	}
	check("unknown knob", base, candidate("speed", "11"), `"speed": no scalar, list or map "speed" in ModelConfig`)
	check("message as scalar", base, candidate("optimization", "1"), `no scalar, list or map "optimization"`)
	check("two groups of a field", base, candidate("instance_group", "[{kind:KIND_CPU,count:1},{kind:KIND_CPU,count:1}]", "instance_count", "2"), "has 2 instance groups")
	check("not a number", base, candidate("instance_count", "two"), `cannot read "two" as an integer`)
	check("negative", base, candidate("max_batch_size", "-1"), "is not a number from 0")
	check("delay without batching", base, candidate("max_batch_size", "0", "max_queue_delay", "5us"), "needs a max_batch_size above 0")
	check("two groups", base+`instance_group { kind: KIND_CPU count: 1 }`, candidate("instance_count", "2"), "has 2 instance groups")
	check("preferred too large", base, candidate("preferred_batch_size", "[8]"), "preferred")
	sequence := strings.Replace(base, "dynamic_batching { preferred_batch_size: [4] max_queue_delay_microseconds: 50 }", "sequence_batching { }", 1)
	check("sequence batcher", sequence, candidate("max_batch_size", "8"), "another scheduler than dynamic_batching")
	check("excluded field", sequence, candidate("dynamic_batching.preserve_ordering", "true"), `has "sequence_batching", which excludes`)
	check("wrong parameter in base", base+`parameters { key: "intra_op_thread_count" value { string_value: "x" } }`,
		candidate("instance_count", "2"), "cannot read the session options")
}
