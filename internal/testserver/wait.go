package testserver

import (
	"runtime"
	"time"
)

// coarse is the time before an instant from which Go's timers are too imprecise: they are late by a
// millisecond or two.
const coarse = 3 * time.Millisecond

// spin is the time before an instant from which the operating system's sleep is too imprecise.
const spin = 60 * time.Microsecond

// waitExactly returns at an instant since the epoch, within a few microseconds if a processor is
// free.
func (s *Server) waitExactly(instant time.Duration) {
	for {
		rest := instant - s.now()
		switch {
		case rest <= 0:
			return
		case rest > spin:
			sleep(rest - spin)
		default:
			runtime.Gosched()
		}
	}
}
