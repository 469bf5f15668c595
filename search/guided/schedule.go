package guided

import (
	"math"
	"time"

	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/guided/belief"
	"tuner/search/guided/pools"
	"tuner/search/guided/tuning"
)

// schedule knows the durations of the parts of earlier trials, the used part of the budget, and the
// length of the next windows.
type schedule struct {
	settings                    search.Settings
	tuning                      tuning.Tuning
	held                        *footprint.Model
	launch, reconfigure, warmUp mean
	launches                    map[*pools.Engine]mean
	size                        mean          // of a service trial
	trials, defaults            int           // of all phases, and of the default's
	served                      int           // trials of cells in the search
	elapsed, begun              time.Duration // of the campaign; begin of the search in it
	process                     footprint.Process
	launched                    int              // ordinal of its launch
	last                        search.Candidate // that it serves
}

func newSchedule(s search.Settings, held *footprint.Model, n tuning.Tuning) *schedule {
	return &schedule{settings: s, tuning: n, held: held, launches: map[*pools.Engine]mean{}}
}

// mean is a running mean of durations.
type mean struct {
	sum time.Duration
	n   int
}

func (m mean) with(d time.Duration) mean {
	if d > 0 {
		m.sum, m.n = m.sum+d, m.n+1
	}
	return m
}

// or returns the mean, or a guess without data.
func (m mean) or(guess time.Duration) time.Duration {
	if m.n == 0 {
		return guess
	}
	return m.sum / time.Duration(m.n)
}

// record learns the durations of the parts of a trial.
func (c *schedule) record(e search.Event) {
	times := e.Measurement.Times
	c.launch, c.reconfigure = c.launch.with(times.Launch), c.reconfigure.with(times.Reconfigure)
	if e.Trial.Phase == search.PhaseService {
		c.size = c.size.with((times.WarmUp + times.Windows) / time.Duration(max(len(e.Measurement.Windows), 1)))
	} else {
		c.warmUp = c.warmUp.with(times.WarmUp)
	}
	c.trials++
	c.elapsed = max(c.elapsed, e.Elapsed)
	if e.Trial.Phase == search.PhaseDefault {
		c.defaults, c.begun = c.trials, c.elapsed
	}
	c.launched = e.Measurement.Launch
	c.process, c.last = c.process.After(e, c.settings.Space), e.Trial.Candidate
}

// recordLaunch learns the duration of a launch of an engine, 0 without one.
func (c *schedule) recordLaunch(e *pools.Engine, d time.Duration) {
	c.launches[e] = c.launches[e].with(d)
}

// launchOf returns the expected launch time of a candidate's engine: its earlier one, else that of
// others; 0 if its process runs.
func (c *schedule) launchOf(e *pools.Engine, candidate search.Candidate) time.Duration {
	if candidate.PoolKey() == c.process.Pool && (!c.process.Burdens(candidate, c.settings) || c.held.Knows(candidate)) {
		return 0
	}
	return c.launches[e].or(c.anyLaunch())
}

// anyLaunch, anyWarmUp and anySize return the expected durations of such parts of a trial.
func (c *schedule) anyLaunch() time.Duration { return c.launch.or(search.GuessedLaunch) }

func (c *schedule) anyWarmUp() time.Duration { return c.warmUp.or(search.GuessedWarmUp) }

func (c *schedule) anySize() time.Duration { return c.size.or(c.tuning.Service.GuessedSize()) }

// expect returns the expected time of windows of a candidate, including everything before them.
func (c *schedule) expect(e *pools.Engine, candidate search.Candidate, key string, windows time.Duration) time.Duration {
	launch := c.launchOf(e, candidate)
	d := launch + windows + c.anyWarmUp()
	if launch == 0 && key != c.last.Key() {
		d += c.reconfigure.or(search.GuessedReconfigure)
	}
	return d
}

// cost returns the time of a trial of a cell, in seconds.
func (c *schedule) cost(x pools.Cell) float64 {
	b := x.Batcher()
	return c.expect(x.Pool.Engine(), b.Candidate, b.Key, time.Duration(c.windows(x))*c.window()).Seconds()
}

// again returns the time of each further trial of a cell, in seconds.
func (c *schedule) again() float64 { return (c.window() + c.anyWarmUp()).Seconds() }

// searched returns the spent share of the budget that the default left; 0 without one.
func (c *schedule) searched() float64 {
	b, share := c.settings.Budget, 0.0
	if left := b.Time - c.begun; left > 0 {
		share = float64(c.elapsed-c.begun) / float64(left)
	}
	if left := b.Trials - c.defaults; left > 0 {
		share = max(share, float64(c.trials-c.defaults)/float64(left))
	}
	return share
}

// share returns a time as a share of the budget that the default left.
func (c *schedule) share(d time.Duration) float64 {
	return float64(d) / float64(max(c.settings.Budget.Time-c.begun, 1))
}

// window returns the length of the next window, at the level where it is longest.
func (c *schedule) window() time.Duration { return c.settings.Space.Load.Longest(c.grown()) }

// grown returns the length of the next window, without regard to arrivals with a period.
func (c *schedule) grown() time.Duration {
	n := c.tuning.Trials
	factor := min(math.Pow(n.Growth, float64(c.served/n.GrowthEvery)), n.GrowthMost)
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
	launch := c.anyLaunch()
	return belief.Next{
		Elapsed: c.elapsed, WarmUp: c.anyWarmUp(), Window: c.window(), Launch: launch, LaunchWindows: c.windowsAfter(launch),
		Running: c.process.Pool, Launched: c.launched,
	}
}

// longest returns the longest time of a batch that is measured, 0 without a limit. It is a part of
// the budget, and at most the tightest limit on a latency that one batch alone would exceed.
func (c *schedule) longest(tightest float64) time.Duration {
	longest := tightest
	if budget := c.settings.Budget.Time; budget > 0 {
		longest = min(longest, budget.Seconds()/c.tuning.Service.BudgetParts)
	}
	if math.IsInf(longest, 1) {
		return 0
	}
	return time.Duration(longest * float64(time.Second))
}
