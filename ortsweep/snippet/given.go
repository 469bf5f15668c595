package snippet

import (
	"maps"
	"slices"
	"strconv"

	"tuner/modelconfig"
)

// A Place is where a session was measured.
type Place struct {
	OnGPU bool
	GPU   int // its number
	Cores int // that the process may use
}

// Given returns what the engine gives ONNX Runtime for a configuration's session options (engine/onnxruntime does the same): the options, and
// the execution providers by ONNX Runtime's own names before that of the CPU. On a GPU the CUDA provider stands behind TensorRT, for what that
// does not take, as ONNX Runtime's documentation of TensorRT advises. What ONNX Runtime does without being told is left out.
func Given(o modelconfig.Options, at Place) (modelconfig.Options, []Provider, error) {
	accelerators := o.CPUAccelerators
	if at.OnGPU {
		accelerators = o.GPUAccelerators
	}
	var providers []Provider
	for _, a := range accelerators {
		if a.Name == "cpu" || a.Name == "cuda" && at.OnGPU {
			continue // always there; for all of CUDA's options, see below
		}
		providers = append(providers, Provider{a.Name, providerOptions(a, at)})
	}
	if at.OnGPU {
		cuda, err := cudaOptions(o)
		if err != nil {
			return o, nil, err
		}
		providers = append(providers, Provider{"cuda", onDevice(cuda, at)})
	}
	o.GPUAccelerators, o.CPUAccelerators, o.CUDA = nil, nil, nil // they are providers now
	o, providers = withOwnPool(o, providers, at.Cores)
	return o, providers, nil
}

// providerOptions are an accelerator's parameters as ONNX Runtime names them.
func providerOptions(a modelconfig.Accelerator, at Place) map[string]string {
	switch a.Name {
	case "tensorrt":
		return onDevice(tensorRTOptions(a.Parameters), at)
	case "openvino":
		options := map[string]string{"device_type": "CPU"}
		maps.Copy(options, a.Parameters)
		return options
	}
	return maps.Clone(a.Parameters)
}

// onDevice adds the number of a GPU other than the first.
func onDevice(options map[string]string, at Place) map[string]string {
	if at.GPU > 0 {
		options["device_id"] = strconv.Itoa(at.GPU)
	}
	return options
}

// tensorRTOptions translates the names of Triton's onnxruntime backend.
func tensorRTOptions(parameters map[string]string) map[string]string {
	options := map[string]string{}
	for key, value := range parameters {
		switch key {
		case "precision_mode":
			switch value {
			case "FP16":
				options["trt_fp16_enable"] = "1"
			case "BF16":
				options["trt_bf16_enable"] = "1"
			case "INT8":
				options["trt_int8_enable"] = "1"
			}
		case "max_workspace_size_bytes":
			options["trt_max_workspace_size"] = value
		case "int8_calibration_table_name":
			options["trt_int8_calibration_table_name"] = value
		case "int8_use_native_calibration_table":
			options["trt_int8_use_native_calibration_table"] = value
		default:
			options[key] = value
		}
	}
	return options
}

// cudaOptions are those of the CUDA provider, without what is set where nothing is said: these are ONNX Runtime's own defaults.
func cudaOptions(o modelconfig.Options) (map[string]string, error) {
	options, err := o.CUDAOptions()
	if err != nil {
		return nil, err
	}
	usual, err := modelconfig.Options{}.CUDAOptions()
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(options, func(key, value string) bool { return usual[key] == value })
	return options, nil
}

// withOwnPool gives a session's threads to XNNPACK's own pool, unless that is told how many it has: ONNX Runtime has one then, and none waits
// busily unless the configuration says so.
func withOwnPool(o modelconfig.Options, providers []Provider, cores int) (modelconfig.Options, []Provider) {
	const threads, spinning = "intra_op_num_threads", "session.intra_op.allow_spinning"
	i := slices.IndexFunc(providers, func(p Provider) bool { return p.Name == "xnnpack" })
	if i < 0 {
		return o, providers
	}
	if _, set := o.Session[spinning]; !set {
		o.Session = with(o.Session, spinning, "0")
	}
	if _, set := providers[i].Options[threads]; !set {
		own := o.IntraOpThreads
		if own == 0 {
			own = cores
		}
		providers[i].Options = with(providers[i].Options, threads, strconv.Itoa(own))
		o.IntraOpThreads = 1
	}
	return o, providers
}

// with returns a copy of a map with one more entry.
func with(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	maps.Copy(out, m)
	return out
}
