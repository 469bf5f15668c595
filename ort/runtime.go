// Package ort runs ONNX models on ONNX Runtime. It is the only package that uses ONNX Runtime, and
// only the serving engine imports it. A crash in native code must not end a campaign, so tuner
// itself talks to engine processes.
//
// The library is opened at run time (Open), one per process. The binding
// github.com/yalue/onnxruntime_go does most of the configuration. A small shim (shim.h) runs the
// models. The binding copies every output, and only half of those of 16-bit types. It drops error
// codes, and cannot pass empty tensors, scalars or strings with a zero byte.
//
// The package knows sessions and tensors. It knows no models (names, versions, batching) and does
// not schedule: that is the engine's work.
package ort

/*
#cgo CFLAGS: -O2 -Wall
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"tuner/internal/telemetry"

	"tuner/ort/provider"
)

// table is ONNX Runtime's function table.
type table struct{ api C.api_table }

// Runtime is an opened ONNX Runtime library. All methods may be called concurrently.
type Runtime struct {
	table
	library   string
	version   string
	providers []string
	threads   *GlobalThreads // nil: each session has its own
	plugIn    *plugIn        // nil: no library with a provider was opened
	env       unsafe.Pointer // OrtEnv, shared with the binding
	memory    unsafe.Pointer // OrtMemoryInfo of the CPU's memory
	closing   sync.Once
	// operators is held while a session with libraries of operators is made. ONNX Runtime looks for a library's domain in
	// a table of the process, and adds it. When two sessions do that at once, one of them fails.
	operators sync.Mutex
}

// remedy is the hint for a library that cannot be opened.
const remedy = "install a working one with 'tuner runtime install cpu', or name another with --ort-library"

// GlobalThreads are the thread pools that all sessions of a runtime share. 0 threads are one for each
// core.
type GlobalThreads struct{ IntraOp, InterOp int }

// Open loads the ONNX Runtime library at a path, such as /usr/lib/libonnxruntime.so.1.31.1. A
// process can have only one open; a second Open fails. Errors name the file, the fault and the
// remedy.
func Open(library string) (*Runtime, error) { return OpenWith(library, nil) }

// OpenWith is Open with thread pools that all sessions share. A session's own numbers of threads then
// have no effect. With nil each session has its own pools.
func OpenWith(library string, threads *GlobalThreads) (*Runtime, error) {
	telemetry.Disable()
	if err := checkLibraryFile(library); err != nil {
		return nil, err
	}
	if binding.IsInitialized() {
		return nil, fmt.Errorf("cannot open ONNX Runtime %q: this process has opened one already", library)
	}
	r := &Runtime{library: library, threads: threads}
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	var version *C.char
	problem := C.api_open(name, &r.api, &version)
	r.version = C.GoString(version)
	if problem != nil {
		return nil, r.openError(errors.New(C.GoString(problem)))
	}
	// Environments of a process are one. The first to be made decides about thread pools, so it is not
	// the binding's.
	if err := r.check(r.newEnv()); err != nil {
		return nil, r.openError(err)
	}
	binding.SetSharedLibraryPath(library)
	if err := binding.InitializeEnvironment(binding.WithLogLevelWarning()); err != nil {
		C.api_release(r.api, C.kReleaseEnv, r.env)
		return nil, r.openError(err)
	}
	if err := r.prepare(); err != nil {
		r.Close()
		return nil, r.openError(err)
	}
	return r, nil
}

func checkLibraryFile(library string) error {
	info, err := os.Stat(library)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("cannot open ONNX Runtime %q: no such file; %s", library, remedy)
	case err != nil:
		return fmt.Errorf("cannot open ONNX Runtime: %w", err)
	case info.IsDir():
		return fmt.Errorf("cannot open ONNX Runtime %q: it is a folder; name the library file in it (libonnxruntime.so.<version>)", library)
	}
	return nil
}

func (r *Runtime) openError(cause error) error {
	version := ""
	if r.version != "" {
		version = " (version " + r.version + ")"
	}
	return fmt.Errorf("cannot open ONNX Runtime %q%s: %w; %s", r.library, version, cause, remedy)
}

// newEnv makes the environment. It returns an OrtStatus.
func (r *Runtime) newEnv() unsafe.Pointer {
	if r.threads == nil {
		return C.api_env(r.api, &r.env)
	}
	return C.api_env_with_pools(r.api, C.int(r.threads.IntraOp), C.int(r.threads.InterOp), &r.env)
}

// prepare gets the objects that sessions and tensors need during the life of the runtime.
func (r *Runtime) prepare() error {
	if err := r.check(C.api_cpu_memory(r.api, &r.memory)); err != nil {
		return err
	}
	var names **C.char
	var count C.int
	if err := r.check(C.api_providers(r.api, &names, &count)); err != nil {
		return err
	}
	for _, name := range unsafe.Slice(names, int(count)) {
		r.providers = append(r.providers, provider.FromORT(C.GoString(name)))
	}
	C.api_providers_end(r.api, names, count)
	return nil
}

// Version returns the version of the library, such as 1.31.1.
func (r *Runtime) Version() string { return r.version }

// Library returns the path that was opened.
func (r *Runtime) Library() string { return r.library }

// Providers returns the execution providers that the library was compiled with, in ONNX Runtime's
// order of preference: "tensorrt", "cuda", "openvino", "cpu". A listed provider may still fail to
// create a session on this machine.
func (r *Runtime) Providers() []string { return slices.Clone(r.providers) }

// Close ends the use of the library. Sessions and tensors must be closed before. The library's code
// stays loaded until the process ends, since its threads may still run. Close may be called twice.
func (r *Runtime) Close() error {
	var err error
	r.closing.Do(func() {
		C.api_release(r.api, C.kReleaseMemoryInfo, r.memory)
		C.api_release(r.api, C.kReleaseEnv, r.env)
		err = binding.DestroyEnvironment()
	})
	return err
}
