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
	"strings"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"tuner/ort/provider"
)

// Provider is an execution provider with its options, in ONNX Runtime's names and values.
type Provider struct {
	// name as in Runtime.Providers: cpu, openvino, cuda, tensorrt, coreml, xnnpack, …
	Name    string
	Options map[string]string
}

// providerNames lists the providers of a session. ONNX Runtime adds cpu at the end.
func (o SessionOptions) providerNames() []string {
	var names []string
	for _, p := range o.Providers {
		if p.Name != provider.CPU {
			names = append(names, p.Name)
		}
	}
	return append(names, provider.CPU)
}

// appendProvider appends an execution provider to the order of preference.
func (r *Runtime) appendProvider(options *binding.SessionOptions, p Provider) error {
	if !slices.Contains(r.providers, p.Name) && !provider.Of(p.Name).Apart {
		return fmt.Errorf("cannot use execution provider %q: ONNX Runtime %s (%s) was compiled with %s only",
			p.Name, r.version, r.library, strings.Join(r.providers, ", "))
	}
	if err := r.appendCompiled(options, p); err != nil {
		return fmt.Errorf("cannot use execution provider %q%s: %w", p.Name, p.optionsText(), err)
	}
	return nil
}

// optionsText lists the options, for errors. If OpenVINO refuses an option, ONNX Runtime only
// reports that a library failed to load. The name of the option is only in the log.
func (p Provider) optionsText() string {
	if len(p.Options) == 0 {
		return ""
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(p.Options)) {
		parts = append(parts, key+"="+p.Options[key])
	}
	return " with " + strings.Join(parts, ", ")
}

// appendCompiled calls the function of ONNX Runtime that adds the provider. Providers without their
// own case use the generic call.
func (r *Runtime) appendCompiled(options *binding.SessionOptions, p Provider) error {
	switch p.Name {
	case provider.CPU: // always there, at the end
		if len(p.Options) > 0 {
			return fmt.Errorf("it takes no options")
		}
		return nil
	case "openvino":
		return options.AppendExecutionProviderOpenVINO(p.Options)
	case provider.CUDA:
		return appendCUDA(options, p.Options)
	case "tensorrt":
		return appendTensorRT(options, p.Options)
	case provider.PlugIn:
		return r.appendPlugIn(options, p.Options)
	case "dnnl":
		return r.appendDNNL(options, p.Options)
	case "coreml":
		return options.AppendExecutionProviderCoreMLV2(p.Options)
	}
	row, known := provider.Find(p.Name)
	if !known {
		return fmt.Errorf("tuner has no way to set it up")
	}
	return options.AppendExecutionProvider(row.GenericName(), p.Options)
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

// appendDNNL bypasses the binding, which does not support the oneDNN provider.
func (r *Runtime) appendDNNL(options *binding.SessionOptions, settings map[string]string) error {
	keys, values, free := nativePairs(settings)
	defer free()
	return r.check(C.api_append_dnnl(r.api, nativeOptions(options), unsafe.SliceData(keys), unsafe.SliceData(values), C.size_t(len(keys))))
}
