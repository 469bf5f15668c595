package testserver

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleep blocks the thread, which wakes up sooner than Go's timers do. It may return early: a signal
// ends it.
func sleep(d time.Duration) {
	rest := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&rest, nil)
}
