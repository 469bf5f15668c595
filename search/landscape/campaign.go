package landscape

import (
	"math"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/stats"
)

// Strategy is a campaign's strategy that can say what it would recommend.
type Strategy interface {
	search.Strategy
	Leader() (search.Standing, bool)
}

// Claimer is a strategy that also says what it believes: a throughput with its interval, of a configuration at a load; false
// while it claims nothing.
type Claimer interface {
	Claim() (c search.Candidate, level float64, throughput measure.Estimate, ok bool)
}

// Outcome is how a campaign went.
type Outcome struct {
	Steps    []Step        // what was recommended, in the order of time
	Regret   float64       // of the answer, as Landscape.Regret has it
	False    bool          // the answer exceeds the limit by more than 2 %
	Launches int           // engine processes started
	Trials   int           // service trials too
	Measured float64       // share of the landscape's points that were measured
	Elapsed  time.Duration // virtual
	Value    Coverage      // of the answer's throughput
	Now      Coverage      // of the answer's throughput on the machine as fast as it was during the finals
	Gain     Coverage      // of its gain over the default
	Claim    Coverage      // of what the strategy itself believes of the throughput of what it would choose
}

// Step is a recommendation: from a time on, what it is worth.
type Step struct {
	At     time.Duration
	Regret float64
}

// Coverage is whether an interval that was reported holds the truth.
type Coverage struct{ Stated, Covers bool }

// At is the regret of what was recommended at a time, 1 before the first recommendation.
func (o Outcome) At(t time.Duration) float64 {
	regret := 1.0
	for _, s := range o.Steps {
		if s.At > t {
			break
		}
		regret = s.Regret
	}
	return regret
}

// StaysWithin is the time after which the recommendation's regret never exceeds a bound again, and false when the answer's does.
func (o Outcome) StaysWithin(bound float64) (time.Duration, bool) {
	since, within := time.Duration(0), false
	for _, s := range o.Steps {
		if now := s.Regret <= bound; now != within {
			since, within = s.At, now
		}
	}
	return since, within
}

// longest is a number of trials that no campaign with a budget of minutes has.
const longest = 20_000

// Follower is told of each trial, why it was made, and the regret of what is recommended after it.
type Follower func(e search.Event, why string, regret float64)

// Run carries a campaign out on a machine with a seed's noise. follow may be nil.
func (l *Landscape) Run(s Strategy, limit Limit, seed uint64, follow Follower) Outcome {
	machine := l.NewMachine(seed)
	var o Outcome
	var finals []search.Event
	measured := map[*Point]bool{}
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
				measured[p] = true
			}
			if e.Trial.Phase == search.PhaseFinal && e.Measurement.Failure == nil {
				finals = append(finals, e)
			}
			regret := 1.0
			if best, ok := s.Leader(); ok {
				regret = l.Regret(best.Candidate, best.Point.Level, limit)
			}
			o.recommend(e.Elapsed, regret)
			if follow != nil {
				follow(e, next.Why, regret)
			}
		}
	}
	o.Launches, o.Measured, o.Regret = machine.Launches(), float64(len(measured))/float64(len(l.Points)), o.At(o.Elapsed)
	l.close(&o, s, limit, machine, finals)
	if claimer, ok := s.(Claimer); ok {
		if c, level, x, ok := claimer.Claim(); ok && l.Find(c, level) != nil {
			truth := l.Find(c, level).Throughput
			o.Claim = Coverage{true, x.Lo <= truth && truth <= x.Hi}
		}
	}
	return o
}

// recommend enters what is recommended from a time on.
func (o *Outcome) recommend(at time.Duration, regret float64) {
	if n := len(o.Steps); n == 0 || o.Steps[n-1].Regret != regret {
		o.Steps = append(o.Steps, Step{at, regret})
	}
}

// close judges the answer.
func (l *Landscape) close(o *Outcome, s Strategy, limit Limit, machine *Machine, finals []search.Event) {
	best, ok := s.Leader()
	if !ok {
		return
	}
	truth := l.Find(best.Candidate, best.Point.Level)
	if truth == nil || !truth.Measurable() {
		return
	}
	o.False = truth.P99 > limit.P99*(1+tolerance)
	own := throughputs(finals, best.Candidate, best.Point.Level)
	o.Value = coverage(own, math.Log(truth.Throughput))
	if len(finals) > 0 {
		begin := finals[0].Elapsed - finals[0].Measurement.Times.Total()
		o.Now = coverage(own, math.Log(truth.Throughput*machine.weather.mean(begin, finals[len(finals)-1].Elapsed)))
	}
	if best.Candidate.IsDefault() || len(own) < 2 {
		return
	}
	level, base := mostMeasured(finals, search.Candidate{})
	if p := l.Find(search.Candidate{}, level); p != nil && len(base) > 1 {
		o.Gain = gainCoverage(own, base, math.Log(truth.Throughput/p.Throughput))
	}
}

// throughputs are the logarithms of a configuration's throughput at a load in the final trials, each on a launch of its own.
func throughputs(finals []search.Event, c search.Candidate, level float64) []float64 {
	var logs []float64
	for _, e := range finals {
		if e.Trial.Candidate.Key() != c.Key() || e.Trial.Load.Level() != level {
			continue
		}
		if x, ok := e.Measurement.Estimate(measure.Throughput); ok && x.Value > 0 {
			logs = append(logs, math.Log(x.Value))
		}
	}
	return logs
}

// mostMeasured is the load at which a configuration had most final trials.
func mostMeasured(finals []search.Event, c search.Candidate) (float64, []float64) {
	best, most := 0.0, []float64(nil)
	for _, e := range finals {
		if level := e.Trial.Load.Level(); e.Trial.Candidate.Key() == c.Key() && level != best {
			if logs := throughputs(finals, c, level); len(logs) > len(most) {
				best, most = level, logs
			}
		}
	}
	return best, most
}

// coverage asks whether Student's interval over launches holds the truth: what analyze reports where there are three or more.
func coverage(logs []float64, truth float64) Coverage {
	if len(logs) < 3 {
		return Coverage{}
	}
	e := stats.Mean(logs)
	return Coverage{true, e.Lo <= truth && truth <= e.Hi}
}

// gainCoverage asks the same of the difference of two means with the pooled spread between launches, as analyze reports a gain.
func gainCoverage(a, b []float64, truth float64) Coverage {
	n, m := float64(len(a)), float64(len(b))
	squares := func(logs []float64) float64 {
		sum, mean := 0.0, stats.Mean(logs).Value
		for _, x := range logs {
			sum += (x - mean) * (x - mean)
		}
		return sum
	}
	half := stats.TQuantile(0.975, n+m-2) * math.Sqrt((squares(a)+squares(b))/(n+m-2)*(1/n+1/m))
	difference := stats.Mean(a).Value - stats.Mean(b).Value
	return Coverage{true, math.Abs(difference-truth) <= half}
}
