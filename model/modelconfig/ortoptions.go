package modelconfig

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tuner/model/modelconfig/configpb"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// keyArenaShrinkage is the parameter of a run option. All other keys are session
// options and session entries (package sessionoption).
const keyArenaShrinkage = "memory.enable_memory_arena_shrinkage"

// Accelerator is an execution provider with its options.
type Accelerator struct {
	Name       string
	Parameters map[string]string
}

// Options are the settings of an onnxruntime session in a configuration. The zero value has the
// backend's defaults.
type Options struct {
	// Settings are the session options that are parameters, or the level of the
	// graph optimization.
	Settings sessionoption.Settings
	// ArenaShrinkage lists devices whose arenas return memory after each run, such as
	// "cpu:0;gpu:0".
	ArenaShrinkage string
	// Session holds the session configuration entries, "session." included in
	// their keys.
	Session map[string]string
	// CUDA has the options of the CUDA provider among the parameters.
	CUDA map[string]string
	// Accelerators by the kind of their instances, in order of precedence.
	GPUAccelerators, CPUAccelerators []Accelerator
}

// ORTOptions reads the session settings of c. The errors are the backend's, all joined.
func ORTOptions(c *Config) (Options, error) {
	p := parameterReader{parameters: c.GetParameters()}
	o := Options{ArenaShrinkage: p.parameters[keyArenaShrinkage].GetStringValue()}
	for _, option := range sessionoption.All() {
		value, set := p.read(option)
		if option.IsLevel {
			value, set = option.Decode(strconv.Itoa(int(c.GetOptimization().GetGraph().GetLevel())))
		}
		if set {
			o.Settings = o.Settings.With(option.Name, value)
		}
	}
	for key, value := range p.parameters {
		switch {
		case sessionoption.IsEntry(key):
			put(&o.Session, key, value.GetStringValue())
		case isCUDAParameter(key):
			put(&o.CUDA, key, value.GetStringValue())
		}
	}
	accelerators := c.GetOptimization().GetExecutionAccelerators()
	o.GPUAccelerators = readAccelerators(accelerators.GetGpuExecutionAccelerator())
	o.CPUAccelerators = readAccelerators(accelerators.GetCpuExecutionAccelerator())
	return o, errors.Join(p.errs...)
}

// SetORTOptions returns c with exactly these session settings, and replaces all earlier ones.
// ORTOptions of the result gives o again. It omits settings with the backend's defaults.
func SetORTOptions(c *Config, o Options) *Config {
	out := Clone(c)
	maps.DeleteFunc(out.Parameters, func(key string, _ *configpb.ModelParameter) bool { return isORTKey(key) })
	for key, value := range o.parameters() {
		put(&out.Parameters, key, &configpb.ModelParameter{StringValue: value})
	}
	if out.Optimization == nil {
		out.Optimization = &configpb.ModelOptimizationPolicy{}
	}
	out.Optimization.Graph = o.graph()
	out.Optimization.ExecutionAccelerators = o.accelerators()
	if Equal(&Config{Optimization: out.Optimization}, &Config{Optimization: &configpb.ModelOptimizationPolicy{}}) {
		out.Optimization = nil
	}
	return out
}

func isORTKey(key string) bool {
	_, isOption := sessionoption.OfParameter(key)
	return isOption || key == keyArenaShrinkage || sessionoption.IsEntry(key) || isCUDAParameter(key)
}

func (o Options) parameters() map[string]string {
	p := make(map[string]string)
	maps.Copy(p, o.Session)
	maps.Copy(p, o.CUDA)
	for name, value := range o.Settings {
		if option := sessionoption.Of(name); option.Parameter != "" {
			p[option.Parameter] = option.Code(value)
		}
	}
	if o.ArenaShrinkage != "" {
		p[keyArenaShrinkage] = o.ArenaShrinkage
	}
	return p
}

// graph returns optimization.graph, and nil for the backend's default level.
func (o Options) graph() *configpb.ModelOptimizationPolicy_Graph {
	for name, value := range o.Settings {
		if option := sessionoption.Of(name); option.IsLevel {
			n, _ := strconv.Atoi(option.Code(value)) // the levels of an option are numbers
			return &configpb.ModelOptimizationPolicy_Graph{Level: int32(n)}
		}
	}
	return nil
}

// Set sets a session option in the place where Triton's onnxruntime backend reads it. The error
// says which values the option allows.
func (o *Options) Set(option sessionoption.Option, value string) error {
	if err := checkSetting(option, value); err != nil {
		return err
	}
	if len(option.Entries) == 0 {
		o.Settings = o.Settings.With(option.Name, value)
		return nil
	}
	for _, key := range option.Entries {
		o.SetEntry(key, option.Code(value))
	}
	return nil
}

