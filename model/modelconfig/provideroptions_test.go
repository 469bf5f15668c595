package modelconfig

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/model/modelconfig/configpb"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// Every option of every provider refuses an invalid value with its name and the expected form. The
// valid values are those of the providers' documentation.
func TestCheckProviderOption(t *testing.T) {
	t.Parallel()
	for _, good := range [][3]string{
		{"openvino", "num_of_threads", "2"}, {"openvino", "num_streams", "1"}, {"openvino", "precision", "ACCURACY"},
		{"openvino", "load_config", `{"CPU": {"ENABLE_CPU_PINNING": "NO"}}`}, {"openvino", "disable_dynamic_shapes", "true"},
		{"openvino", "cache_dir", "blobs"}, {"openvino", "device_type", "GPU.1"}, {"openvino", "device_type", "HETERO:GPU.0,CPU"},
		{"cuda", "cudnn_conv_algo_search", "HEURISTIC"}, {"cuda", "gpu_mem_limit", "18446744073709551615"},
		{"cuda", "sdpa_kernel", "16"}, {"tensorrt", "precision_mode", "FP16"}, {"tensorrt", "trt_auxiliary_streams", "-1"},
		{"tensorrt", "trt_engine_cache_enable", "true"}, {"tensorrt", "trt_engine_cache_path", "cache"},
		{"xnnpack", "intra_op_num_threads", "4"}, {"dnnl", "use_arena", "0"}, {"coreml", "MLComputeUnits", "CPUOnly"},
	} {
		if err := CheckProviderOption(good[0], good[1], good[2]); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	properties, _ := provider.Of("openvino").Option("load_config")
	for _, bad := range []struct{ provider, name, value, want string }{
		{"openvino", "num_of_threads", "0", `cannot set option "num_of_threads" of execution provider openvino to "0": expected a whole number from 1 to 1024`},
		{"openvino", "num_streams", "two", `cannot set option "num_streams" of execution provider openvino to "two": expected a whole number from 1 to 1024`},
		{"openvino", "precision", "bf16", `cannot set option "precision" of execution provider openvino to "bf16": expected one of FP32, FP16, ACCURACY`},
		{"openvino", "device_type", "cpu", `cannot set option "device_type" of execution provider openvino to "cpu": ` +
			`expected CPU, GPU, NPU, GPU.1, AUTO, or a list such as HETERO:GPU,CPU`},
		{"openvino", "load_config", `{"CPU": 1}`, `cannot set option "load_config" of execution provider openvino to "{\"CPU\": 1}": expected ` +
			properties.Form.Expected},
		{"openvino", "load_config", `{"CPU": {"CACHE_DIR": "/etc"}}`, `cannot set option "load_config" of execution provider openvino to "{\"CPU\": {\"CACHE_DIR\": \"/etc\"}}": expected ` +
			properties.Form.Expected},
		{"dnnl", "use_arenas", "1", `cannot set option "use_arenas" of execution provider dnnl: its options are use_arena; did you mean "use_arena"?`},
		// an address
		{"dnnl", "threadpool_args", "123456", `cannot set option "threadpool_args" of execution provider dnnl: its options are use_arena`},
		{"cuda", "gpu_mem_limit", "-1", `cannot set option "gpu_mem_limit" of execution provider cuda to "-1": expected a number of bytes`},
		{"cpu", "threads", "1", `cannot set option "threads" of execution provider cpu: it takes no options`},
	} {
		if err := CheckProviderOption(bad.provider, bad.name, bad.value); err == nil || err.Error() != bad.want {
			t.Errorf("%s.%s = %s:\n got %v\nwant %s", bad.provider, bad.name, bad.value, err, bad.want)
		}
	}
}

// Every listed option can be set, with some value.
func TestProviderOptions(t *testing.T) {
	t.Parallel()
	if got := provider.Of("cpu").OptionNames(); got != nil {
		t.Errorf("cpu has options %v", got)
	}
	for _, row := range provider.All() {
		names := row.OptionNames()
		if len(names) != len(row.Options) || !slices.IsSorted(names) {
			t.Errorf("%s: options %v", row.Name, names)
		}
		for _, name := range names {
			option, _ := row.Option(name)
			values := append([]string{"1", "CPU", "{}"}, option.Form.Words...)
			taken := slices.ContainsFunc(values, func(v string) bool { return CheckProviderOption(row.Name, name, v) == nil })
			if !taken {
				t.Errorf("%s.%s takes none of %v", row.Name, name, values)
			}
		}
	}
}

// The texts for TensorRT are those in the source of Triton's onnxruntime backend.
func TestCheckAccelerator(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ provider, name, value, want string }{
		{"tensorrt", "trt_fp16_enable", "1", "unknown parameter 'trt_fp16_enable' is provided for TensorRT Execution Accelerator"},
		{"tensorrt", "precision_mode", "fp16", "unsupported precision mode 'fp16' is requested"},
		{"tensorrt", "max_workspace_size_bytes", "much", "failed to convert 'much' to unsigned long long integral number"},
		{"tensorrt", "trt_min_subgraph_size", "few", "failed to convert 'few' to integral number"},
		{"tensorrt", "trt_dla_enable", "maybe", "failed to convert 'maybe' to boolean"},
		{"tensorrt", "trt_dla_enable", "1", ""},
		{"cuda", "an_option_of_tomorrow", "1", ""}, // ONNX Runtime checks it
		{"cuda", "prefer_nhwc", "yes", `cannot set option "prefer_nhwc" of execution provider cuda to "yes": expected one of 0, 1`},
		{"openvino", "num_threads", "1", `cannot set option "num_threads" of execution provider openvino: its options are cache_dir, device_type, ` +
			`disable_dynamic_shapes, enable_opencl_throttling, enable_qdq_optimizer, layout, load_config, model_priority, num_of_threads, num_streams, ` +
			`precision, reshape_input; did you mean "num_of_threads"?`},
	} {
		err := checkAccelerator(Accelerator{Name: test.provider, Parameters: map[string]string{test.name: test.value}})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s.%s = %s:\n got %s\nwant %s", test.provider, test.name, test.value, got, test.want)
		}
	}
}

