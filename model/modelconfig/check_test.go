package modelconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/modelconfig/configpb"
)

// These are the messages of a real Triton 2.51 for an adder of two [-1,4] tensors, and those of its
// backend's scalar and optional inputs.
func TestCheckModel(t *testing.T) {
	t.Parallel()
	const x, y = `input { name: "x" data_type: TYPE_FP32 dims: 4 }`, `input { name: "y" data_type: TYPE_FP32 dims: 4 }`
	const batch = `name: "m" max_batch_size: 8 `
	scalar := ModelIO{Inputs: []Tensor{tensor("x", fp32)}, Outputs: []Tensor{tensor("y", fp32)}}
	sequence := ModelIO{Inputs: []Tensor{tensor("ids", i64, -1, -1)}, Outputs: []Tensor{tensor("y", fp32, -1, -1)}}
	tests := []struct {
		name, in string
		io       ModelIO
		want     string
	}{
		{"agrees", batch + x + y + `output { name: "sum" data_type: TYPE_FP32 dims: 4 }`, addSub, ""},
		{"names not in UTF-8", batch + x, ModelIO{Inputs: []Tensor{tensor("x", fp32)}, Outputs: []Tensor{tensor("y\xff", fp32)}}, `unable to load model 'm', the name of its tensor "y\xff" is not UTF-8`},
		{"count", batch + x, addSub, "unable to load model 'm', configuration expects 1 inputs, model provides 2"},
		{"input name", batch + x + `input { name: "z" data_type: TYPE_FP32 dims: 4 }`, addSub, "unexpected inference input 'z', allowed inputs are: x, y"},
		{"output name", batch + x + y + `output { name: "quot" data_type: TYPE_FP32 dims: 4 }`, addSub, "unexpected inference output 'quot', allowed outputs are: diff, sum"},
		{"input type", batch + x + `input { name: "y" data_type: TYPE_INT64 dims: 4 }`, addSub, "unable to load model 'm', configuration expects datatype TYPE_INT64 for input 'y', model provides TYPE_FP32"},
		{"output type", batch + x + y + `output { name: "sum" data_type: TYPE_FP16 dims: 4 }`, addSub, "unable to load model 'm', configuration expects datatype TYPE_FP16 for output 'sum', model provides TYPE_FP32"},
		{"text", `name: "m" input { name: "x" data_type: TYPE_FP32 dims: 4 }`, ModelIO{Inputs: []Tensor{tensor("x", configpb.DataType_TYPE_STRING, 4)}}, "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'x', model provides TYPE_BYTES"},
		{"no batch dimension", batch + `input { name: "x" data_type: TYPE_FP32 dims: 4 }`, fixed, "model 'm', tensor 'x': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is [1,4]"},
		{"dims, batching", batch + x + `input { name: "y" data_type: TYPE_FP32 dims: 5 }`, addSub, "model 'm', tensor 'y': the model expects 2 dimensions (shape [-1,4]) but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,5])"},
		{"dims, not batching", `name: "m"` + x + y, addSub, "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,4]) but the model configuration specifies 1 dimensions (shape [4])"},
		{"-1 over a fixed dimension", batch + x + `input { name: "y" data_type: TYPE_FP32 dims: -1 }`, addSub, "model 'm', tensor 'y': the model expects 2 dimensions (shape [-1,4]) but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,-1])"},
		{"narrower input", batch + `input { name: "ids" data_type: TYPE_INT64 dims: 32 } output { name: "y" data_type: TYPE_FP32 dims: -1 }`, sequence, ""},
		{"narrower output", batch + `input { name: "ids" data_type: TYPE_INT64 dims: 32 } output { name: "y" data_type: TYPE_FP32 dims: 32 }`, sequence, "model 'm', tensor 'y': the model expects 2 dimensions (shape [-1,-1]) but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,32])"},
		{"reshape", batch + `input { name: "ids" data_type: TYPE_INT64 dims: [4, 8] reshape { shape: 32 } }`, sequence, ""},
		{"scalar", `name: "m" input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }`, scalar, ""},
		{"scalar with a size", `name: "m" input { name: "x" data_type: TYPE_FP32 dims: 2 }`, scalar, "unable to load model 'm', scalar tensor 'x', should only provide 1 in the model configuration when the model doesn't support batching. Model configuration provided: [2]."},
		{"optional", batch + x + y + `input { name: "z" data_type: TYPE_FP32 dims: 4 optional: true }`, addSub, "unable to load model 'm', optional input 'z' is not supported for models that support batching"},
		{"batch output", batch + x + y + `output { name: "sum" data_type: TYPE_FP32 dims: -1 } batch_output { target_name: "sum" }`, addSub, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := CheckModel(mustParse(t, []byte(test.in)), test.io); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRefuseUnsupported(t *testing.T) {
	t.Parallel()
	if err := RefuseUnsupported(mustParse(t, []byte(named+addSubIO+`dynamic_batching {}`))); err != nil {
		t.Errorf("an ordinary model: %v", err)
	}
	err := RefuseUnsupported(mustParse(t, []byte(`name: "m" sequence_batching { state { use_growable_memory: true } } model_transaction_policy { decoupled: true }
		batch_input {} batch_output {}
		batch_input { source_input: "o" } batch_input { source_input: "x" } batch_output { source_input: [ "x", "o" ] }
		input { name: "x" allow_ragged_batch: true } input { name: "y" is_shape_tensor: true } input { name: "o" optional: true } output { name: "z" is_shape_tensor: true }
		instance_group {} instance_group { secondary_devices {} }
		model_repository_agents { agents { name: "checksum" } }
		optimization { execution_accelerators {
			gpu_execution_accelerator { name: "tensorrt" parameters { key: "trt_engine_cache_path" value: "/tmp" } parameters { key: "trt_timing_cache_path" value: "cache" } }
			cpu_execution_accelerator { name: "openvino" parameters { key: "load_config" value: "x" } } } }
		parameters { key: "session.model_external_initializers_file_folder_path" value { string_value: "/" } }`)))
	for _, want := range []string{"instance_group[1].secondary_devices", "model_repository_agents", "initializers_file_folder_path", "trt_engine_cache_path", "load_config",
		`batch_input[1] of the optional input "o"`, `batch_output[1] of the optional input "o"`,
		"sequence_batching.state[0].use_growable_memory", "decoupled", "batch_input", "batch_output", `input[0].allow_ragged_batch ("x")`, `input[1].is_shape_tensor ("y")`, `output[0].is_shape_tensor ("z")`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q not in %v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "trt_timing_cache_path") {
		t.Errorf("a cache below the working folder is refused: %v", err)
	}
	sharing := func(kind string) error {
		return RefuseUnsupported(mustParse(t, []byte(`name: "m" instance_group { kind: KIND_CPU } instance_group { kind: `+kind+` }
			parameters { key: "share_session_between_instances" value { string_value: "true" } }`)))
	}
	if err := sharing("KIND_CPU"); err != nil {
		t.Errorf("a session of instances on a CPU: %v", err)
	}
	if err := sharing("KIND_GPU"); err == nil || !strings.Contains(err.Error(), `parameters["share_session_between_instances"] with instance_group[1] on a GPU`) {
		t.Errorf("a session of instances on a GPU: %v", err)
	}
}

// A configuration may also come over the wire. No session entry may make ONNX Runtime open a file,
// or exceed the limits of a parameter. The entries are those of the libraries 1.24.1 and 1.31.1.
func TestRefuseEntries(t *testing.T) {
	t.Parallel()
	const file = "no file outside of the model's folder is read or written"
	for key, want := range map[string]string{
		"session.optimized_model_filepath":                        file,
		"session.node_partition_config_file":                      file,
		"session.moe_expert_counter_state_file":                   file,
		"session.enable_profiling":                                file,
		"session.collect_node_memory_stats_to_file":               file,
		"session.model_external_initializers_file_folder_path":    file,
		"session.optimized_model_external_initializers_file_name": file,
		"session.resource_cuda_partitioning_settings":             file,
		"session.intra_op_num_threads":                            "set intra_op_thread_count, which it would override",
		"session.inter_op_num_threads":                            "set inter_op_thread_count, which it would override",
		"session.execution_mode":                                  "set execution_mode, which it would override",
		"session.enable_cpu_mem_arena":                            "set enable_mem_arena, which it would override",
		"session.enable_mem_pattern":                              "set enable_mem_pattern, which it would override",
		"session.graph_optimization_level":                        "set optimization.graph.level, which it would override",
		"session.use_external_initializer_file_buffers_directly":  "",
		"session.intra_op.allow_spinning":                         "",
		"session.dynamic_block_base":                              "",
		"session.use_device_allocator_for_initializers":           "",
		"session.save_external_prepacked_constant_initializers":   "",
		"my_file": "", // not ONNX Runtime's
	} {
		err := RefuseUnsupported(mustParse(t, []byte(`name: "m" parameters { key: "`+key+`" value { string_value: "1" } }`)))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if want != "" {
			want = `model "m" uses parameters["` + key + `"], which this engine does not support; ` + want
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", key, got, want)
		}
	}
}

// Options of the CUDA provider that ONNX Runtime interprets as the address of a function or a
// stream are refused in every place. Unknown names are passed to ONNX Runtime.
func TestRefuseAddresses(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"gpu_execution_accelerator", "cpu_execution_accelerator"} {
		for _, key := range []string{"gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache", "user_compute_stream",
			"has_user_compute_stream", "default_memory_arena_cfg"} {
			err := RefuseUnsupported(mustParse(t, []byte(`name: "m" optimization { execution_accelerators { `+list+` {
				name: "cuda" parameters { key: "`+key+`" value: "4096" } } } }`)))
			if want := `execution accelerator "cuda", parameter "` + key + `"`; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q not in %v", list, want, err)
			}
		}
		if err := RefuseUnsupported(mustParse(t, []byte(`name: "m" optimization { execution_accelerators { `+list+` {
			name: "cuda" parameters { key: "an_option_of_tomorrow" value: "1" } } } }`))); err != nil {
			t.Errorf("%s: %v", list, err)
		}
	}
}

// On a GPU, Triton runs the file in cc_model_filenames for it. On a CPU the field has no effect.
func TestRefuseFilesByCapability(t *testing.T) {
	t.Parallel()
	const files = `name: "m" cc_model_filenames { key: "7.5" value: "t4.onnx" } instance_group { kind: `
	if err := RefuseUnsupported(mustParse(t, []byte(files+`KIND_CPU }`))); err != nil {
		t.Errorf("on a CPU: %v", err)
	}
	err := RefuseUnsupported(mustParse(t, []byte(files+`KIND_GPU }`)))
	if err == nil || !strings.Contains(err.Error(), "cc_model_filenames for instance_group[0]") {
		t.Errorf("on a GPU: %v", err)
	}
}

func TestDataTypes(t *testing.T) {
	t.Parallel()
	// Sizes by the element types' definition, in the order of their numbers.
	sizes := []int{0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2}
	for number, size := range sizes {
		dataType := configpb.DataType(number)
		if got := ByteSize(dataType); got != size {
			t.Errorf("ByteSize(%v) = %d, want %d", dataType, got, size)
		}
		back, err := DataTypeOf(WireName(dataType))
		if number == 0 {
			if err == nil {
				t.Error("INVALID is taken for a data type")
			}
		} else if err != nil || back != dataType {
			t.Errorf("DataTypeOf(%q) = %v, %v", WireName(dataType), back, err)
		}
	}
	for _, wrong := range []string{"", "STRING", "TYPE_FP32", "fp32", "INVALID"} {
		if got, err := DataTypeOf(wrong); err == nil {
			t.Errorf("DataTypeOf(%q) = %v", wrong, got)
		}
	}
}

func TestAnswerSize(t *testing.T) {
	t.Parallel()
	output := func(t configpb.DataType, dims ...int64) *configpb.ModelOutput {
		return &configpb.ModelOutput{DataType: t, Dims: dims}
	}
	for name, c := range map[string]struct {
		outputs []*configpb.ModelOutput
		want    int64 // at batch 3
	}{
		"two outputs":     {[]*configpb.ModelOutput{output(configpb.DataType_TYPE_FP32, 2), output(configpb.DataType_TYPE_INT64, 5)}, 3 * (2*4 + 5*8)},
		"a scalar":        {[]*configpb.ModelOutput{output(configpb.DataType_TYPE_BOOL)}, 3},
		"not completed":   {nil, 0},
		"an open one":     {[]*configpb.ModelOutput{output(configpb.DataType_TYPE_FP32, 2), output(configpb.DataType_TYPE_FP32, 7, -1)}, 0},
		"text":            {[]*configpb.ModelOutput{output(configpb.DataType_TYPE_STRING, 2)}, 0},
		"beyond all size": {[]*configpb.ModelOutput{output(configpb.DataType_TYPE_INT8, 1<<62, 1<<62)}, 1 << 62},
	} {
		if got := AnswerSize(&Config{Output: c.outputs}, 3); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
