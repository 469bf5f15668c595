package ort

import (
	"fmt"
	"maps"
	"slices"

	binding "github.com/yalue/onnxruntime_go"
)

// SessionOptions are ONNX Runtime's session options. The zero value leaves all at ONNX Runtime's
// defaults.
type SessionOptions struct {
	ExecutionMode ExecutionMode
	// threads within an operator, including the calling one; 0: number of physical cores
	IntraOpThreads int
	// threads across operators, in parallel mode only; 0: number of physical cores
	InterOpThreads    int
	GraphOptimization GraphOptimization
	MemoryArena       Switch // CPU memory arena
	MemoryPattern     Switch // memory planned ahead for known shapes
	// session configuration entries, such as session.intra_op.allow_spinning
	Entries map[string]string
	// run configuration entries, such as memory.enable_memory_arena_shrinkage
	RunEntries map[string]string
	// execution providers in order of preference; the CPU provider is always last
	Providers []Provider
	// record which provider runs which node, for Session.Assignment
	RecordAssignment   bool
	OptimizedModelPath string // path for the optimised model; "": it is not written
	LogSeverity        LogSeverity
}

// ExecutionMode decides whether independent operators of a graph run one after the other.
type ExecutionMode int

// Execution modes.
const (
	Sequential ExecutionMode = iota
	Parallel
)

// GraphOptimization is the level of graph optimisation. Each level includes those below it.
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

// LogSeverity is the least severity of messages that ONNX Runtime prints on stderr.
type LogSeverity int

// Severities. LogDefault is the severity of Open: warnings.
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
		_ = options.Destroy() // fails only for nil
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
	entries := o.Entries
	if o.RecordAssignment {
		entries = maps.Clone(entries)
		if entries == nil {
			entries = map[string]string{}
		}
		entries[recordAssignment] = "1"
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if err := options.AddSessionConfigEntry(key, entries[key]); err != nil {
			return fmt.Errorf("cannot set session entry %q to %q: %w", key, entries[key], err)
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
