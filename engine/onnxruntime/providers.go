package onnxruntime

import (
	"slices"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/engine/hostpolicy"
	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
	"tuner/ort/provider"
)

// deviceOf returns where an instance's session is made, on the calling thread.
//
// A default number of threads is bound by ONNX Runtime, one to each core of the machine. Where the process is kept to some
// of the cores, such as by taskset, its threads would leave them and disturb others. So they are as many as the
// cores that it may use.
func deviceOf(in engine.Instance) modelconfig.Device {
	cores := hostpolicy.Cores()
	return modelconfig.Device{OnGPU: in.OnGPU, GPU: in.GPU, Cores: cores, Bound: !in.Policy.IsAny() || !hostinfo.IsWhole(cores)}
}

// checkPlugIn refuses the accelerator of a plug-in provider that is missing, with the reason.
func checkPlugIn(missing string, o modelconfig.Options) error {
	named := slices.ContainsFunc(slices.Concat(o.CPUAccelerators, o.GPUAccelerators), func(a modelconfig.Accelerator) bool { return a.Name == provider.PlugIn })
	if missing == "" || !named {
		return nil
	}
	return fault.Errorf(fault.InvalidArgument, "Execution Accelerator '%s' is requested, but %s", provider.PlugIn, missing)
}

// checkCompiled refuses accelerators for the instance's kind that the library does not have.
// compiled lists those that it has.
func checkCompiled(compiled []string, o modelconfig.Options, in engine.Instance) error {
	accelerators := o.CPUAccelerators
	if in.OnGPU {
		accelerators = o.GPUAccelerators
	}
	for _, a := range accelerators {
		if !slices.Contains(compiled, a.Name) {
			return fault.Errorf(fault.InvalidArgument, "unknown Execution Accelerator '%s' is requested", a.Name)
		}
	}
	return nil
}
