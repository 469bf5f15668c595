package modelconfig

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// A Place is where a session is made.
type Place struct {
	OnGPU bool
	GPU   int  // its number
	Cores int  // that the process, or the session by its host policy, may use
	Bound bool // by a host policy: left to itself what has threads takes all cores of the machine
}

// A Provider is an execution provider with its options, by ONNX Runtime's own
// names.
type Provider struct {
	Name    string
	Options map[string]string
}

// Given returns what ONNX Runtime is given for a session: the options, and the
// execution providers in Triton's order, which are the accelerators of the
// place's kind, and on a GPU CUDA behind them, named or not. ONNX Runtime's own
// CPU provider always comes last. An error is an option that a provider lacks.
func (o Options) Given(at Place) (Options, []Provider, error) {
	accelerators := o.CPUAccelerators
	if at.OnGPU {
		accelerators = o.GPUAccelerators
	}
	var providers []Provider
	for _, a := range accelerators {
		if err := CheckAccelerator(a); err != nil {
			return o, nil, err
		}
		if a.Name == "cuda" && at.OnGPU {
			continue // its parameters are part of CUDAOptions
		}
		providers = append(providers, Provider{a.Name, a.given(at)})
	}
	if at.OnGPU {
		cuda, err := o.CUDAOptions()
		if err != nil {
			return o, nil, err
		}
		cuda["device_id"] = strconv.Itoa(at.GPU)
		providers = append(providers, Provider{"cuda", cuda})
	}
	o.GPUAccelerators, o.CPUAccelerators, o.CUDA = nil, nil, nil // they are providers now
	if at.Bound {
		o.IntraOpThreads, o.InterOpThreads = cmp.Or(o.IntraOpThreads, at.Cores), cmp.Or(o.InterOpThreads, at.Cores)
	}
	o, providers = withOwnPool(o, providers, at.Cores)
	return o, providers, nil
}

// given are an accelerator's parameters as ONNX Runtime names them, with what
// the place adds: the device, as Triton's backend does, and for OpenVINO, which
// has threads of its own, their number under a host policy.
func (a Accelerator) given(at Place) map[string]string {
	switch a.Name {
	case "tensorrt":
		out := map[string]string{"device_id": strconv.Itoa(at.GPU)}
		for key, value := range a.Parameters {
			key, value = tensorRTOption(key, value)
			out[key] = value
		}
		return out
	case "openvino":
		out := map[string]string{"device_type": "CPU"}
		maps.Copy(out, a.Parameters)
		if _, set := out["num_of_threads"]; !set && at.Bound {
			out["num_of_threads"] = strconv.Itoa(at.Cores)
		}
		return out
	}
	return maps.Clone(a.Parameters)
}

// tensorRTOption translates those names that differ between Triton and ONNX
// Runtime.
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

// withOwnPool gives the threads of a session on XNNPACK to that provider's own
// pool, unless its parameter says how many that has. ONNX Runtime's
// documentation of the provider advises so: two pools whose threads wait busily
// take the cores from each other.
func withOwnPool(o Options, providers []Provider, cores int) (Options, []Provider) {
	const threads, spinning = "intra_op_num_threads", "session.intra_op.allow_spinning"
	i := slices.IndexFunc(providers, func(p Provider) bool { return p.Name == "xnnpack" })
	if i < 0 {
		return o, providers
	}
	if _, set := o.Session[spinning]; !set {
		o.Session = withEntry(o.Session, spinning, "0")
	}
	if _, set := providers[i].Options[threads]; !set {
		providers[i].Options = withEntry(providers[i].Options, threads, strconv.Itoa(cmp.Or(o.IntraOpThreads, cores)))
		o.IntraOpThreads = 1
	}
	return o, providers
}

// withEntry returns a copy of a map with one more entry.
func withEntry(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	maps.Copy(out, m)
	return out
}
