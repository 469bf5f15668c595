package ort

/*
#include <signal.h>
#include <stddef.h>

static void signal_stack(stack_t *s) { sigaltstack(NULL, s); }
static void set_signal_stack(const stack_t *s) { sigaltstack(s, NULL); }
*/
import "C"

import "runtime"

// threadSignalStack returns the stack on which the calling thread handles signals (sigaltstack).
func threadSignalStack() C.stack_t {
	var s C.stack_t
	C.signal_stack(&s)
	return s
}

// keepSignalStack locks the goroutine to its thread. The returned function restores the thread's
// current signal stack and unlocks it.
//
// OpenVINO's CPU plugin gives the thread that loads it a new signal stack, for the larger registers
// of newer CPUs. It frees that memory when the last session goes (OpenVINO,
// src/plugins/intel_cpu/src/plugin.cpp; seen in the releases of 2025). It removes the stack only
// from the thread that releases the session, which in Go is usually another one. The next signal on
// the first thread, such as one of Go's preemption signals, then ends the process with SIGSEGV at
// an arbitrary instruction.
func keepSignalStack() (restore func()) {
	runtime.LockOSThread()
	before := threadSignalStack()
	return func() {
		if threadSignalStack() != before {
			C.set_signal_stack(&before)
		}
		runtime.UnlockOSThread()
	}
}
