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
