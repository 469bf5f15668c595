package ort

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	binding "github.com/yalue/onnxruntime_go"
)

// SessionOptions are ONNX Runtime's session options. The zero value means ONNX Runtime's default for everything.
type SessionOptions struct {
	ExecutionMode      ExecutionMode
	IntraOpThreads     int // threads within an operator, the calling one included; 0: as many as physical cores
	InterOpThreads     int // threads across operators, in parallel mode only; 0: as many as physical cores
	GraphOptimization  GraphOptimization
	MemoryArena        Switch            // CPU memory arena
	MemoryPattern      Switch            // memory planned ahead for known shapes
	Entries            map[string]string // session configuration entries, such as session.intra_op.allow_spinning
	RunEntries         map[string]string // run configuration entries, such as memory.enable_memory_arena_shrinkage
	Providers          []Provider        // execution providers in order of preference; the CPU provider always comes last
	OptimizedModelPath string            // where to write the optimised model; "": nowhere
	LogSeverity        LogSeverity
}

// Provider is an execution provider with its options, in ONNX Runtime's own names and values.
type Provider struct {
	Name    string // cpu, openvino, cuda, tensorrt, coreml, xnnpack, …: as Runtime.Providers has them
	Options map[string]string
}

// ExecutionMode says whether independent operators of a graph run one after the other.
type ExecutionMode int

// Execution modes.
const (
	Sequential ExecutionMode = iota
	Parallel
)

// GraphOptimization is the level of graph optimisation; each includes those below it.
type GraphOptimization int

// Levels of graph optimisation, the default first.
const (
	OptimizeAll GraphOptimization = iota
	OptimizeExtended
	OptimizeBasic
	OptimizeNothing
)

// Switch is an option that is on, off, or left to ONNX Runtime.
type Switch int

// States of a switch.
const (
	Default Switch = iota
	On
	Off
)

// LogSeverity is the least severe message that ONNX Runtime prints on stderr.
type LogSeverity int

// Severities; LogDefault is that of Open: warnings.
const (
	LogDefault LogSeverity = iota
	LogVerbose
	LogInfo
	LogWarning
	LogError
	LogFatal
)

// build makes the binding's options. The caller destroys them.
func (o SessionOptions) build(r *Runtime) (*binding.SessionOptions, error) {
	options, err := binding.NewSessionOptions()
	if err != nil {
		return nil, fmt.Errorf("cannot create session options: %w", err)
	}
	err = o.apply(options)
	for i := 0; err == nil && i < len(o.Providers); i++ {
		err = r.appendProvider(options, o.Providers[i])
	}
	if err != nil {
		_ = options.Destroy() // fails only on nil
		return nil, err
	}
	return options, nil
}

func (o SessionOptions) apply(options *binding.SessionOptions) error {
	steps := []struct {
		name string
		set  func() error
	}{
		{"execution mode", func() error { return setMode(options, o.ExecutionMode) }},
		{"intra-op threads", func() error { return options.SetIntraOpNumThreads(o.IntraOpThreads) }},
		{"inter-op threads", func() error { return options.SetInterOpNumThreads(o.InterOpThreads) }},
		{"graph optimization", func() error { return setOptimization(options, o.GraphOptimization) }},
		{"memory arena", func() error { return setSwitch(options.SetCpuMemArena, o.MemoryArena) }},
		{"memory pattern", func() error { return setSwitch(options.SetMemPattern, o.MemoryPattern) }},
		{"optimized model path", func() error { return setPath(options, o.OptimizedModelPath) }},
		{"log severity", func() error { return setSeverity(options, o.LogSeverity) }},
	}
	for _, step := range steps {
		if err := step.set(); err != nil {
			return fmt.Errorf("cannot set %s: %w", step.name, err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o.Entries)) {
		if err := options.AddSessionConfigEntry(key, o.Entries[key]); err != nil {
			return fmt.Errorf("cannot set session entry %q to %q: %w", key, o.Entries[key], err)
		}
	}
	return nil
}

func setMode(options *binding.SessionOptions, mode ExecutionMode) error {
	if mode == Parallel {
		return options.SetExecutionMode(binding.ExecutionModeParallel)
	}
	return options.SetExecutionMode(binding.ExecutionModeSequential)
}

func setOptimization(options *binding.SessionOptions, level GraphOptimization) error {
	switch level {
	case OptimizeNothing:
		return options.SetGraphOptimizationLevel(binding.GraphOptimizationLevelDisableAll)
	case OptimizeBasic:
		return options.SetGraphOptimizationLevel(binding.GraphOptimizationLevelEnableBasic)
	case OptimizeExtended:
		return options.SetGraphOptimizationLevel(binding.GraphOptimizationLevelEnableExtended)
	}
	return options.SetGraphOptimizationLevel(binding.GraphOptimizationLevelEnableAll)
}

func setSwitch(set func(bool) error, s Switch) error {
	if s == Default {
		return nil
	}
	return set(s == On)
}

func setPath(options *binding.SessionOptions, path string) error {
	if path == "" {
		return nil
	}
	return options.SetOptimizedModelFilePath(path)
}

func setSeverity(options *binding.SessionOptions, severity LogSeverity) error {
	if severity == LogDefault {
		return nil
	}
	return options.SetLogSeverityLevel(binding.LoggingLevel(severity - LogVerbose + binding.LoggingLevelVerbose))
}

// appendProvider puts an execution provider at the end of the order of preference.
func (r *Runtime) appendProvider(options *binding.SessionOptions, p Provider) error {
	if !slices.Contains(r.providers, p.Name) {
		return fmt.Errorf("cannot use execution provider %q: ONNX Runtime %s (%s) was compiled with %s only",
			p.Name, r.version, r.library, strings.Join(r.providers, ", "))
	}
	if err := appendCompiled(options, p); err != nil {
		return fmt.Errorf("cannot use execution provider %q: %w", p.Name, err)
	}
	return nil
}

func appendCompiled(options *binding.SessionOptions, p Provider) error {
	switch p.Name {
	case "cpu": // always there, last
		if len(p.Options) > 0 {
			return fmt.Errorf("it takes no options, found %q", slices.Sorted(maps.Keys(p.Options)))
		}
		return nil
	case "openvino":
		return options.AppendExecutionProviderOpenVINO(p.Options)
	case "cuda":
		return appendCUDA(options, p.Options)
	case "tensorrt":
		return appendTensorRT(options, p.Options)
	case "coreml":
		return options.AppendExecutionProviderCoreMLV2(p.Options)
	}
	generic := map[string]string{"xnnpack": "XNNPACK", "qnn": "QNN", "webgpu": "WebGPU", "vitisai": "VitisAI", "azure": "AZURE"}
	name, ok := generic[p.Name]
	if !ok {
		return fmt.Errorf("tuner has no way to set it up")
	}
	return options.AppendExecutionProvider(name, p.Options)
}

func appendCUDA(options *binding.SessionOptions, settings map[string]string) error {
	cuda, err := binding.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer cuda.Destroy()
	if err := cuda.Update(settings); err != nil {
		return err
	}
	return options.AppendExecutionProviderCUDA(cuda)
}

func appendTensorRT(options *binding.SessionOptions, settings map[string]string) error {
	tensorRT, err := binding.NewTensorRTProviderOptions()
	if err != nil {
		return err
	}
	defer tensorRT.Destroy()
	if err := tensorRT.Update(settings); err != nil {
		return err
	}
	return options.AppendExecutionProviderTensorRT(tensorRT)
}
