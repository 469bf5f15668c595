package ort

/*
#include "lane.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// Lane is a thread of the operating system that makes runs one after the other. The goroutine that
// waits for a run sleeps in Go's poller.
//
// A goroutine inside ONNX Runtime holds one of Go's processors. The monitor of Go's runtime takes it
// away, and then looks for more to do every 20 µs for a millisecond (sysmon and retake in
// runtime/proc.go). With all cores busy, each look interrupts a run. On two cores MiniLM lost 5 % of
// its throughput to them; lab/docs/engine.md has the figures.
//
// A lane's thread has the processors and the memory policy of the thread that made it. It is not for
// concurrent use.
type Lane struct {
	native *C.lane
	ends   *os.File // has a byte after each run
	end    [1]byte
}

// NewLane starts the thread. The caller closes the lane.
func NewLane() (*Lane, error) {
	native := C.lane_new()
	if native == nil {
		return nil, errors.New("cannot start a thread for runs: no thread, memory or descriptor is left")
	}
	return &Lane{native: native, ends: os.NewFile(uintptr(C.lane_ends(native)), "runs of a lane")}, nil
}

// run makes a run of a plan.
func (l *Lane) run(s *Session, p *Plan) error {
	C.lane_run(l.native, s.runtime.api, s.session, s.runtime.memory, p.native)
	if _, err := l.ends.Read(l.end[:]); err != nil {
		// The run still uses the caller's memory, and cannot be abandoned.
		panic(fmt.Sprintf("cannot wait for a run: %v", err))
	}
	return s.runtime.check(unsafe.Pointer(C.lane_status(l.native)))
}

// Close ends the thread.
func (l *Lane) Close() {
	C.lane_free(l.native)
	_ = l.ends.Close() // only memory of this process is behind it
}
