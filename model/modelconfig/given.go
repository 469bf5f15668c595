package modelconfig

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// Device is the device of a session.
type Device struct {
	OnGPU bool
	GPU   int // its number
	Cores int // cores that the process, or the session by its host policy, may use
	// Bound: a host policy, or what started the process, limits the cores; without it, threads use all cores of the
	// machine
	Bound bool
}

// Provider is an execution provider with its options, by ONNX Runtime's names.
type Provider struct {
	Name    string
	Options map[string]string
}

// Given returns what ONNX Runtime receives for a session: the options, and the execution providers
// in Triton's order. These are the accelerators of the device's kind and, on a GPU, CUDA after them,
// also if it is not named. ONNX Runtime's own CPU provider always comes last. Options that concern
// the instances together are left out. An error means that a provider lacks an option.
func (o Options) Given(at Device) (Options, []Provider, error) {
	accelerators := o.CPUAccelerators
	if at.OnGPU {
		accelerators = o.GPUAccelerators
	}
	var providers []Provider
	for _, a := range accelerators {
		if err := checkAccelerator(a); err != nil {
			return o, nil, err
		}
		if a.Name == provider.CUDA && at.OnGPU {
			continue // its parameters are part of cudaOptions
		}
		providers = append(providers, Provider{a.Name, a.given(at)})
	}
	if at.OnGPU {
		cuda, err := o.cudaOptions()
		if err != nil {
			return o, nil, err
		}
		cuda[provider.Of(provider.CUDA).Device.Option] = strconv.Itoa(at.GPU)
		providers = append(providers, Provider{provider.CUDA, cuda})
	}
	o.GPUAccelerators, o.CPUAccelerators, o.CUDA = nil, nil, nil // they are providers now
	o.Settings = maps.Clone(o.Settings)
	maps.DeleteFunc(o.Settings, func(name, _ string) bool { return sessionoption.Of(name).OfInstances })
	if at.Bound {
		for _, name := range []string{sessionoption.IntraOpThreads, sessionoption.InterOpThreads} {
			o.Settings = o.Settings.With(name, strconv.Itoa(cmp.Or(o.Settings.Whole(name), at.Cores)))
		}
	}
	o, providers = withOwnPool(o, providers, at.Cores)
	return o, providers, nil
}

// given returns an accelerator's parameters by ONNX Runtime's names, with two additions of the
// place. One is the device, as in Triton's backend. The other is for a provider that has only its
// own threads: under a host policy their number is that of the cores.
func (a Accelerator) given(at Device) map[string]string {
	row := provider.Of(a.Name)
	out := map[string]string{}
	if row.Device.Set {
		out[row.Device.Option] = row.Device.Usual
		if row.GPU {
			out[row.Device.Option] = strconv.Itoa(at.GPU)
		}
	}
	for key, value := range a.Parameters {
		if option, _ := row.Option(key); option.Native != nil {
			key, value = option.Native(value)
		}
		out[key] = value
	}
	if _, set := out[row.Threads.Option]; row.Threads.Only && !set && at.Bound {
		out[row.Threads.Option] = strconv.Itoa(at.Cores)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// withOwnPool gives the threads of a session to the pool of a provider that has its own (XNNPACK).
// It does not if the provider's parameter sets that pool's size. ONNX Runtime's documentation of
// XNNPACK advises this, since two pools with spinning threads take cores from each other.
func withOwnPool(o Options, providers []Provider, cores int) (Options, []Provider) {
	i := slices.IndexFunc(providers, func(p Provider) bool { return provider.Of(p.Name).HasPoolBeside() })
	if i < 0 {
		return o, providers
	}
	threads := provider.Of(providers[i].Name).Threads.Option
	if _, set := o.Session[sessionoption.IntraSpinning]; !set {
		o.SetEntry(sessionoption.IntraSpinning, sessionoption.Of(sessionoption.AllowSpinning).Code(sessionoption.Off))
	}
	if _, set := providers[i].Options[threads]; !set {
		providers[i].Options = withEntry(providers[i].Options, threads, strconv.Itoa(cmp.Or(o.Settings.Whole(sessionoption.IntraOpThreads), cores)))
		o.Settings = o.Settings.With(sessionoption.IntraOpThreads, "1")
	}
	return o, providers
}

// withEntry returns a copy of a map with one more entry.
func withEntry(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	maps.Copy(out, m)
	return out
}
