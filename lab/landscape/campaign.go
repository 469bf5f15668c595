package landscape

import (
	"time"

	"tuner/search"
)

// Strategy is a campaign's strategy that can say what it would recommend.
type Strategy interface {
	search.Strategy
	Leader() (search.Standing, bool)
}

// Hours says of which hours of the machine a truth is.
type Hours int

// Now is the campaign's own time: throughputs are the landscape's times the machine's
// mean speed meanwhile, latencies are divided by it. A strategy can know this truth. Long
// is all of the recorded hours, or the mean of a synthetic noise, of which a campaign
// sees a few minutes.
const (
	Now Hours = iota
	Long
	hours
)

// Outcome is how a campaign went.
type Outcome struct {
	Steps    []Step         // what was recommended, in the order of time
	Regret   [hours]float64 // of the answer, as Landscape.Regret has it
	False    [hours]bool    // the answer exceeds the limit by more than 2 %
	Launches int            // engine processes started
	Trials   int            // service trials too
	Measured float64        // share of the landscape's points that were measured
	Elapsed  time.Duration  // virtual
	Value    Coverage       // of the answer's throughput over long hours, by the finals' interval
	ValueNow Coverage       // the same on the machine as fast as it was during the finals
	Gain     Coverage       // of its gain over the default
	Claims   Claims         // what the strategy itself believes; empty of one that only measures
}

// Step is a recommendation: from a time on, what it is worth.
type Step struct {
	At     time.Duration
	Regret [hours]float64

	candidate search.Candidate
	level     float64
	isKnown   bool // something is recommended
}

// At is the regret of what was recommended at a time, 1 before the first recommendation.
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

// StaysWithin is the time after which the recommendation's regret never exceeds a bound again, and
// false when the answer's does.
func (o Outcome) StaysWithin(bound float64, h Hours) (time.Duration, bool) {
	since, within := time.Duration(0), false
	for _, s := range o.Steps {
		if now := s.Regret[h] <= bound; now != within {
			since, within = s.At, now
		}
	}
	return since, within
}

// longest is a number of trials that no campaign with a budget of minutes has.
const longest = 20_000

// Follower is told of each trial, why it was made, and the regret over long hours of what
// is recommended after it.
type Follower func(e search.Event, why string, regret float64)

// Run carries a campaign out on a machine with a seed's noise. follow may be nil.
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

// recommend enters what is recommended from a time on.
func (o *Outcome) recommend(s Step) {
	if n := len(o.Steps); n > 0 {
		last := o.Steps[n-1]
		if last.isKnown == s.isKnown && last.level == s.level && last.candidate.Key() == s.candidate.Key() {
			return
		}
	}
	o.Steps = append(o.Steps, s)
}
