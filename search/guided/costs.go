package guided

import (
	"time"

	"tuner/search"
	"tuner/search/footprint"
)

// Guesses for parts of a trial that have not happened yet.
const (
	guessedLaunch      = 2 * time.Second
	guessedReconfigure = 500 * time.Millisecond
	guessedWarmUp      = 500 * time.Millisecond
	guessedSize        = 400 * time.Millisecond
)

// costs is what the parts of earlier trials took, and what of the budget is used.
type costs struct {
	settings                    search.Settings
	launch, reconfigure, warmUp mean
	size                        mean // of a service trial
	trials                      int
	elapsed                     time.Duration
	process                     search.Process
	held                        *footprint.Model
	last                        search.Candidate // that it serves
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

// or returns the mean, or a guess when nothing was added.
func (m *mean) or(guess time.Duration) time.Duration {
	if m.n == 0 {
		return guess
	}
	return m.sum / time.Duration(m.n)
}

func (c *costs) add(e search.Event) {
	times := e.Measurement.Times
	c.launch.add(times.Launch)
	c.reconfigure.add(times.Reconfigure)
	if n := len(e.Trial.Sizes); n > 0 {
		c.size.add((times.WarmUp + times.Windows) / time.Duration(n))
	} else {
		c.warmUp.add(times.WarmUp)
	}
	c.trials++
	c.elapsed = max(c.elapsed, e.Elapsed)
	c.process, c.last = c.process.After(e, c.settings.Space), e.Trial.Candidate
}

// launchOf is how long it takes to launch a candidate's engine: as long as it took before, else as long as others took; 0 where its
// process runs.
func (c *costs) launchOf(e *engine, candidate search.Candidate) time.Duration {
	if candidate.PoolKey() == c.process.Pool && (!c.process.Burdens(candidate, c.settings) || c.held.Knows(candidate)) {
		return 0
	}
	return e.launch.or(c.launch.or(guessedLaunch))
}

// expect is how long windows of a candidate take with all that goes before them.
func (c *costs) expect(e *engine, candidate search.Candidate, key string, windows time.Duration) time.Duration {
	launch := c.launchOf(e, candidate)
	d := launch + windows + c.warmUp.or(guessedWarmUp)
	if launch == 0 && key != c.last.Key() {
		d += c.reconfigure.or(guessedReconfigure)
	}
	return d
}

// used is the share of the budget that is spent; 0 without one.
func (c *costs) used(b search.Budget) float64 {
	share := 0.0
	if b.Time > 0 {
		share = float64(c.elapsed) / float64(b.Time)
	}
	if b.Trials > 0 {
		share = max(share, float64(c.trials)/float64(b.Trials))
	}
	return share
}
