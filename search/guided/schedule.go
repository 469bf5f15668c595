package guided

import (
	"math"
	"time"

	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/guided/belief"
	"tuner/search/guided/pace"
	"tuner/search/guided/pools"
	"tuner/search/guided/tuning"
)

// schedule knows the pace of the campaign, the process that runs, and the length of the next windows.
type schedule struct {
	pace.Pace
	settings search.Settings
	tuning   tuning.Tuning
	held     *footprint.Model
	launches map[*pools.Engine]pace.Mean
	served   int // trials of cells in the search
	process  footprint.Process
	launched int              // ordinal of its launch
	last     search.Candidate // that it serves
}

func newSchedule(s search.Settings, held *footprint.Model, n tuning.Tuning) *schedule {
	return &schedule{Pace: pace.New(s.Budget, n.Service), settings: s, tuning: n, held: held, launches: map[*pools.Engine]pace.Mean{}}
}

// record learns what a trial took, and which process it leaves.
func (c *schedule) record(e search.Event) {
	c.Record(e)
	c.launched = e.Measurement.Launch
	c.process, c.last = c.process.After(e, c.settings.Space), e.Trial.Candidate
}

// recordLaunch learns the duration of a launch of an engine, 0 without one.
func (c *schedule) recordLaunch(e *pools.Engine, d time.Duration) {
	c.launches[e] = c.launches[e].With(d)
}

// launchOf returns the expected launch time of a candidate's engine: its earlier one, else that of
// others; 0 if its process runs.
func (c *schedule) launchOf(e *pools.Engine, candidate search.Candidate) time.Duration {
	if candidate.PoolKey() == c.process.Pool && (!c.process.Burdens(candidate, c.settings) || c.held.Knows(candidate)) {
		return 0
	}
	return c.launches[e].Or(c.Launch())
}

// expect returns the expected time of windows of a candidate, including everything before them.
func (c *schedule) expect(e *pools.Engine, candidate search.Candidate, key string, windows time.Duration) time.Duration {
	launch := c.launchOf(e, candidate)
	d := launch + windows + c.WarmUp()
	if launch == 0 && key != c.last.Key() {
		d += c.Reconfigure()
	}
	return d
}

// cost returns the time of a trial of a cell, in seconds.
func (c *schedule) cost(x pools.Cell) float64 {
	b := x.Batcher()
	return c.expect(x.Pool.Engine(), b.Candidate, b.Key, time.Duration(c.windows(x))*c.window()).Seconds()
}

// again returns the time of each further trial of a cell, in seconds.
func (c *schedule) again() float64 { return (c.window() + c.WarmUp()).Seconds() }

// window returns the length of the next window, at the level where it is longest.
func (c *schedule) window() time.Duration { return c.settings.Space.Load.Longest(c.grown()) }

// grown returns the length of the next window, without regard to arrivals with a period.
func (c *schedule) grown() time.Duration {
	n := c.tuning.Trials
	factor := min(math.Pow(n.Growth, float64(c.served)), n.GrowthMost)
	return time.Duration(factor * float64(c.settings.Window)).Round(time.Millisecond)
}

// windows returns the number of windows of a trial of a cell.
func (c *schedule) windows(x pools.Cell) int {
	return c.windowsAfter(c.launchOf(x.Pool.Engine(), x.Batcher().Candidate))
}

// windowsAfter returns one, or as many as a launch before them is worth.
func (c *schedule) windowsAfter(launch time.Duration) int {
	return int(min(max(math.Round(math.Sqrt(launch.Seconds()/c.window().Seconds())), 1), search.MostWindows))
}

// next describes the time and conditions of the next trial.
func (c *schedule) next() belief.Next {
	launch := c.Launch()
	return belief.Next{
		Elapsed: c.Elapsed(), WarmUp: c.WarmUp(), Window: c.window(), Launch: launch, LaunchWindows: c.windowsAfter(launch),
		Running: c.process.Pool, Launched: c.launched,
	}
}
