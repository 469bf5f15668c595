package landscape

import (
	"time"

	"tuner/search"
	"tuner/search/standings"
)

// Strategy is a campaign's strategy with a recommendation.
type Strategy interface {
	search.Strategy
	Leader() (standings.Standing, bool)
}

// Hours selects the period of the machine to which a truth applies.
type Hours int

// Now is the campaign's own time. Throughputs are the landscape's times the machine's mean speed
// during it, and latencies are divided by that. A strategy can know this truth. Long is all of the
// recorded hours, or the mean of a synthetic noise. A campaign sees a few minutes of it.
const (
	Now Hours = iota
	Long
	hours
)

// Outcome is the result of a campaign.
type Outcome struct {
	Steps    []Step         // recommendations in time order
	Regret   [hours]float64 // of the answer, see Landscape.Regret
	False    [hours]bool    // the answer exceeds the limit by more than 2 %
	Launches int            // engine processes started
	Trials   int            // including service trials
	Measured float64        // share of the landscape's points that were measured
	Elapsed  time.Duration  // virtual
	Value    Coverage       // of the answer's throughput over long hours, by the finals' interval
	ValueNow Coverage       // the same for the machine's speed during the finals
	Gain     Coverage       // of the answer's gain over the default
	Claims   Claims         // the strategy's own estimates; empty for a strategy without them
}

// Step is a recommendation, with its start and its quality.
type Step struct {
	At     time.Duration
	Regret [hours]float64

	candidate search.Candidate
	level     float64
	isKnown   bool // a recommendation exists
}

// At returns the regret of the recommendation at a time, 1 before the first one.
func (o Outcome) At(t time.Duration, h Hours) float64 {
	regret := 1.0
	for _, s := range o.Steps {
		if s.At > t {
			break
		}
		regret = s.Regret[h]
	}
	return regret
}

// StaysWithin returns the time after which the recommendation's regret never exceeds a bound again;
// false if the answer's does.
func (o Outcome) StaysWithin(bound float64, h Hours) (time.Duration, bool) {
	since, within := time.Duration(0), false
	for _, s := range o.Steps {
		if now := s.Regret[h] <= bound; now != within {
			since, within = s.At, now
		}
	}
	return since, within
}

// longest is more trials than any campaign with a budget of minutes reaches.
const longest = 20_000

// Follower receives each trial, its reason, and the regret over long hours of the recommendation
// after it.
type Follower func(e search.Event, why string, regret float64)

// Run runs a campaign on a machine with a seed's noise. follow may be nil.
func (l *Landscape) Run(s Strategy, limit Limit, seed uint64, follow Follower) Outcome {
	machine := l.NewMachine(seed)
	long := l.judge(limit, 1)
	var o Outcome
	var finals []search.Event
	measured, classes := map[*Point]bool{}, map[string]bool{}
	for o.Trials < longest {
		next := s.Ask()
		if next.Stop {
			break
		}
		for _, e := range machine.events(next) {
			s.Tell(e)
			o.Trials++
			o.Elapsed = e.Elapsed
			if p := l.Find(e.Trial.Candidate, e.Trial.Load.Level()); p != nil && e.Trial.Phase != search.PhaseService {
				measured[p], classes[p.class] = true, true
			}
			if e.Trial.Phase == search.PhaseFinal && e.Measurement.Failure == nil {
				finals = append(finals, e)
			}
			step := Step{At: e.Elapsed}
			if best, ok := s.Leader(); ok {
				step.candidate, step.level, step.isKnown = best.Candidate, best.Point.Level, true
			}
			step.Regret[Long] = long.ofStep(step)
			o.recommend(step)
			if follow != nil {
				follow(e, next.Why, step.Regret[Long])
			}
		}
	}
	o.Launches, o.Measured = machine.Launches(), float64(len(measured))/float64(len(l.Points))
	now := l.judge(limit, machine.weather.mean(0, o.Elapsed))
	for i := range o.Steps {
		o.Steps[i].Regret[Now] = now.ofStep(o.Steps[i])
	}
	o.Regret = [hours]float64{o.At(o.Elapsed, Now), o.At(o.Elapsed, Long)}
	if answer, ok := s.Leader(); ok {
		truth := l.Find(answer.Candidate, answer.Point.Level)
		o.False = [hours]bool{now.isFalse(truth), long.isFalse(truth)}
		l.cover(&o, answer, machine, finals)
	}
	if b, ok := s.(Believer); ok {
		o.Claims = l.examine(b, now, long, classes, seed)
	}
	return o
}

// recommend records a recommendation from a time on.
func (o *Outcome) recommend(s Step) {
	if n := len(o.Steps); n > 0 {
		last := o.Steps[n-1]
		if last.isKnown == s.isKnown && last.level == s.level && last.candidate.Key() == s.candidate.Key() {
			return
		}
	}
	o.Steps = append(o.Steps, s)
}