// A set option can be read back, and the original does not change.
func TestSetProviderOption(t *testing.T) {
	t.Parallel()
	before := Options{CPUAccelerators: []Accelerator{{Name: "openvino", Parameters: map[string]string{"num_streams": "1"}}}}
	o := before
	o.SetProviderOption("openvino", "num_of_threads", "2")
	o.SetProviderOption("tensorrt", "precision_mode", "FP16")
	o.SetProviderOption("cuda", "prefer_nhwc", "1")
	o.SetProviderOption("cuda", "cudnn_conv_algo_search", "HEURISTIC")
	o.SetProviderOption("cuda", "gpu_mem_limit", "1024")
	want := Options{
		CPUAccelerators: []Accelerator{{Name: "openvino", Parameters: map[string]string{"num_streams": "1", "num_of_threads": "2"}}},
		GPUAccelerators: []Accelerator{{Name: "tensorrt", Parameters: map[string]string{"precision_mode": "FP16"}},
			{Name: "cuda", Parameters: map[string]string{"prefer_nhwc": "1"}}},
		CUDA: map[string]string{"cudnn_conv_algo_search": "1", "gpu_mem_limit": "1024"},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := len(before.CPUAccelerators[0].Parameters); n != 1 {
		t.Errorf("the original has %d parameters now", n)
	}
	read, err := ORTOptions(SetORTOptions(&Config{}, o))
	if diff := cmp.Diff(want, read); diff != "" || err != nil {
		t.Errorf("written and read: %v (-want +got):\n%s", err, diff)
	}
	cuda, err := read.cudaOptions()
	if diff := cmp.Diff(map[string]string{"prefer_nhwc": "1", "cudnn_conv_algo_search": "HEURISTIC", "gpu_mem_limit": "1024",
		"arena_extend_strategy": "kNextPowerOfTwo", "do_copy_in_default_stream": "1"}, cuda); diff != "" || err != nil {
		t.Errorf("CUDA: %v (-want +got):\n%s", err, diff)
	}
}

// Triton's backend always takes these four from the parameters, or their defaults. It never reads
// them at the accelerator.
func TestCUDAOptions(t *testing.T) {
	t.Parallel()
	defaults := map[string]string{"cudnn_conv_algo_search": "EXHAUSTIVE", "gpu_mem_limit": "18446744073709551615",
		"arena_extend_strategy": "kNextPowerOfTwo", "do_copy_in_default_stream": "1"}
	got, err := Options{GPUAccelerators: []Accelerator{{Name: "cuda", Parameters: map[string]string{"gpu_mem_limit": "7"}}}}.cudaOptions()
	if diff := cmp.Diff(defaults, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = Options{CUDA: map[string]string{"cudnn_conv_algo_search": "3", "arena_extend_strategy": "grow"}}.cudaOptions()
	if want := "failed to convert 'grow' to integral number\nunsupported cudnn_conv_algo_search value '3' is requested"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// For cpu and cuda, a stock Triton needs the kind of the instances, and for all others an
// accelerator. Existing accelerators stay only for their own provider.
func TestUseProvider(t *testing.T) {
	t.Parallel()
	openVINO := Accelerator{Name: "openvino", Parameters: map[string]string{"num_streams": "1"}}
	cuda := Accelerator{Name: "cuda", Parameters: map[string]string{"prefer_nhwc": "1"}}
	both := Options{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "2"}, CPUAccelerators: []Accelerator{openVINO}, GPUAccelerators: []Accelerator{cuda}}
	for name, test := range map[string]struct {
		cpu, gpu []Accelerator
		kind     configpb.ModelInstanceGroup_Kind
	}{
		"cpu":      {nil, nil, configpb.ModelInstanceGroup_KIND_CPU},
		"openvino": {[]Accelerator{openVINO}, nil, configpb.ModelInstanceGroup_KIND_CPU},
		"xnnpack":  {[]Accelerator{{Name: "xnnpack"}}, nil, configpb.ModelInstanceGroup_KIND_CPU},
		"cuda":     {nil, []Accelerator{cuda}, configpb.ModelInstanceGroup_KIND_GPU},
		"tensorrt": {nil, []Accelerator{{Name: "tensorrt"}}, configpb.ModelInstanceGroup_KIND_GPU},
	} {
		got := both
		if kind := got.UseProvider(name); kind != test.kind {
			t.Errorf("%s: kind %v", name, kind)
		}
		want := Options{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "2"}, CPUAccelerators: test.cpu, GPUAccelerators: test.gpu}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var none Options
	if none.UseProvider("cuda"); len(none.GPUAccelerators) > 0 {
		t.Errorf("cuda needs no accelerator: %v", none.GPUAccelerators)
	}
}
