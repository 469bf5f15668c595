package modelconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tuner/model/modelconfig/configpb"
	"tuner/ort/provider"
)

// CheckProviderOption returns the mistake in an option of an execution provider: a name that the
// provider lacks, or a value that it would refuse.
func CheckProviderOption(of, name, value string) error {
	row := provider.Of(of)
	option, known := row.Option(name)
	switch {
	case len(row.Options) == 0:
		return fmt.Errorf("cannot set option %q of execution provider %s: it takes no options", name, of)
	case !known:
		return fmt.Errorf("cannot set option %q of execution provider %s: its options are %s%s",
			name, of, strings.Join(row.OptionNames(), ", "), hint(name, row.OptionNames()))
	case !option.Form.Holds(value):
		return fmt.Errorf("cannot set option %q of execution provider %s to %q: expected %s", name, of, value, option.Form.Expected)
	}
	return nil
}

// checkAccelerator refuses parameters like Triton's onnxruntime backend, and in its words if it
// parses them (TensorRT). Unknown names that it passes on (CUDA) are left to ONNX Runtime, whose
// releases add to them. For providers that a stock Triton lacks or gives no parameters, the errors
// are CheckProviderOption's.
func checkAccelerator(a Accelerator) error {
	row := provider.Of(a.Name)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(a.Parameters)) {
		value := a.Parameters[name]
		option, known := row.Option(name)
		switch {
		case row.Triton == provider.Passed && !known:
		case row.Triton == provider.Parsed && !known:
			errs = append(errs, refuse("unknown parameter '%s' is provided for %s Execution Accelerator", name, row.Title))
		case row.Triton == provider.Parsed && !option.Form.Holds(value):
			errs = append(errs, refuse(option.Form.Refusal, value))
		case row.Triton == provider.Parsed:
		default:
			errs = append(errs, CheckProviderOption(a.Name, name, value))
		}
	}
	return errors.Join(errs...)
}

// isCUDAParameter reports whether a model's parameter is an option of the CUDA provider. Triton's
// backend reads these options there, and not at the accelerator.
func isCUDAParameter(key string) bool {
	option, _ := provider.Of(provider.CUDA).Option(key)
	return option.Parameter
}

// UseProvider sets the accelerator with which a stock Triton uses an execution provider, and
// returns the kind of its instances. For cpu and cuda the kind is enough. It drops accelerators of
// other providers, and keeps the parameters of the provider's own.
func (o *Options) UseProvider(name string) configpb.ModelInstanceGroup_Kind {
	row := provider.Of(name)
	list, kind := o.CPUAccelerators, configpb.ModelInstanceGroup_KIND_CPU
	if row.GPU {
		list, kind = o.GPUAccelerators, configpb.ModelInstanceGroup_KIND_GPU
	}
	o.GPUAccelerators, o.CPUAccelerators = nil, nil
	if name == provider.CPU {
		return kind
	}
	list = slices.DeleteFunc(slices.Clone(list), func(a Accelerator) bool { return a.Name != name })
	if row.NeedsAccelerator() && len(list) == 0 {
		list = []Accelerator{{Name: name}}
	}
	*o.listOf(row) = list
	return kind
}

// listOf returns the list with a provider's accelerator.
func (o *Options) listOf(row provider.Provider) *[]Accelerator {
	if row.GPU {
		return &o.GPUAccelerators
	}
	return &o.CPUAccelerators
}

// SetProviderOption sets an option of an execution provider where Triton's onnxruntime backend
// reads it. That is the provider's accelerator, which is added if needed. Four CUDA options are
// parameters of the model: these, or their defaults, replace the accelerator's.
func (o *Options) SetProviderOption(of, name, value string) {
	row := provider.Of(of)
	if option, _ := row.Option(name); option.Parameter {
		if code := slices.Index(option.Form.Words, value); option.Coded && code >= 0 {
			value = strconv.Itoa(code)
		}
		o.CUDA = maps.Clone(o.CUDA)
		put(&o.CUDA, name, value)
		return
	}
	list := o.listOf(row)
	*list = slices.Clone(*list)
	i := slices.IndexFunc(*list, func(a Accelerator) bool { return a.Name == of })
	if i < 0 {
		*list, i = append(*list, Accelerator{Name: of}), len(*list)
	}
	(*list)[i].Parameters = maps.Clone((*list)[i].Parameters)
	put(&(*list)[i].Parameters, name, value)
}

// cudaOptions returns the options of the CUDA provider in ONNX Runtime's names and words. They are
// those of its accelerator, replaced by the four that Triton's onnxruntime backend always sets from
// the parameters or by default.
func (o Options) cudaOptions() (map[string]string, error) {
	cuda := provider.Of(provider.CUDA)
	out := map[string]string{}
	for _, option := range cuda.Options {
		if option.Parameter {
			out[option.Name] = cuda.Defaults[option.Name]
		}
	}
	for _, a := range o.GPUAccelerators {
		if a.Name != cuda.Name {
			continue
		}
		for name, value := range a.Parameters {
			if !isCUDAParameter(name) {
				out[name] = value
			}
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.CUDA)) {
		value := o.CUDA[name]
		option, _ := cuda.Option(name)
		if !option.Coded {
			out[name] = value
			continue
		}
		code, err := strconv.Atoi(value)
		switch {
		case err != nil:
			errs = append(errs, refuse("failed to convert '%s' to integral number", value))
		case code < 0 || code >= len(option.Form.Words):
			errs = append(errs, refuse("unsupported %s value '%d' is requested", name, code))
		default:
			out[name] = option.Form.Words[code]
		}
	}
	return out, errors.Join(errs...)
}
