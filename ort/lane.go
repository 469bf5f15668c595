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
	native      *C.lane
	ends, write *os.File // both ends of a pipe, which has a byte after each run
	end         [1]byte
}

// NewLane starts the thread. The caller closes the lane.
func NewLane() (*Lane, error) {
	ends, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe for the ends of runs: %w", err)
	}
	l := &Lane{ends: ends, write: write}
	if l.native = C.lane_new(C.int(write.Fd())); l.native == nil {
		l.closePipe()
		return nil, errors.New("cannot start a thread for runs: no thread or memory is left")
	}
	return l, nil
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
	l.closePipe()
}

// closePipe ignores errors, since only memory of this process is behind a pipe.
func (l *Lane) closePipe() {
	_ = l.write.Close()
	_ = l.ends.Close()
}
