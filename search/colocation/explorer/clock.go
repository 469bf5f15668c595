package explorer

import (
	"time"

	"tuner/search"
	"tuner/search/colocation"
	"tuner/search/guided/pace"
)

// clock knows the pace of the campaign, and what trials of all models take.
type clock struct {
	pace.Pace
	window time.Duration // the settings'
	own    pace.Mean     // windows of trials of all models
	served int           // trials of all models in the search
}

// record learns what a trial took.
func (c *clock) record(e search.Event) {
	c.Record(e)
	if e.Trial.Phase == search.PhaseService {
		return
	}
	c.own = c.own.With(e.Measurement.Times.Windows)
	if e.Trial.Phase == search.PhaseSearch {
		c.served++
	}
}

// costs returns the expected times of trials.
func (c *clock) costs() colocation.Costs {
	return colocation.Costs{Launch: c.Launch(), Change: c.Reconfigure(), Trial: c.WarmUp() + c.own.Or(search.MostWindows*c.window)}
}
