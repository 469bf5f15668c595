package load

import "time"

// coarse is the time before an instant at which an ordinary timer hands over to a waiter. Timers
// may be late by milliseconds.
const coarse = 10 * time.Millisecond

// waiter waits for instants more precisely than a timer does. It belongs to the goroutine that made
// it.
type waiter interface {
	until(at time.Duration) // at must be near: the wait cannot be interrupted
}

// sleeper waits with the timers of Go's runtime.
type sleeper struct{ now func() time.Duration }

func newSleeper(now func() time.Duration, _ bool) waiter { return sleeper{now} }

func (s sleeper) until(at time.Duration) { time.Sleep(at - s.now()) }
