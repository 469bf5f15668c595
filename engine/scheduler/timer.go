package scheduler

import "time"

// Timer calls a function when it is due. It may call it more often, and late.
type Timer interface {
	Reset(d time.Duration)
	Stop()
	Close()
}

// GoTimer is a Timer with Go's own clock, or in a test's bubble with the bubble's. In an idle
// process it is a millisecond late (see package alarm).
func GoTimer(call func()) Timer {
	t := goTimer{time.AfterFunc(time.Hour, call)}
	t.Stop()
	return t
}

type goTimer struct{ timer *time.Timer }

func (t goTimer) Reset(d time.Duration) { t.timer.Reset(d) }
func (t goTimer) Stop()                 { t.timer.Stop() }
func (t goTimer) Close()                { t.timer.Stop() }

// Wake sets a timer to the instant at which a scheduler must look at its requests again. The zero
// value with a Timer is not set.
type Wake struct {
	Timer
	at time.Time // zero: the timer is not set
}

// Set sets the timer to an instant, or stops it if that is zero. It does nothing if the timer is set to
// it already, since every arrival calls it.
func (w *Wake) Set(at, now time.Time) {
	switch {
	case at.IsZero() && !w.at.IsZero():
		w.Stop()
	case !at.IsZero() && (!at.Equal(w.at) || !at.After(now)):
		w.Reset(at.Sub(now))
	}
	w.at = at
}
