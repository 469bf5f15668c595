package knobs_test

import (
	"testing"

	"tuner/ort/sessionoption"
	"tuner/search"
	"tuner/spec/knobs"

	"github.com/google/go-cmp/cmp"
)

// Threads spin by default. If only one of two pools spins, the knob has no such value. XNNPACK has
// another default.
func TestBaseKnowsSpinning(t *testing.T) {
	t.Parallel()
	const (
		head    = `name: "m" backend: "onnxruntime" `
		intra   = `parameters { key: "session.intra_op.allow_spinning" value { string_value: "0" } } `
		inter   = `parameters { key: "session.inter_op.allow_spinning" value { string_value: "0" } } `
		xnnpack = `optimization { execution_accelerators { cpu_execution_accelerator { name: "xnnpack" } } } `
	)
	for text, want := range map[string]search.Value{
		"": "true", intra + inter: "false", intra: "", inter: "", xnnpack: "", xnnpack + intra: "", xnnpack + intra + inter: "false",
	} {
		if got := knobs.Base(parseConfig(t, head+text))[sessionoption.AllowSpinning]; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Applying a value that Base returns changes nothing, for each knob.
func TestBaseIsWhatChangesNothing(t *testing.T) {
	t.Parallel()
	check := func(name, text string, missing ...string) {
		config := parseConfig(t, text)
		values := knobs.Base(config)
		for knob, v := range values {
			got, err := knobs.Apply(config, search.NewCandidate(search.Setting{Knob: knob, Value: v}))
			if err != nil {
				t.Fatal(err)
			}
			// An explicit default and an absent one are the same for the server.
			if diff := cmp.Diff(knobs.Base(config), knobs.Base(got)); diff != "" {
				t.Errorf("%s: %s = %s changes (-before +after):\n%s", name, knob, v, diff)
			}
			if got.GetMaxBatchSize() != config.GetMaxBatchSize() || (got.GetDynamicBatching() == nil) != (config.GetDynamicBatching() == nil) {
				t.Errorf("%s: %s = %s changes the batcher", name, knob, v)
			}
		}
		for _, knob := range missing {
			if v, has := values[knob]; has {
				t.Errorf("%s: %s = %s, want none", name, knob, v)
			}
		}
	}
	check("with a batcher", base)
	check("batches without a batcher", `name: "m" platform: "onnxruntime_onnx" backend: "onnxruntime" default_model_filename: "model.onnx" version_policy { latest { num_versions: 1 } } max_batch_size: 4
		input { name: "x" data_type: TYPE_FP32 dims: [8] } output { name: "y" data_type: TYPE_FP32 dims: [2] }
		instance_group { name: "m" count: 3 kind: KIND_CPU } optimization { graph { level: 1 } }
		parameters { key: "execution_mode" value { string_value: "1" } }`, search.KnobMaxBatchSize)
	check("two groups", `name: "m" platform: "onnxruntime_onnx" backend: "onnxruntime" default_model_filename: "model.onnx" version_policy { latest { num_versions: 1 } }
		input { name: "x" data_type: TYPE_FP32 dims: [8] } output { name: "y" data_type: TYPE_FP32 dims: [2] }
		instance_group [ { name: "a" count: 1 kind: KIND_CPU }, { name: "b" count: 1 kind: KIND_CPU } ]`, search.KnobInstanceCount)
}

func TestProviderOfAConfiguration(t *testing.T) {
	t.Parallel()
	check := func(text string, want search.Value) {
		t.Helper()
		config := parseConfig(t, `name: "m" backend: "onnxruntime" `+text)
		if got := knobs.Base(config)[search.KnobExecutionProvider]; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	check(``, "cpu")
	check(`instance_group { kind: KIND_GPU count: 1 }`, "cuda")
	check(`instance_group { kind: KIND_GPU count: 1 } optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }`, "tensorrt")
	check(`instance_group { kind: KIND_CPU count: 1 } optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }`, "openvino")
	check(`instance_group { kind: KIND_CPU count: 1 } optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }`, "cpu")
}
