package modelconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An optionForm is how the value of a provider's option is written.
type optionForm struct {
	holds func(value string) bool
	// expected names the allowed values for people.
	expected string
	// stock is the refusal of Triton's onnxruntime backend, which parses the
	// parameters of TensorRT alone, with %s for the value.
	stock string
}

// whole is a whole number of at least least and at most most.
func whole(least, most int64) optionForm {
	return optionForm{
		holds: func(value string) bool {
			n, err := strconv.ParseInt(value, 10, 64)
			return err == nil && least <= n && n <= most
		},
		expected: fmt.Sprintf("a whole number from %d to %d", least, most),
		stock:    "failed to convert '%s' to integral number",
	}
}

// size is a number of bytes.
func size() optionForm {
	return optionForm{
		holds: func(value string) bool {
			_, err := strconv.ParseUint(value, 10, 64)
			return err == nil
		},
		expected: "a number of bytes",
		stock:    "failed to convert '%s' to unsigned long long integral number",
	}
}

// toggle is a boolean; words are the values that the provider's own parser
// takes.
func toggle(words ...string) optionForm {
	form := word(words...)
	form.stock = "failed to convert '%s' to boolean"
	return form
}

// word is one of a few words.
func word(words ...string) optionForm {
	return optionForm{
		holds:    func(value string) bool { return slices.Contains(words, value) },
		expected: "one of " + strings.Join(words, ", "),
		stock:    "unsupported precision mode '%s' is requested", // the only such parameter of TensorRT
	}
}

// text is anything: a path, a device, shapes.
func text() optionForm { return optionForm{holds: func(string) bool { return true }} }

// device is an OpenVINO device. OpenVINO itself takes any, and leaves a model
// to ONNX Runtime's CPU provider when there is none of the name.
func device() optionForm {
	names := regexp.MustCompile(`^(AUTO|((CPU|GPU|NPU)(\.\d+)?)|(AUTO|HETERO|MULTI):(CPU|GPU|NPU)(\.\d+)?(,(CPU|GPU|NPU)(\.\d+)?)*)$`)
	return optionForm{holds: names.MatchString, expected: "CPU, GPU, NPU, GPU.1, AUTO, or a list such as HETERO:GPU,CPU"}
}

// deviceProperties is OpenVINO's load_config: properties by device. Those that
// name files are left out, and so is what a newer OpenVINO may add: a
// configuration comes over the wire, too.
func deviceProperties() optionForm {
	known := strings.Fields(`NUM_STREAMS INFERENCE_NUM_THREADS INFERENCE_PRECISION_HINT EXECUTION_MODE_HINT PERFORMANCE_HINT
		PERFORMANCE_HINT_NUM_REQUESTS SCHEDULING_CORE_TYPE MODEL_DISTRIBUTION_POLICY ENABLE_HYPER_THREADING ENABLE_CPU_PINNING
		ENABLE_CPU_RESERVATION DYNAMIC_QUANTIZATION_GROUP_SIZE KV_CACHE_PRECISION CPU_DENORMALS_OPTIMIZATION
		CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE`)
	return optionForm{
		holds: func(value string) bool {
			var devices map[string]map[string]any
			if json.Unmarshal([]byte(value), &devices) != nil {
				return false
			}
			for _, properties := range devices {
				for name := range properties {
					if !slices.Contains(known, name) {
						return false
					}
				}
			}
			return true
		},
		expected: `a JSON object such as {"CPU": {"ENABLE_CPU_PINNING": "NO"}}, of the properties ` + strings.Join(known, ", "),
	}
}

// providerOptions lists the options of an execution provider by the names that
// the parameters of an accelerator have; nil for a provider without a table.
// Options that are addresses in memory, or choose what instance_group chooses,
// are left out.
func providerOptions(provider string) map[string]optionForm {
	switch provider {
	case "openvino":
		return openVINOOptions()
	case "cuda":
		return cudaOptions()
	case "tensorrt":
		return tensorRTOptions()
	case "xnnpack":
		return map[string]optionForm{"intra_op_num_threads": whole(1, maxThreads)}
	case "dnnl":
		return map[string]optionForm{"use_arena": toggle("0", "1")}
	case "coreml":
		return coreMLOptions()
	}
	return nil
}

// openVINOOptions are those of ONNX Runtime 1.24's OpenVINO provider. A stock
// Triton passes none of them on.
func openVINOOptions() map[string]optionForm {
	boolean := toggle("true", "false", "True", "False")
	return map[string]optionForm{
		"device_type":              device(),
		"precision":                word("FP32", "FP16", "ACCURACY"),
		"num_of_threads":           whole(1, maxThreads),
		"num_streams":              whole(1, maxThreads),
		"cache_dir":                text(),
		"load_config":              deviceProperties(),
		"model_priority":           word("LOW", "MEDIUM", "HIGH", "DEFAULT"),
		"enable_opencl_throttling": boolean,
		"enable_qdq_optimizer":     boolean,
		"disable_dynamic_shapes":   boolean,
		"reshape_input":            text(),
		"layout":                   text(),
	}
}

