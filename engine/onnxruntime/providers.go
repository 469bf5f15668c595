package onnxruntime

import (
	"maps"
	"slices"
	"strconv"

	"tuner/engine"
	"tuner/engine/hostpolicy"
	"tuner/modelconfig"
	"tuner/ort"
)

// providers lists the execution providers in Triton's order: the accelerators of the instance's kind, and for a GPU
// instance CUDA behind them, named or not. ONNX Runtime's own CPU provider always comes last. compiled are those that the
// library has.
func providers(compiled []string, o modelconfig.Options, in engine.Instance) ([]ort.Provider, error) {
	accelerators := o.CPUAccelerators
	if in.OnGPU {
		accelerators = o.GPUAccelerators
	}
	var out []ort.Provider
	for _, a := range accelerators {
		if !slices.Contains(compiled, a.Name) {
			return nil, engine.Errorf(engine.InvalidArgument, "unknown Execution Accelerator '%s' is requested", a.Name)
		}
		if err := modelconfig.CheckAccelerator(a); err != nil {
			return nil, engine.Errorf(engine.InvalidArgument, "%v", err)
		}
		if a.Name == "cuda" && in.OnGPU {
			continue // its parameters are part of CUDAOptions
		}
		out = append(out, ort.Provider{Name: a.Name, Options: accelerated(a, in)})
	}
	if !in.OnGPU {
		return out, nil
	}
	cuda, err := o.CUDAOptions()
	if err != nil {
		return nil, engine.Errorf(engine.InvalidArgument, "%v", err)
	}
	cuda["device_id"] = strconv.Itoa(in.GPU)
	return append(out, ort.Provider{Name: "cuda", Options: cuda}), nil
}

// accelerated returns an accelerator's parameters as ONNX Runtime names them, with what the instance adds.
func accelerated(a modelconfig.Accelerator, in engine.Instance) map[string]string {
	switch a.Name {
	case "tensorrt":
		out := map[string]string{"device_id": strconv.Itoa(in.GPU)}
		for key, value := range a.Parameters {
			key, value = tensorRTOption(key, value)
			out[key] = value
		}
		return out
	case "openvino":
		return openVINOOptions(a.Parameters, in)
	}
	return maps.Clone(a.Parameters)
}

// openVINOOptions adds the device, as Triton's backend does, and the number of threads under a host policy: OpenVINO has
// threads of its own, which take all cores of the machine.
func openVINOOptions(parameters map[string]string, in engine.Instance) map[string]string {
	out := map[string]string{"device_type": "CPU"}
	maps.Copy(out, parameters)
	if _, set := out["num_of_threads"]; !set && !in.Policy.IsAny() {
		out["num_of_threads"] = strconv.Itoa(hostpolicy.Cores())
	}
	return out
}

// tensorRTOption translates those names that differ between Triton and ONNX Runtime.
func tensorRTOption(key, value string) (string, string) {
	switch key {
	case "precision_mode":
		switch value {
		case "FP16":
			return "trt_fp16_enable", "1"
		case "INT8":
			return "trt_int8_enable", "1"
		case "BF16":
			return "trt_bf16_enable", "1"
		}
		return "trt_fp16_enable", "0" // FP32
	case "max_workspace_size_bytes":
		return "trt_max_workspace_size", value
	case "int8_calibration_table_name", "int8_use_native_calibration_table":
		return "trt_" + key, value
	}
	return key, value
}

// withOwnPool gives the threads of a session on XNNPACK to that provider's own pool, unless its parameter says how many that
// has. ONNX Runtime's documentation of the provider advises so: two pools whose threads wait busily take the cores from
// each other.
func withOwnPool(o ort.SessionOptions) ort.SessionOptions {
	const threads, spinning = "intra_op_num_threads", "session.intra_op.allow_spinning"
	i := slices.IndexFunc(o.Providers, func(p ort.Provider) bool { return p.Name == "xnnpack" })
	if i < 0 {
		return o
	}
	if _, set := o.Entries[spinning]; !set {
		o.Entries = withEntry(o.Entries, spinning, "0")
	}
	if _, set := o.Providers[i].Options[threads]; !set {
		o.Providers[i].Options = withEntry(o.Providers[i].Options, threads, strconv.Itoa(within(o.IntraOpThreads)))
		o.IntraOpThreads = 1
	}
	return o
}

// withEntry returns a copy of a map with one more entry.
func withEntry(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	maps.Copy(out, m)
	return out
}
