// Package alarm calls a function after a time that may be far below a millisecond. Go's own timers
// are a millisecond late, or more, in an otherwise idle process: its poller waits in whole
// milliseconds (golang/go#44343). With them, a queue delay of 100 µs took 1.2 ms.
package alarm

import (
	"sync"
	"time"
)

// Alarm is a timer that can be set repeatedly. It uses Go's timer, which is the more punctual one
// on busy processors, and in addition the kernel's, if there is one. The earlier of the two counts.
// So the function may be called twice, or once more after Stop. Several goroutines may call the
// methods at once.
type Alarm struct {
	call  func()
	timer *time.Timer

	mu     sync.Mutex
	kernel *kernelTimer // nil until needed
	tried  bool
	closed bool
}

// New makes an alarm that is not set. Close frees its resources.
func New(call func()) *Alarm {
	a := &Alarm{call: call, timer: time.AfterFunc(time.Hour, call)}
	a.timer.Stop()
	return a
}

// worthwhile is the longest wait for which the kernel's timer is set. For longer waits a
// millisecond does not matter.
const worthwhile = 100 * time.Millisecond

// Reset sets the alarm. It replaces an earlier time.
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
