package testserver

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleep blocks the thread, which wakes up earlier than Go's timers. A signal may end it early.
func sleep(d time.Duration) {
	rest := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&rest, nil)
}
