package plan

import (
	"time"

	"tuner/search"
)

// Guesses for parts of a trial that have not happened yet. One trial of each replaces them.
const (
	guessedLaunch      = 2 * time.Second
	guessedReconfigure = 500 * time.Millisecond
	guessedWarmUp      = 500 * time.Millisecond
)

// costs estimates how long a trial takes from how long the parts of earlier ones took.
type costs struct {
	launch, reconfigure, warmUp, other mean
	asked, windows                     time.Duration // sums of the lengths of windows, asked for and real
	trials                             int
	elapsed                            time.Duration // campaign time after the last trial
	last                               search.Candidate
}

// mean is a running mean of durations.
type mean struct {
	sum time.Duration
	n   int
}

func (m *mean) add(d time.Duration) { m.sum, m.n = m.sum+d, m.n+1 }

// or returns the mean, or a guess when nothing was added.
func (m *mean) or(guess time.Duration) time.Duration {
	if m.n == 0 {
		return guess
	}
	return m.sum / time.Duration(m.n)
}

// add learns from a trial.
func (c *costs) add(e search.Event) {
	times := e.Measurement.Times
	if times.Launch > 0 {
		c.launch.add(times.Launch)
	}
	if times.Reconfigure > 0 {
		c.reconfigure.add(times.Reconfigure)
	}
	if times.Windows > 0 {
		c.warmUp.add(times.WarmUp)
		c.windows += times.Windows
		c.asked += length(e.Trial)
	}
	c.other.add(max(e.Elapsed-c.elapsed-times.Total(), 0))
	c.elapsed, c.last = max(e.Elapsed, c.elapsed), e.Trial.Candidate
	c.trials++
}

// expect is the time that a trial is expected to take after the last one.
func (c *costs) expect(t search.Trial) time.Duration {
	d := length(t) + c.warmUp.or(guessedWarmUp) + c.other.or(0)
	if c.asked > 0 { // windows are longer than asked where a percentile needs more requests
		d += time.Duration(float64(length(t)) * max(float64(c.windows)/float64(c.asked)-1, 0))
	}
	switch {
	case c.trials == 0 || t.Fresh || t.Candidate.PoolKey() != c.last.PoolKey():
		d += c.launch.or(guessedLaunch)
	case t.Candidate.Key() != c.last.Key():
		d += c.reconfigure.or(guessedReconfigure)
	}
	return d
}

func length(t search.Trial) time.Duration { return time.Duration(t.Windows) * t.Window }
