package ensemble

import (
	"sync"

	"tuner/engine/linked"
)

// Limits bound how many requests of an ensemble run each of its steps at the same time
// (max_inflight_requests, as in Tritons from release 25.11 on). nil: nothing is bounded.
type Limits []*limit

// NewLimits makes the limits of an ensemble of so many steps. 0: there is no bound.
func NewLimits(steps, most int) Limits {
	if most == 0 {
		return nil
	}
	l := make(Limits, steps)
	for i := range l {
		l[i] = &limit{left: most}
	}
	return l
}

// limit is the bound of one step.
type limit struct {
	mu    sync.Mutex
	left  int // requests that may run the step besides those that do
	queue linked.List[*call]
}

// of returns the limit of a step, nil without a bound.
func (l Limits) of(step int) *limit {
	if l == nil {
		return nil
	}
	return l[step]
}

// enter takes a place for a step, or puts the step into the queue.
func (l *limit) enter(c *call) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left > 0 {
		l.left--
		return true
	}
	c.place.Of, c.waits = c, true
	l.queue.Push(&c.place)
	return false
}

// leave gives a place back. The first step in the queue gets it: its Runner starts it.
func (l *limit) leave() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.Len() == 0 {
		l.left++
		return
	}
	next := l.queue.Pop()
	next.flow.Runner.push(next)
}

// withdraw takes a step out of the queue. It returns false if the step has a place by now.
func (l *limit) withdraw(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.place.In() == nil {
		return false
	}
	c.place.Leave()
	return true
}
