package ort

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"tuner/ort/sessionoption"
)

// SessionOptions are ONNX Runtime's session options. The zero value leaves all at ONNX Runtime's
// defaults.
type SessionOptions struct {
	Settings sessionoption.Settings
	// session configuration entries, such as session.intra_op.allow_spinning
	Entries map[string]string
	// run configuration entries, such as memory.enable_memory_arena_shrinkage
	RunEntries map[string]string
	// execution providers in order of preference; the CPU provider is always last
	Providers []Provider
	// libraries with operators that the model uses beside ONNX Runtime's; their code runs in this
	// process
	OpLibraries []string
	// record which provider runs which node, for Session.Assignment
	RecordAssignment   bool
	OptimizedModelPath string // path for the optimised model; "": it is not written
	LogSeverity        LogSeverity
}

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
	if err = o.apply(options); err == nil && r.threads != nil {
		err = r.check(C.api_use_global_pools(r.api, nativeOptions(options)))
	}
	for i := 0; err == nil && i < len(o.OpLibraries); i++ {
		err = r.openOperators(options, o.OpLibraries[i])
	}
	for i := 0; err == nil && i < len(o.Providers); i++ {
		err = r.appendProvider(options, o.Providers[i])
	}
	if err != nil {
		_ = options.Destroy() // fails only for nil
		return nil, err
	}
	return options, nil
}

// openOperators opens a library with operators. ONNX Runtime closes it after the session.
func (r *Runtime) openOperators(options *binding.SessionOptions, path string) error {
	library := C.CString(path)
	defer C.free(unsafe.Pointer(library))
	return r.check(C.api_op_library(r.api, nativeOptions(options), library))
}

func (o SessionOptions) apply(options *binding.SessionOptions) error {
	for _, option := range sessionoption.All() {
		value, set := o.Settings[option.Name]
		if !set {
			continue
		}
		if err := setOption(options, option, value); err != nil {
			return fmt.Errorf("cannot set %s to %q: %w", option.Name, value, err)
		}
	}
	if err := setPath(options, o.OptimizedModelPath); err != nil {
		return fmt.Errorf("cannot set the path of the optimized model: %w", err)
	}
	if err := setSeverity(options, o.LogSeverity); err != nil {
		return fmt.Errorf("cannot set the log severity: %w", err)
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

// setOption sets an option by ONNX Runtime's function for it, or by its session entry.
func setOption(options *binding.SessionOptions, option sessionoption.Option, value string) error {
	switch option.Name {
	case sessionoption.IntraOpThreads:
		return setThreads(options.SetIntraOpNumThreads, value)
	case sessionoption.InterOpThreads:
		return setThreads(options.SetInterOpNumThreads, value)
	case sessionoption.ExecutionMode:
		mode := binding.ExecutionMode(binding.ExecutionModeSequential)
		if value == sessionoption.Parallel {
			mode = binding.ExecutionModeParallel
		}
		return options.SetExecutionMode(mode)
	case sessionoption.GraphOptimization:
		return setOptimization(options, value)
	case sessionoption.MemoryArena:
		return options.SetCpuMemArena(value == sessionoption.On)
	case sessionoption.MemoryPattern:
		return options.SetMemPattern(value == sessionoption.On)
	}
	return options.AddSessionConfigEntry(option.Entry, option.Code(value))
}

func setThreads(set func(int) error, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return err
	}
	return set(n)
}

func setOptimization(options *binding.SessionOptions, level string) error {
	switch level {
	case sessionoption.Disabled:
		return options.SetGraphOptimizationLevel(binding.GraphOptimizationLevelDisableAll)
	case "basic":
		return options.SetGraphOptimizationLevel(binding.GraphOptimizationLevelEnableBasic)
	case "extended":
		return options.SetGraphOptimizationLevel(binding.GraphOptimizationLevelEnableExtended)
	}
	return options.SetGraphOptimizationLevel(binding.GraphOptimizationLevelEnableAll)
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