// cudaOptions are those of ONNX Runtime's documentation of the CUDA provider.
func cudaOptions() map[string]optionForm {
	boolean := toggle("0", "1")
	return map[string]optionForm{
		"cudnn_conv_algo_search":             word("EXHAUSTIVE", "HEURISTIC", "DEFAULT"),
		"gpu_mem_limit":                      size(),
		"arena_extend_strategy":              word("kNextPowerOfTwo", "kSameAsRequested"),
		"do_copy_in_default_stream":          boolean,
		"cudnn_conv_use_max_workspace":       boolean,
		"cudnn_conv1d_pad_to_nc1d":           boolean,
		"enable_cuda_graph":                  boolean,
		"prefer_nhwc":                        boolean,
		"use_tf32":                           boolean,
		"use_ep_level_unified_stream":        boolean,
		"enable_skip_layer_norm_strict_mode": boolean,
		"sdpa_kernel":                        whole(0, math.MaxInt32), // bits, one for each kind of attention kernel
		"tunable_op_enable":                  boolean,
		"tunable_op_tuning_enable":           boolean,
		"tunable_op_max_tuning_duration_ms":  whole(0, math.MaxInt32),
	}
}

// tensorRTOptions are the parameters that Triton's onnxruntime backend takes
// (source of its release r24.10 and of 2026); it refuses all others.
func tensorRTOptions() map[string]optionForm {
	options := map[string]optionForm{
		"precision_mode":           word("FP32", "FP16", "BF16", "INT8"),
		"max_workspace_size_bytes": size(),
	}
	add := func(form optionForm, names string) {
		for _, name := range strings.Fields(names) {
			options[name] = form
		}
	}
	add(toggle("0", "1", "true", "false", "True", "False"), `int8_use_native_calibration_table trt_dla_enable
		trt_engine_cache_enable trt_dump_subgraphs trt_force_sequential_engine_build trt_context_memory_sharing_enable
		trt_layer_norm_fp32_fallback trt_timing_cache_enable trt_force_timing_cache trt_detailed_build_log
		trt_build_heuristics_enable trt_sparsity_enable trt_cuda_graph_enable trt_dump_ep_context_model`)
	add(whole(math.MinInt32, math.MaxInt32), `trt_max_partition_iterations trt_min_subgraph_size trt_dla_core
		trt_builder_optimization_level trt_auxiliary_streams trt_ep_context_embed_mode`)
	add(text(), `int8_calibration_table_name trt_engine_cache_path trt_engine_cache_prefix trt_timing_cache_path
		trt_tactic_sources trt_extra_plugin_lib_paths trt_profile_min_shapes trt_profile_max_shapes trt_profile_opt_shapes
		trt_ep_context_file_path`)
	return options
}

// coreMLOptions are those of ONNX Runtime's documentation of the CoreML
// provider.
func coreMLOptions() map[string]optionForm {
	boolean := toggle("0", "1")
	return map[string]optionForm{
		"ModelFormat":                        word("MLProgram", "NeuralNetwork"),
		"MLComputeUnits":                     word("ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine"),
		"RequireStaticInputShapes":           boolean,
		"EnableOnSubgraphs":                  boolean,
		"SpecializationStrategy":             word("Default", "FastPrediction"),
		"AllowLowPrecisionAccumulationOnGPU": boolean,
		"ProfileComputePlan":                 boolean,
		"ModelCacheDirectory":                text(),
	}
}

// ProviderOptions lists the options that a configuration may give an execution
// provider, in alphabetical order; nil for a provider that has no options, or
// none that are known.
func ProviderOptions(provider string) []string {
	return slices.Sorted(maps.Keys(providerOptions(provider)))
}

// CheckProviderOption says what is wrong with an option of an execution
// provider: a name that the provider lacks, or a value that it would refuse.
func CheckProviderOption(provider, name, value string) error {
	options := providerOptions(provider)
	form, known := options[name]
	switch {
	case len(options) == 0:
		return fmt.Errorf("cannot set option %q of execution provider %s: it takes no options", name, provider)
	case !known:
		return fmt.Errorf("cannot set option %q of execution provider %s: its options are %s%s",
			name, provider, strings.Join(ProviderOptions(provider), ", "), hint(name, ProviderOptions(provider)))
	case !form.holds(value):
		return fmt.Errorf("cannot set option %q of execution provider %s to %q: expected %s", name, provider, value, form.expected)
	}
	return nil
}

// LowersPrecision reports whether an option has the provider compute with fewer
// bits than the model says: results then differ from those of a check without
// the option.
func LowersPrecision(provider, name, value string) bool {
	switch provider + "." + name {
	case "openvino.precision":
		return value == "FP16"
	case "openvino.load_config":
		return lowersOpenVINO(value)
	case "tensorrt.precision_mode":
		return value != "FP32"
	case "coreml.AllowLowPrecisionAccumulationOnGPU":
		return value == "1"
	}
	return false
}

