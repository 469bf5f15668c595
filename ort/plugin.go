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

// plugIn is the execution provider of a library that the operator named.
type plugIn struct {
	library string
	class   string // ONNX Runtime's name of the provider
	devices []device
}

// device is a device on which a plug-in provider computes.
type device struct {
	native unsafe.Pointer // OrtEpDevice, which ONNX Runtime owns
	kind   string         // CPU, GPU or NPU
}

// deviceKinds are the kinds of devices by ONNX Runtime's OrtHardwareDeviceType.
func deviceKinds() []string { return []string{"CPU", "GPU", "NPU"} }

// PlugIn opens a library with an execution provider, once for a runtime. The provider is then one of
// Providers, by the name provider.PlugIn, if it offers a device here. Its code runs in this process.
// The error is ONNX Runtime's if the library cannot be opened. Call it before any session is made.
func (r *Runtime) PlugIn(library string) error {
	before, err := r.allDevices()
	if err != nil {
		return err
	}
	name, path := C.CString(provider.PlugIn), C.CString(library)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(path))
	if err := r.check(C.api_plug_in(r.api, r.env, name, path)); err != nil {
		return fmt.Errorf("cannot open the library %q with an execution provider: %w", library, err)
	}
	after, err := r.allDevices()
	if err != nil {
		return err
	}
	p := &plugIn{library: library}
	for _, native := range after {
		class := C.GoString(C.api_device_provider(r.api, native))
		if slices.Contains(before, native) || p.class != "" && p.class != class {
			continue // a library may have several providers: the first is used
		}
		kind := int(C.api_device_type(r.api, native))
		if kinds := deviceKinds(); kind >= 0 && kind < len(kinds) {
			p.class, p.devices = class, append(p.devices, device{native, kinds[kind]})
		}
	}
	r.plugIn = p
	if len(p.devices) > 0 {
		r.providers = append(r.providers, provider.PlugIn)
	}
	return nil
}

// allDevices returns the devices that all providers offer now.
func (r *Runtime) allDevices() ([]unsafe.Pointer, error) {
	var list *unsafe.Pointer
	var count C.size_t
	if err := r.check(C.api_devices(r.api, r.env, &list, &count)); err != nil {
		return nil, fmt.Errorf("cannot list the devices of execution providers: %w", err)
	}
	return slices.Clone(unsafe.Slice(list, int(count))), nil
}

// MissingPlugIn returns the reason why there is no plug-in provider; "" if there is one.
func (r *Runtime) MissingPlugIn() string {
	switch {
	case r.plugIn == nil:
		return "no library with an execution provider was named (--ep-library)"
	case len(r.plugIn.devices) == 0:
		return fmt.Sprintf("the execution provider of the library %q offers no device here", r.plugIn.library)
	}
	return ""
}

// PlugInText names the plug-in provider and its devices for people: "ExampleExecutionProvider on CPU".
// It is "" without one.
func (r *Runtime) PlugInText() string {
	if r.MissingPlugIn() != "" {
		return ""
	}
	return r.plugIn.class + " on " + strings.Join(r.plugIn.kinds(), ", ")
}

func (p *plugIn) kinds() []string {
	var kinds []string
	for _, d := range p.devices {
		kinds = append(kinds, d.kind)
	}
	return kinds
}

// appendPlugIn appends the plug-in provider on the device that the options choose, or else on the first
// that it offers.
func (r *Runtime) appendPlugIn(options *binding.SessionOptions, settings map[string]string) error {
	if missing := r.MissingPlugIn(); missing != "" {
		return fmt.Errorf("%s", missing)
	}
	chosen := r.plugIn.devices[0]
	if kind, ok := settings[provider.PlugInDevice]; ok {
		i := slices.IndexFunc(r.plugIn.devices, func(d device) bool { return d.kind == kind })
		if i < 0 {
			return fmt.Errorf("it offers no %s here, but %s", kind, strings.Join(r.plugIn.kinds(), ", "))
		}
		chosen = r.plugIn.devices[i]
		settings = maps.Clone(settings)
		delete(settings, provider.PlugInDevice)
	}
	keys, values, free := nativePairs(settings)
	defer free()
	return r.check(C.api_append_device(r.api, nativeOptions(options), r.env, chosen.native,
		unsafe.SliceData(keys), unsafe.SliceData(values), C.size_t(len(keys))))
}

// nativePairs returns keys and values in C's memory, ordered by key, and the function that frees them.
func nativePairs(settings map[string]string) (keys, values []*C.char, free func()) {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		keys, values = append(keys, C.CString(key)), append(values, C.CString(settings[key]))
	}
	return keys, values, func() {
		for _, text := range slices.Concat(keys, values) {
			C.free(unsafe.Pointer(text))
		}
	}
}

// nameOf returns tuner's name of a provider by ONNX Runtime's.
func (r *Runtime) nameOf(class string) string {
	if r.plugIn != nil && class == r.plugIn.class {
		return provider.PlugIn
	}
	return provider.FromORT(class)
}
