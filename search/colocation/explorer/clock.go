package explorer

import (
	"math"
	"time"

	"tuner/search"
	"tuner/search/colocation"
	"tuner/search/guided/tuning"
)

// clock knows the durations of the parts of earlier trials, and the used part of the budget.
type clock struct {
	settings                          search.Settings
	tuning                            tuning.Tuning
	launch, change, warmUp, size, own mean
	trials, defaults                  int           // of all phases, and of the default's
	served                            int           // trials of all models in the search
	elapsed, begun                    time.Duration // of the campaign; begin of the search in it
}

// mean is a running mean of durations.
type mean struct {
	sum time.Duration
	n   int
}

func (m *mean) add(d time.Duration) {
	if d > 0 {
		m.sum, m.n = m.sum+d, m.n+1
	}
}

// or returns the mean, or a guess without data.
func (m mean) or(guess time.Duration) time.Duration {
	if m.n == 0 {
		return guess
	}
	return m.sum / time.Duration(m.n)
}

// record learns the durations of the parts of a trial.
func (c *clock) record(e search.Event) {
	times := e.Measurement.Times
	c.launch.add(times.Launch)
	c.change.add(times.Reconfigure)
	switch e.Trial.Phase {
	case search.PhaseService:
		c.size.add((times.WarmUp + times.Windows) / time.Duration(max(len(e.Measurement.Windows), 1)))
	case search.PhaseSearch:
		c.served++
		fallthrough
	default:
		c.warmUp.add(times.WarmUp)
		c.own.add(times.Windows)
	}
	c.trials++
	c.elapsed = max(c.elapsed, e.Elapsed)
	if e.Trial.Phase == search.PhaseDefault {
		c.defaults, c.begun = c.trials, c.elapsed
	}
}

// costs returns the expected times of trials.
func (c *clock) costs() colocation.Costs {
	return colocation.Costs{
		Launch: c.launch.or(search.GuessedLaunch), Change: c.change.or(search.GuessedReconfigure),
		Trial: c.warmUp.or(search.GuessedWarmUp) + c.own.or(search.MostWindows*c.settings.Window),
	}
}

// eachSize returns the expected time of a size of a service trial.
func (c *clock) eachSize() time.Duration { return c.size.or(c.tuning.Service.GuessedSize()) }

// searched returns the spent share of the budget that the default left; 0 without one.
func (c *clock) searched() float64 {
	b, share := c.settings.Budget, 0.0
	if left := b.Time - c.begun; b.Time > 0 {
		share = float64(c.elapsed-c.begun) / float64(max(left, 1))
	}
	if left := b.Trials - c.defaults; b.Trials > 0 {
		share = max(share, float64(c.trials-c.defaults)/float64(max(left, 1)))
	}
	return share
}

// longest returns the longest time of a batch that is measured: a part of the budget, and at most a
// limit that one batch alone would exceed. 0: no limit.
func (c *clock) longest(limit float64) time.Duration {
	if budget := c.settings.Budget.Time; budget > 0 {
		limit = min(limit, budget.Seconds()/c.tuning.Service.BudgetParts)
	}
	if math.IsInf(limit, 1) {
		return 0
	}
	return seconds(limit)
}
