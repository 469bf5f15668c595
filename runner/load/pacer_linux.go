package load

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// spinFor is the time before an instant at which a waiter stops sleeping. The kernel wakes a thread
// a few tens of microseconds late.
const spinFor = 50 * time.Microsecond

// preciseWaiter sleeps in the kernel, on its own thread without timer slack, and spins for the last
// part. On an idle machine it was 22 µs late in the median; time.Sleep was 530 µs late.
type preciseWaiter struct {
	now  func() time.Duration
	spin time.Duration
}

// newWaiter makes the waiter of the calling goroutine and locks the goroutine to its thread. The
// thread ends with the goroutine, so that the timer slack affects no other. sleeps is Part.Sleeps.
func newWaiter(now func() time.Duration, sleeps bool) waiter {
	runtime.LockOSThread()
	// ns; without it a wait is 50 µs less precise
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	w := preciseWaiter{now: now, spin: spinFor}
	if sleeps || runtime.GOMAXPROCS(0) == 1 {
		w.spin = 0 // with a single processor, spinning would delay the reading of answers
	}
	return w
}

func (w preciseWaiter) until(at time.Duration) {
	for left := at - w.now(); left > w.spin; left = at - w.now() {
		t := unix.NsecToTimespec(int64(left - w.spin))
		_ = unix.Nanosleep(&t, nil) // a signal may end it early
	}
	for w.now() < at {
	}
}
