// Package alarm calls a function after a time that may be far below a millisecond. Go's own timers are a millisecond late, or more, in a process
// that has nothing else to do: its poller waits in whole milliseconds (golang/go#44343). A queue delay of 100 µs took 1.2 ms so.
package alarm

import (
	"sync"
	"time"
)

// Alarm is a timer that is set again and again. It is Go's timer, which is the more punctual one on busy processors, and beside it the kernel's where there
// is one: the earlier counts, so that the function may be called twice, or once more after Stop. Its methods may be called at once by several goroutines.
type Alarm struct {
	call  func()
	timer *time.Timer

	mu     sync.Mutex
	kernel *kernelTimer // nil until it is needed
	tried  bool
	closed bool
}

// New makes an alarm that is not set. Close frees what it holds.
func New(call func()) *Alarm {
	a := &Alarm{call: call, timer: time.AfterFunc(time.Hour, call)}
	a.timer.Stop()
	return a
}

// worthwhile is the longest wait that the kernel's timer is set for: for longer ones a millisecond does not matter.
const worthwhile = 100 * time.Millisecond

// Reset sets the alarm, in place of what it was set to.
func (a *Alarm) Reset(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.timer.Reset(d)
	if !a.tried && d <= worthwhile {
		a.kernel, a.tried = newKernelTimer(a.call), true
	}
	switch {
	case a.kernel == nil:
	case d > worthwhile:
		a.kernel.set(0)
	default:
		a.kernel.set(max(d, 1))
	}
}

// Stop unsets the alarm.
func (a *Alarm) Stop() {
	a.timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kernel != nil && !a.closed {
		a.kernel.set(0)
	}
}

// Close stops the alarm for good. It may be called more than once.
func (a *Alarm) Close() {
	a.timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kernel != nil && !a.closed {
		a.kernel.close()
	}
	a.closed = true
}
