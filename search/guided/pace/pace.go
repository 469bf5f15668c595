// Package pace knows the durations of the parts of a campaign's earlier trials, and the used part of its
// budget. Strategies that measure service times plan their trials by it: guided, and colocation for several
// models. It chooses no trial.
package pace

import (
	"math"
	"time"

	"tuner/search"
	"tuner/search/guided/tuning"
)

// Mean is a running mean of durations. The zero value has none.
type Mean struct {
	sum time.Duration
	n   int
}

// With returns the mean with one more duration. 0 counts as none.
func (m Mean) With(d time.Duration) Mean {
	if d > 0 {
		m.sum, m.n = m.sum+d, m.n+1
	}
	return m
}

// Or returns the mean, or a guess without data.
func (m Mean) Or(guess time.Duration) time.Duration {
	if m.n == 0 {
		return guess
	}
	return m.sum / time.Duration(m.n)
}

// Pace has the durations of a campaign's trials, and the use of its budget. It is for one goroutine.
type Pace struct {
	budget                            search.Budget
	service                           tuning.Service
	launch, reconfigure, warmUp, size Mean
	trials, defaults                  int           // of all phases, and of the default's
	elapsed, begun                    time.Duration // of the campaign; begin of the search in it
}

// New returns the pace of a campaign without trials.
func New(b search.Budget, s tuning.Service) Pace { return Pace{budget: b, service: s} }

// Record learns the durations of the parts of a trial.
func (p *Pace) Record(e search.Event) {
	times := e.Measurement.Times
	p.launch, p.reconfigure = p.launch.With(times.Launch), p.reconfigure.With(times.Reconfigure)
	if e.Trial.Phase == search.PhaseService {
		p.size = p.size.With((times.Outside() + times.Windows) / time.Duration(max(len(e.Measurement.Windows), 1)))
	} else {
		p.warmUp = p.warmUp.With(times.Outside())
	}
	p.trials++
	p.elapsed = max(p.elapsed, e.Elapsed)
	if e.Trial.Phase == search.PhaseDefault {
		p.defaults, p.begun = p.trials, p.elapsed
	}
}

// Launch returns the expected time of a launch.
func (p *Pace) Launch() time.Duration { return p.launch.Or(search.GuessedLaunch) }

// Reconfigure returns the expected time of a change of the configuration in a running process.
func (p *Pace) Reconfigure() time.Duration { return p.reconfigure.Or(search.GuessedReconfigure) }

// WarmUp returns the expected time of the load outside of windows: the warm-up before them, and the wait
// for the last answers.
func (p *Pace) WarmUp() time.Duration { return p.warmUp.Or(search.GuessedWarmUp) }

// Size returns the expected time of a size of a service trial.
func (p *Pace) Size() time.Duration { return p.size.Or(p.service.GuessedSize()) }

// Elapsed returns the time of the campaign so far.
func (p *Pace) Elapsed() time.Duration { return p.elapsed }

// Searched returns the spent share of the budget that the default left; 0 without one.
func (p *Pace) Searched() float64 {
	share := 0.0
	if left := p.budget.Time - p.begun; left > 0 {
		share = float64(p.elapsed-p.begun) / float64(left)
	}
	if left := p.budget.Trials - p.defaults; left > 0 {
		share = max(share, float64(p.trials-p.defaults)/float64(left))
	}
	return share
}

// Share returns a time as a share of the budget that the default left.
func (p *Pace) Share(d time.Duration) float64 {
	return float64(d) / float64(max(p.budget.Time-p.begun, 1))
}

// Longest returns the longest time of a batch that is measured, 0 without a limit. It is a part of
// the budget, and at most the tightest limit on a latency, in s, that one batch alone would exceed.
func (p *Pace) Longest(tightest float64) time.Duration {
	longest := tightest
	if p.budget.Time > 0 {
		longest = min(longest, p.budget.Time.Seconds()/p.service.BudgetParts)
	}
	if math.IsInf(longest, 1) {
		return 0
	}
	return time.Duration(longest * float64(time.Second))
}
