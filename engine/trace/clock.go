package trace

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock turns times into nanoseconds of the system's monotonic clock, which Triton's files have.
type clock struct {
	origin time.Time
	ns     int64 // at the origin
}

func newClock() clock {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // without it, times begin at zero
	return clock{time.Now(), now.Nano()}
}

// of returns the nanoseconds of a time.
func (c clock) of(t time.Time) int64 { return c.ns + t.Sub(c.origin).Nanoseconds() }
