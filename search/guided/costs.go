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
	size                        mean          // of a service trial
	trials, defaults            int           // of all phases, and of the default's
	elapsed, begun              time.Duration // of the campaign, and when the search began in it
	process                     search.Process
	launched                    int // ordinal of its launch
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
	if e.Trial.Phase == search.PhaseService {
		c.size.add((times.WarmUp + times.Windows) / time.Duration(max(len(e.Measurement.Windows), 1)))
	} else {
		c.warmUp.add(times.WarmUp)
	}
	c.trials++
	c.elapsed = max(c.elapsed, e.Elapsed)
	if e.Trial.Phase == search.PhaseDefault {
		c.defaults, c.begun = c.trials, c.elapsed
	}
	c.launched = e.Measurement.Launch
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

// searched is the share of the budget that is spent, of what the default left of it; 0 without one.
func (c *costs) searched() float64 {
	b, share := c.settings.Budget, 0.0
	if left := b.Time - c.begun; left > 0 {
		share = float64(c.elapsed-c.begun) / float64(left)
	}
	if left := b.Trials - c.defaults; left > 0 {
		share = max(share, float64(c.trials-c.defaults)/float64(left))
	}
	return share
}
