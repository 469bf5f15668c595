package plan

import (
	"fmt"
	"time"

	"tuner/search"
	"tuner/search/footprint"
)

// costs estimates the time of a trial from the times of the parts of earlier ones.
type costs struct {
	settings         search.Settings
	tuning           Tuning
	launches         launches
	finalLaunches    launches // if the final trials are elsewhere
	reconfigure      mean
	serving, service share // of the trials at loads, and of the service trials
	turns            share // of the seats of blocks, whose warm-up is that of one turn
	trials           int
	elapsed          time.Duration // campaign time after the last trial
	last             search.Candidate
	process          footprint.Process
	held             *footprint.Model
}

// share is the time of trials of one kind without the engine's launch or reconfiguration.
type share struct {
	warmUp, other  mean          // warmUp: load outside of windows
	asked, windows time.Duration // sums of the lengths of windows, requested and actual
}

// of returns the share of a trial's kind.
func (c *costs) of(t search.Trial) *share {
	switch {
	case t.Phase == search.PhaseService:
		return &c.service
	case t.Block > 0:
		return &c.turns
	}
	return &c.serving
}

// warmUps returns the number of a trial's warm-ups: one, or one before each turn.
func warmUps(t search.Trial) time.Duration {
	if t.Block > 0 {
		return time.Duration(max(1, t.Windows))
	}
	return 1
}

// mean is a running mean of durations.
type mean struct {
	sum time.Duration
	n   int
}

func (m *mean) add(d time.Duration) { m.sum, m.n = m.sum+d, m.n+1 }

// or returns the mean, or a guess without data.
func (m *mean) or(guess time.Duration) time.Duration {
	if m.n == 0 {
		return guess
	}
	return m.sum / time.Duration(m.n)
}

// launches holds the launch times of engine processes.
type launches struct {
	all  mean
	like map[string]mean // by kind; only looked up
}

func (l *launches) record(kinds []string, d time.Duration) {
	if l.like == nil {
		l.like = map[string]mean{}
	}
	l.all.add(d)
	for _, kind := range kinds {
		m := l.like[kind]
		m.add(d)
		l.like[kind] = m
	}
}

// expect returns the expected time of a launch from its kinds so far; the last kind is the most
// specific. It is the mean of the most specific kind that was launched, since launches of a kind differ
// by much less than kinds do. Before any launch it is the guess.
func (l *launches) expect(kinds []string, guess time.Duration) time.Duration {
	d := l.all.or(guess)
	for _, kind := range kinds {
		m := l.like[kind]
		d = m.or(d)
	}
	return d
}

// kinds returns the factors of a candidate's launch time, from the most general to the most
// specific. They are the execution provider in its build, the model file, and the pool. A provider
// may compile for half a minute. The instances of a pool are loaded in turn.
func (c *costs) kinds(x search.Candidate) []string {
	provider := fmt.Sprintf("%s in %s", c.settings.Space.Value(x, search.KnobExecutionProvider), c.settings.Space.Value(x, search.KnobRuntime))
	file := fmt.Sprintf("%s with %s", provider, c.settings.Space.Value(x, search.KnobPrecision))
	return []string{provider, file, file + ": " + x.PoolKey()}
}

// record learns from a trial.
func (c *costs) record(e search.Event) {
	times := e.Measurement.Times
	switch kinds := c.kinds(e.Trial.Candidate); {
	case times.Launch == 0:
	case c.isElsewhere(e.Trial):
		c.finalLaunches.record(kinds, times.Launch)
	default:
		c.launches.record(kinds, times.Launch)
	}
	if times.Reconfigure > 0 {
		c.reconfigure.add(times.Reconfigure)
	}
	s := c.of(e.Trial)
	if times.Windows > 0 {
		s.warmUp.add(times.Outside() / warmUps(e.Trial))
	}
	if times.Windows > 0 && !e.Measurement.Cut {
		s.windows += times.Windows
		s.asked += length(e.Trial)
	}
	s.other.add(max(e.Elapsed-c.elapsed-times.Total(), 0))
	c.elapsed, c.last = max(e.Elapsed, c.elapsed), e.Trial.Candidate
	c.process = c.process.After(e, c.settings.Space)
	c.trials++
}

// expect returns the expected time of a trial after the last one.
func (c *costs) expect(t search.Trial) time.Duration {
	s := c.of(t)
	guessed := search.GuessedWarmUp
	if t.Block > 0 {
		guessed = c.tuning.Fill
	}
	d := length(t) + warmUps(t)*s.warmUp.or(guessed) + s.other.or(0)
	if s.asked > 0 { // windows are longer than requested if a percentile needs more requests, or a batch takes long
		d += time.Duration(float64(length(t)) * max(float64(s.windows)/float64(s.asked)-1, 0))
	}
	switch kinds := c.kinds(t.Candidate); {
	case c.isElsewhere(t):
		d += c.finalLaunches.expect(kinds, max(c.launches.expect(kinds, 0), search.GuessedLaunch))
	case c.trials == 0 || c.isFresh(t) || t.Candidate.PoolKey() != c.last.PoolKey():
		d += c.launches.expect(kinds, search.GuessedLaunch)
	case t.Candidate.Key() != c.last.Key():
		d += c.reconfigure.or(search.GuessedReconfigure)
	}
	return d
}

// isFresh reports whether a trial needs its own process. Either it asks for one, or its memory is
// neither known nor shown by the running process.
func (c *costs) isFresh(t search.Trial) bool {
	return t.Fresh || c.process.Burdens(t.Candidate, c.settings) && !c.held.Knows(t.Candidate)
}

// isElsewhere reports whether a trial runs on another server than those of the search.
func (c *costs) isElsewhere(t search.Trial) bool {
	return c.settings.Elsewhere && t.Phase == search.PhaseFinal
}

func length(t search.Trial) time.Duration { return time.Duration(t.Windows) * t.Window }
