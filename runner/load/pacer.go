package load

import "time"

// coarse is how long before an instant an ordinary timer hands over to a waiter: timers may be late by milliseconds.
const coarse = 10 * time.Millisecond

// waiter waits for instants more precisely than a timer does. It belongs to the goroutine that made it.
type waiter interface {
	until(at time.Duration) // not far away: the wait cannot be interrupted
}

// sleeper waits with the runtime's timers.
type sleeper struct{ now func() time.Duration }

func newSleeper(now func() time.Duration) waiter { return sleeper{now} }

func (s sleeper) until(at time.Duration) { time.Sleep(at - s.now()) }
