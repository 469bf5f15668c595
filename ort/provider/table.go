package provider

import (
	"math"
	"strings"
)

// table has a row for each execution provider, in the order in which `auto` tries them. Options
// leaves out addresses in memory, and choices that instance_group makes.
var table = []Provider{
	{
		Name: CPU, Title: "CPU", Class: "CPU",
		Triton: Bare,
		Remedy: "the build is damaged: delete its folder and install it again, or name another with --ort-library",
	},
	{
		// Options of ONNX Runtime 1.24's OpenVINO provider.
		Name: "openvino", Title: "OpenVINO", Class: "OpenVINO",
		Triton:  Bare,
		Flavour: "openvino",
		Remedy:  "delete the build's folder and install it again: tuner runtime install openvino",
		Options: []Option{
			{Name: "device_type", Form: openVINODevice()},
			{Name: "precision", Form: word("FP32", "FP16", "ACCURACY"), Lowers: is("FP16")},
			{Name: "num_of_threads", Form: whole(1, MaxThreads)},
			{Name: "num_streams", Form: whole(1, MaxThreads)},
			{Name: "cache_dir", Form: text(), Opens: outside},
			{
				Name: "load_config", Form: openVINOProperties(), Lowers: lowersOpenVINO,
				Opens: func(value string) bool { return !openVINOProperties().Holds(value) },
			},
			{Name: "model_priority", Form: word("LOW", "MEDIUM", "HIGH", "DEFAULT")},
			{Name: "enable_opencl_throttling", Form: toggle("true", "false", "True", "False")},
			{Name: "enable_qdq_optimizer", Form: toggle("true", "false", "True", "False")},
			{Name: "disable_dynamic_shapes", Form: toggle("true", "false", "True", "False")},
			{Name: "reshape_input", Form: text()},
			{Name: "layout", Form: text()},
		},
		Threads: Threads{Option: "num_of_threads", Only: true},
		Device:  Device{Option: "device_type", Usual: "CPU", Set: true},
		Files:   []string{"context"},
		CPP:     Call{MapCall, "OpenVINO_V2"},
		Go:      Call{MapCall, "OpenVINO"},
	},
	{
		// Options from ONNX Runtime's documentation of the CUDA provider.
		Name: CUDA, Title: "CUDA", Class: "CUDA",
		GPU:     true,
		Triton:  Passed,
		Flavour: "cuda",
		Remedy:  "it needs an NVIDIA GPU with its driver and free memory, CUDA 13 and cuDNN 9 on the loader's path",
		Options: []Option{
			{
				Name: "cudnn_conv_algo_search", Form: word("EXHAUSTIVE", "HEURISTIC", "DEFAULT"),
				Parameter: true, Coded: true,
			},
			{Name: "gpu_mem_limit", Form: size(), Parameter: true},
			{
				Name: "arena_extend_strategy", Form: word("kNextPowerOfTwo", "kSameAsRequested"),
				Parameter: true, Coded: true,
			},
			{Name: "do_copy_in_default_stream", Form: toggle("0", "1"), Parameter: true},
			{Name: "cudnn_conv_use_max_workspace", Form: toggle("0", "1")},
			{Name: "cudnn_conv1d_pad_to_nc1d", Form: toggle("0", "1")},
			{Name: "enable_cuda_graph", Form: toggle("0", "1")},
			{Name: "prefer_nhwc", Form: toggle("0", "1")},
			{Name: "use_tf32", Form: toggle("0", "1")},
			{Name: "use_ep_level_unified_stream", Form: toggle("0", "1")},
			{Name: "enable_skip_layer_norm_strict_mode", Form: toggle("0", "1")},
			// one bit per kind of attention kernel
			{Name: "sdpa_kernel", Form: whole(0, math.MaxInt32)},
			{Name: "tunable_op_enable", Form: toggle("0", "1")},
			{Name: "tunable_op_tuning_enable", Form: toggle("0", "1")},
			{Name: "tunable_op_max_tuning_duration_ms", Form: whole(0, math.MaxInt32)},
		},
		Device: Device{Option: "device_id", Set: true},
		Defaults: map[string]string{
			"cudnn_conv_algo_search": "EXHAUSTIVE", "gpu_mem_limit": "18446744073709551615",
			"arena_extend_strategy": "kNextPowerOfTwo", "do_copy_in_default_stream": "1", "device_id": "0",
		},
		// Source: onnxruntime's cuda_execution_provider_info.cc.
		Addresses: []string{
			"gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache", "user_compute_stream",
			"has_user_compute_stream", "default_memory_arena_cfg",
		},
		CPP: Call{ObjectCall, "CUDA"},
		Go:  Call{ObjectCall, "CUDA"},
	},
	{
		Name: "tensorrt", Title: "TensorRT", Class: "Tensorrt",
		GPU:           true,
		Triton:        Parsed,
		Behind:        CUDA, // as ONNX Runtime's documentation of TensorRT advises
		Flavour:       "cuda",
		Remedy:        "it needs an NVIDIA GPU with its driver and free memory, CUDA 13, cuDNN 9 and TensorRT 10 on the loader's path",
		BuildsEngines: true,
		Options:       tensorRTOptions(),
		Device:        Device{Option: "device_id", Set: true},
		Defaults:      map[string]string{"trt_fp16_enable": "0", "device_id": "0"},
		Files:         []string{"trt_onnx_model_folder_path"},
		CPP:           Call{ObjectCall, "TensorRT"},
		Go:            Call{ObjectCall, "TensorRT"},
	},
	{
		Name: "xnnpack", Title: "XNNPACK", Class: "Xnnpack", Generic: "XNNPACK",
		Options: []Option{{Name: "intra_op_num_threads", Form: whole(1, MaxThreads)}},
		Threads: Threads{Option: "intra_op_num_threads"},
	},
	{
		Name: "dnnl", Title: "oneDNN", Class: "Dnnl",
		Options: []Option{{Name: "use_arena", Form: toggle("0", "1")}},
		CPP:     Call{NativeCall, "Dnnl"},
		Go:      Call{How: NoCall},
	},
	{
		// Options from ONNX Runtime's documentation of the CoreML provider.
		Name: "coreml", Title: "CoreML", Class: "CoreML", Generic: "CoreML",
		Options: []Option{
			{Name: "ModelFormat", Form: word("MLProgram", "NeuralNetwork")},
			{Name: "MLComputeUnits", Form: word("ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine")},
			{Name: "RequireStaticInputShapes", Form: toggle("0", "1")},
			{Name: "EnableOnSubgraphs", Form: toggle("0", "1")},
			{Name: "SpecializationStrategy", Form: word("Default", "FastPrediction")},
			{Name: "AllowLowPrecisionAccumulationOnGPU", Form: toggle("0", "1"), Lowers: is("1")},
			{Name: "ProfileComputePlan", Form: toggle("0", "1")},
			{Name: "ModelCacheDirectory", Form: text(), Opens: outside},
		},
		Device: Device{Option: "MLComputeUnits", Usual: "ALL"},
		Go:     Call{MapCall, "CoreMLV2"},
	},
	{
		// A library with any provider: its own options are not known here.
		Name: PlugIn, Title: "the plug-in provider", Class: "PlugIn",
		Apart:   true,
		Options: []Option{{Name: PlugInDevice, Form: word("CPU", "GPU", "NPU")}},
		CPP:     Call{How: NoCall},
		Go:      Call{How: NoCall},
	},
	{Name: "qnn", Title: "QNN", Class: "QNN", Generic: "QNN", Unlisted: true},
	{Name: "webgpu", Title: "WebGPU", Class: "WebGpu", Generic: "WebGPU", Unlisted: true},
	{Name: "vitisai", Title: "Vitis AI", Class: "VitisAI", Generic: "VitisAI", Unlisted: true},
	{Name: "azure", Title: "Azure", Class: "Azure", Generic: "AZURE", Remote: true},
}

