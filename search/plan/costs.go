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
	launch, reconfigure mean
	finalLaunch         mean // where the final trials are elsewhere
	elsewhere           bool
	serving, service    share // of the trials at loads, and of the service trials
	trials              int
	elapsed             time.Duration // campaign time after the last trial
	last                search.Candidate
}

// share is what trials of one kind take beside the engine's launch or reconfiguration.
type share struct {
	warmUp, other  mean
	asked, windows time.Duration // sums of the lengths of windows, asked for and real
}

// of returns the share of a trial's kind.
func (c *costs) of(t search.Trial) *share {
	if t.Phase == search.PhaseService {
		return &c.service
	}
	return &c.serving
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
	switch {
	case times.Launch == 0:
	case c.isElsewhere(e.Trial):
		c.finalLaunch.add(times.Launch)
	default:
		c.launch.add(times.Launch)
	}
	if times.Reconfigure > 0 {
		c.reconfigure.add(times.Reconfigure)
	}
	s := c.of(e.Trial)
	if times.Windows > 0 {
		s.warmUp.add(times.WarmUp)
		s.windows += times.Windows
		s.asked += length(e.Trial)
	}
	s.other.add(max(e.Elapsed-c.elapsed-times.Total(), 0))
	c.elapsed, c.last = max(e.Elapsed, c.elapsed), e.Trial.Candidate
	c.trials++
}

// expect is the time that a trial is expected to take after the last one.
func (c *costs) expect(t search.Trial) time.Duration {
	s := c.of(t)
	d := length(t) + s.warmUp.or(guessedWarmUp) + s.other.or(0)
	if s.asked > 0 { // windows are longer than asked where a percentile needs more requests, or a batch takes long
		d += time.Duration(float64(length(t)) * max(float64(s.windows)/float64(s.asked)-1, 0))
	}
	switch {
	case c.isElsewhere(t):
		d += c.finalLaunch.or(max(c.launch.or(0), guessedLaunch))
	case c.trials == 0 || t.Fresh || t.Candidate.PoolKey() != c.last.PoolKey():
		d += c.launch.or(guessedLaunch)
	case t.Candidate.Key() != c.last.Key():
		d += c.reconfigure.or(guessedReconfigure)
	}
	return d
}

// isElsewhere reports whether a trial runs on another server than those of the search.
func (c *costs) isElsewhere(t search.Trial) bool { return c.elsewhere && t.Phase == search.PhaseFinal }

func length(t search.Trial) time.Duration { return time.Duration(t.Windows) * t.Window }
