package modelconfig

import (
	"errors"
	"maps"
	"strconv"
	"strings"

	"tuner/model/modelconfig/configpb"
	"tuner/ort/provider"
)

// Keys of the parameters that the onnxruntime backend reads. Their values are
// strings.
const (
	keyIntraOpThreads = "intra_op_thread_count"
	keyInterOpThreads = "inter_op_thread_count"
	keyExecutionMode  = "execution_mode"
	keyMemoryArena    = "enable_mem_arena"
	keyMemoryPattern  = "enable_mem_pattern"
	keyArenaShrinkage = "memory.enable_memory_arena_shrinkage"
	sessionPrefix     = "session."
)

// A Switch is a boolean that may be left to ONNX Runtime.
type Switch int

// The values of a Switch; the zero value is Unset.
const (
	Unset Switch = iota
	On
	Off
)

// A GraphLevel is how far ONNX Runtime rewrites the graph of a model.
type GraphLevel int

// The graph levels; the zero value, everything, is the backend's default. The
// numbers are ours, see SetORTOptions for those of the configuration.
const (
	GraphAll GraphLevel = iota
	GraphExtended
	GraphBasic
	GraphDisabled
)

// An Accelerator is an execution provider with its options.
type Accelerator struct {
	Name       string
	Parameters map[string]string
}

// Options are the settings of an onnxruntime session that a configuration
// holds. The zero value is the backend's default throughout.
type Options struct {
	// Threads of one operator and of operators side by side; 0 leaves the
	// number to ONNX Runtime. Inter counts only with Parallel.
	IntraOpThreads, InterOpThreads int
	// Parallel runs independent operators at the same time.
	Parallel bool
	// MemoryArena keeps freed CPU memory for the next run, MemoryPattern plans
	// it ahead; ONNX Runtime does both unless told otherwise.
	MemoryArena, MemoryPattern Switch
	// ArenaShrinkage lists devices whose arenas give memory back after each
	// run, such as "cpu:0;gpu:0".
	ArenaShrinkage string
	Graph          GraphLevel
	// Session holds the session configuration entries, "session." included in
	// their keys. All but use_device_allocator_for_initializers are honoured
	// by the bundled engine only.
	Session map[string]string
	// CUDA holds the options of the CUDA provider that stand among the
	// parameters.
	CUDA map[string]string
	// Accelerators by the kind of instance that they are for, in order of
	// precedence.
	GPUAccelerators, CPUAccelerators []Accelerator
}

// ORTOptions reads the session settings out of c. The errors are the backend's,
// all of them joined.
func ORTOptions(c *Config) (Options, error) {
	p := parameterReader{parameters: c.GetParameters()}
	o := Options{
		IntraOpThreads: p.threads(keyIntraOpThreads),
		InterOpThreads: p.threads(keyInterOpThreads),
		Parallel:       p.parallel(),
		MemoryArena:    p.boolean(keyMemoryArena),
		MemoryPattern:  p.boolean(keyMemoryPattern),
		ArenaShrinkage: p.parameters[keyArenaShrinkage].GetStringValue(),
	}
	for key, value := range p.parameters {
		switch {
		case strings.HasPrefix(key, sessionPrefix):
			put(&o.Session, key, value.GetStringValue())
		case isCUDAParameter(key):
			put(&o.CUDA, key, value.GetStringValue())
		}
	}
	switch c.GetOptimization().GetGraph().GetLevel() {
	case -1:
		o.Graph = GraphBasic
	case 1:
		o.Graph = GraphExtended
	case 2:
		o.Graph = GraphDisabled
	}
	accelerators := c.GetOptimization().GetExecutionAccelerators()
	o.GPUAccelerators = readAccelerators(accelerators.GetGpuExecutionAccelerator())
	o.CPUAccelerators = readAccelerators(accelerators.GetCpuExecutionAccelerator())
	return o, errors.Join(p.errs...)
}

// SetORTOptions returns c with exactly these session settings, whatever it had
// before; ORTOptions of the result gives o again. Settings that are the
// backend's default are left out.
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
	switch key {
	case keyIntraOpThreads, keyInterOpThreads, keyExecutionMode, keyMemoryArena, keyMemoryPattern, keyArenaShrinkage:
		return true
	}
	return strings.HasPrefix(key, sessionPrefix) || isCUDAParameter(key)
}

func (o Options) parameters() map[string]string {
	p := make(map[string]string)
	maps.Copy(p, o.Session)
	maps.Copy(p, o.CUDA)
	if o.IntraOpThreads > 0 {
		p[keyIntraOpThreads] = strconv.Itoa(o.IntraOpThreads)
	}
	if o.InterOpThreads > 0 {
		p[keyInterOpThreads] = strconv.Itoa(o.InterOpThreads)
	}
	if o.Parallel {
		p[keyExecutionMode] = "1"
	}
	if o.ArenaShrinkage != "" {
		p[keyArenaShrinkage] = o.ArenaShrinkage
	}
	for key, value := range map[string]Switch{keyMemoryArena: o.MemoryArena, keyMemoryPattern: o.MemoryPattern} {
		switch value {
		case On:
			p[key] = "1"
		case Off:
			p[key] = "0"
		}
	}
	return p
}

// graph is optimization.graph, whose levels are the backend's own: -1 basic,
// 1 extended, 2 disabled, absent all.
func (o Options) graph() *configpb.ModelOptimizationPolicy_Graph {
	switch o.Graph {
	case GraphBasic:
		return &configpb.ModelOptimizationPolicy_Graph{Level: -1}
	case GraphExtended:
		return &configpb.ModelOptimizationPolicy_Graph{Level: 1}
	case GraphDisabled:
		return &configpb.ModelOptimizationPolicy_Graph{Level: 2}
	default:
		return nil
	}
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

// A parameterReader reads typed parameters and gathers what is wrong with them.
type parameterReader struct {
	parameters map[string]*configpb.ModelParameter
	errs       []error
}

// integer is 0 where the parameter is missing.
func (p *parameterReader) integer(key string) int {
	value, ok := p.parameters[key]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(value.GetStringValue()))
	if err != nil {
		p.errs = append(p.errs, refuse("failed to convert '%s' to integral number", value.GetStringValue()))
		return 0
	}
	return n
}

// threads is 0 where ONNX Runtime is to choose.
func (p *parameterReader) threads(key string) int {
	n := p.integer(key)
	if n > provider.MaxThreads {
		p.errs = append(p.errs, refuse("parameter '%s' is %d; this engine allows %d threads at most", key, n, provider.MaxThreads))
		return 0
	}
	return max(0, n)
}

func (p *parameterReader) parallel() bool {
	mode := p.integer(keyExecutionMode)
	if mode != 0 && mode != 1 {
		p.errs = append(p.errs, refuse("Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got %d .", mode))
	}
	return mode == 1
}

func (p *parameterReader) boolean(key string) Switch {
	value, ok := p.parameters[key]
	if !ok {
		return Unset
	}
	switch strings.ToLower(value.GetStringValue()) {
	case "1", "true", "on":
		return On
	case "0", "false", "off":
		return Off
	}
	p.errs = append(p.errs, refuse("failed to convert '%s' to boolean", value.GetStringValue()))
	return Unset
}

// put stores a value in a map that may not exist yet.
func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = value
}