// SetEntry sets a session entry.
func (o *Options) SetEntry(key, value string) {
	o.Session = maps.Clone(o.Session)
	put(&o.Session, key, value)
}

// Get returns the value of a session option, by default the option's default. It returns false if
// the option's entries differ, or if their value is none of the option's.
func (o Options) Get(option sessionoption.Option) (string, bool) {
	if len(option.Entries) == 0 {
		return o.Settings.Value(option.Name), true
	}
	codes := map[string]bool{}
	for _, key := range option.Entries {
		codes[cmp.Or(o.Session[key], option.Code(option.Default))] = true
	}
	if len(codes) > 1 {
		return "", false
	}
	return option.Decode(slices.Collect(maps.Keys(codes))[0])
}

// checkSetting returns an error for a value that a session option does not have.
func checkSetting(option sessionoption.Option, value string) error {
	if option.Kind == sessionoption.Threads {
		if n, err := strconv.Atoi(value); err != nil || n < 0 {
			return fmt.Errorf("cannot set it to %q: expected a whole number from 0", value)
		}
		return nil
	}
	if !slices.Contains(option.Values(), value) {
		return fmt.Errorf("cannot set it to %q: expected one of %s", value, strings.Join(option.Values(), ", "))
	}
	return nil
}

func (o Options) accelerators() *configpb.ModelOptimizationPolicy_ExecutionAccelerators {
	if len(o.GPUAccelerators)+len(o.CPUAccelerators) == 0 {
		return nil
	}
	return &configpb.ModelOptimizationPolicy_ExecutionAccelerators{
		GpuExecutionAccelerator: writeAccelerators(o.GPUAccelerators),
		CpuExecutionAccelerator: writeAccelerators(o.CPUAccelerators),
	}
}

type accelerator = configpb.ModelOptimizationPolicy_ExecutionAccelerators_Accelerator

func readAccelerators(list []*accelerator) []Accelerator {
	var read []Accelerator
	for _, a := range list {
		read = append(read, Accelerator{Name: a.GetName(), Parameters: maps.Clone(a.GetParameters())})
	}
	return read
}

func writeAccelerators(list []Accelerator) []*accelerator {
	var written []*accelerator
	for _, a := range list {
		written = append(written, &accelerator{Name: a.Name, Parameters: maps.Clone(a.Parameters)})
	}
	return written
}

// parameterReader reads typed parameters and collects mistakes.
type parameterReader struct {
	parameters map[string]*configpb.ModelParameter
	errs       []error
}

// read returns the value of a session option that is a parameter. set is false if the parameter is
// missing or wrong.
func (p *parameterReader) read(option sessionoption.Option) (value string, set bool) {
	parameter, ok := p.parameters[option.Parameter]
	if !ok || option.Parameter == "" {
		return "", false
	}
	text := parameter.GetStringValue()
	switch {
	case option.Kind == sessionoption.Switch:
		return p.boolean(text)
	case option.Kind == sessionoption.Threads:
		return p.threads(option.Parameter, text)
	case len(option.Codes) > 0:
		n, ok := p.integer(text)
		if !ok {
			return "", false
		}
		text = strconv.Itoa(n)
	}
	if value, set = option.Decode(text); !set {
		p.refuse(cmp.Or(option.Refusal, "unsupported "+option.Parameter+" '%s'"), text)
	}
	return value, set
}

func (p *parameterReader) refuse(format string, args ...any) {
	p.errs = append(p.errs, refuse(format, args...))
}

func (p *parameterReader) integer(text string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		p.refuse("failed to convert '%s' to integral number", text)
	}
	return n, err == nil
}

// threads reads the size of a thread pool. It returns 0 if ONNX Runtime chooses.
func (p *parameterReader) threads(key, text string) (string, bool) {
	n, ok := p.integer(text)
	if ok && n > provider.MaxThreads {
		p.refuse("parameter '%s' is %d; this engine allows %d threads at most", key, n, provider.MaxThreads)
		return "", false
	}
	return strconv.Itoa(max(0, n)), ok
}

func (p *parameterReader) boolean(text string) (string, bool) {
	switch strings.ToLower(text) {
	case "1", "true", "on":
		return sessionoption.On, true
	case "0", "false", "off":
		return sessionoption.Off, true
	}
	p.refuse("failed to convert '%s' to boolean", text)
	return "", false
}

// put stores a value in a map, and makes the map if needed.
func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = value
}