// tensorRTOptions are the parameters that Triton's onnxruntime backend accepts (source of its
// release r24.10 and of 2026). It refuses all others.
func tensorRTOptions() []Option {
	same := func(to string) func(string) (string, string) {
		return func(value string) (string, string) { return to, value }
	}
	mode := word("FP32", "FP16", "BF16", "INT8")
	mode.Refusal = "unsupported precision mode '%s' is requested"
	options := []Option{
		{Name: "precision_mode", Form: mode, Lowers: isNot("FP32"), Native: tensorRTPrecision},
		{Name: "max_workspace_size_bytes", Form: size(), Native: same("trt_max_workspace_size")},
		{
			Name: "int8_calibration_table_name", Form: text(), Opens: outside,
			Native: same("trt_int8_calibration_table_name"),
		},
		{Name: "int8_use_native_calibration_table", Form: anyBoolean(), Native: same("trt_int8_use_native_calibration_table")},
		{Name: "trt_engine_cache_path", Form: text(), Opens: outside},
		{Name: "trt_engine_cache_prefix", Form: text(), Opens: outside},
		{Name: "trt_timing_cache_path", Form: text(), Opens: outside},
		{Name: "trt_extra_plugin_lib_paths", Form: text(), Opens: always},
		{Name: "trt_ep_context_file_path", Form: text(), Opens: always},
	}
	add := func(form Form, names string) {
		for name := range strings.FieldsSeq(names) {
			options = append(options, Option{Name: name, Form: form})
		}
	}
	add(anyBoolean(), `trt_dla_enable trt_engine_cache_enable trt_dump_subgraphs trt_force_sequential_engine_build
		trt_context_memory_sharing_enable trt_layer_norm_fp32_fallback trt_timing_cache_enable trt_force_timing_cache
		trt_detailed_build_log trt_build_heuristics_enable trt_sparsity_enable trt_cuda_graph_enable
		trt_dump_ep_context_model`)
	add(whole(math.MinInt32, math.MaxInt32), `trt_max_partition_iterations trt_min_subgraph_size trt_dla_core
		trt_builder_optimization_level trt_auxiliary_streams trt_ep_context_embed_mode`)
	add(text(), `trt_tactic_sources trt_profile_min_shapes trt_profile_max_shapes trt_profile_opt_shapes`)
	return options
}

// anyBoolean is a boolean as Triton's backend parses it.
func anyBoolean() Form { return toggle("0", "1", "true", "false", "True", "False") }

// tensorRTPrecision translates Triton's precision_mode. In ONNX Runtime each precision has its own
// switch.
func tensorRTPrecision(mode string) (name, native string) {
	switch mode {
	case "FP16":
		return "trt_fp16_enable", "1"
	case "INT8":
		return "trt_int8_enable", "1"
	case "BF16":
		return "trt_bf16_enable", "1"
	}
	return "trt_fp16_enable", "0" // FP32
}