// UsualDevice returns the value of an option that chooses the device to compute
// on with which the provider does as it does without the option; "" for every
// other option.
func UsualDevice(provider, name string) string {
	switch provider + "." + name {
	case "openvino.device_type":
		return "CPU" // Triton's backend sets it
	case "coreml.MLComputeUnits":
		return "ALL"
	}
	return ""
}

// lowersOpenVINO looks for OpenVINO's properties that choose the type to
// compute with. ONNX Runtime's provider sets float32 unless told otherwise.
func lowersOpenVINO(config string) bool {
	var devices map[string]map[string]any
	if json.Unmarshal([]byte(config), &devices) != nil {
		return false
	}
	lowers := false
	for _, properties := range devices {
		for name, value := range properties {
			switch name {
			case "INFERENCE_PRECISION_HINT":
				lowers = lowers || value != "f32"
			case "EXECUTION_MODE_HINT":
				lowers = lowers || value != "ACCURACY"
			case "DYNAMIC_QUANTIZATION_GROUP_SIZE", "KV_CACHE_PRECISION":
				lowers = true
			}
		}
	}
	return lowers
}

// CheckAccelerator refuses parameters as Triton's onnxruntime backend does. It
// knows those of TensorRT; names of CUDA's that are not in the table are left
// to ONNX Runtime, whose releases add to them. For the providers that a stock
// Triton has not, or gives no parameters, the errors are CheckProviderOption's.
func CheckAccelerator(a Accelerator) error {
	options := providerOptions(a.Name)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(a.Parameters)) {
		value := a.Parameters[name]
		form, known := options[name]
		switch {
		case a.Name == "cuda" && !known:
		case a.Name == "tensorrt" && !known:
			errs = append(errs, refuse("unknown parameter '%s' is provided for TensorRT Execution Accelerator", name))
		case a.Name == "tensorrt" && !form.holds(value):
			errs = append(errs, refuse(form.stock, value))
		case a.Name == "tensorrt":
		default:
			errs = append(errs, CheckProviderOption(a.Name, name, value))
		}
	}
	return errors.Join(errs...)
}

// parameterCodes translates between the CUDA options that stand among the
// parameters of a configuration, where two are codes, and ONNX Runtime's words.
func parameterCodes(name string) []string {
	switch name {
	case "cudnn_conv_algo_search":
		return []string{"EXHAUSTIVE", "HEURISTIC", "DEFAULT"}
	case "arena_extend_strategy":
		return []string{"kNextPowerOfTwo", "kSameAsRequested"}
	}
	return nil
}

// SetProviderOption sets an option of an execution provider where Triton's
// onnxruntime backend looks for it: at the provider's accelerator, which is
// added when it is missing. Those CUDA options that the backend reads among the
// parameters go there, since what stands there (or its default) wins over the
// accelerator's.
func (o *Options) SetProviderOption(provider, name, value string) {
	if provider == "cuda" && slices.Contains(cudaKeys(), name) {
		if code := slices.Index(parameterCodes(name), value); code >= 0 {
			value = strconv.Itoa(code)
		}
		o.CUDA = maps.Clone(o.CUDA)
		put(&o.CUDA, name, value)
		return
	}
	list := &o.CPUAccelerators
	if provider == "cuda" || provider == "tensorrt" {
		list = &o.GPUAccelerators
	}
	*list = slices.Clone(*list)
	i := slices.IndexFunc(*list, func(a Accelerator) bool { return a.Name == provider })
	if i < 0 {
		*list, i = append(*list, Accelerator{Name: provider}), len(*list)
	}
	(*list)[i].Parameters = maps.Clone((*list)[i].Parameters)
	put(&(*list)[i].Parameters, name, value)
}

// CUDAOptions are the options of the CUDA provider in ONNX Runtime's names and
// words: those of its accelerator, and over them those that Triton's
// onnxruntime backend always sets, from the parameters or by default.
func (o Options) CUDAOptions() (map[string]string, error) {
	out := map[string]string{
		"cudnn_conv_algo_search": "EXHAUSTIVE", "gpu_mem_limit": strconv.FormatUint(math.MaxUint64, 10),
		"arena_extend_strategy": "kNextPowerOfTwo", "do_copy_in_default_stream": "1",
	}
	for _, a := range o.GPUAccelerators {
		if a.Name != "cuda" {
			continue
		}
		for name, value := range a.Parameters {
			if !slices.Contains(cudaKeys(), name) {
				out[name] = value
			}
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.CUDA)) {
		value := o.CUDA[name]
		codes := parameterCodes(name)
		if codes == nil {
			out[name] = value
			continue
		}
		code, err := strconv.Atoi(value)
		switch {
		case err != nil:
			errs = append(errs, refuse("failed to convert '%s' to integral number", value))
		case code < 0 || code >= len(codes):
			errs = append(errs, refuse("unsupported %s value '%d' is requested", name, code))
		default:
			out[name] = codes[code]
		}
	}
	return out, errors.Join(errs...)
}
