package testserver

import (
	"runtime"
	"time"
)

// coarse is how long before an instant Go's timers are trusted no longer: they are late by a
// millisecond or two.
const coarse = 3 * time.Millisecond

// spin is how long before an instant the operating system's sleep is trusted no longer.
const spin = 60 * time.Microsecond

// waitExactly returns at an instant since the epoch, within a few microseconds where a processor is
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
