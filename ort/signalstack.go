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

// keepSignalStack ties the goroutine to its thread until the function that it returns is called, which gives the thread the
// signal stack back that it has now.
//
// OpenVINO's CPU plugin gives the thread that loads it a signal stack of its own, for the larger registers of newer CPUs, and
// frees that memory when the last session goes (OpenVINO, src/plugins/intel_cpu/src/plugin.cpp; seen in 2025's releases). It
// takes the stack back only from the thread that happens to release the session: in Go usually another one. The first
// thread's next signal, such as one of those by which Go preempts, then ends the process with SIGSEGV at an arbitrary
// instruction.
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
