package plan

import (
	"slices"

	"tuner/measure"
	"tuner/search/posterior"
	"tuner/search/standings"
	"tuner/search/verdict"
)

// Predictor is an explorer that predicts unmeasured cells.
type Predictor interface {
	Explorer
	posterior.Prior
	// Rivals lists the unmeasured cells that may be better. isOpen means that some have no
	// prediction.
	Rivals() (list []verdict.Rival, isOpen bool)
}

// Posterior returns the posterior of all events so far.
func (p *Plan) Posterior() *posterior.Posterior { return posterior.New(p.posteriorOptions(), p.events) }

func (p *Plan) posteriorOptions() posterior.Options {
	o := posterior.Options{Space: p.settings.Space, Goal: p.settings.Goal, Elsewhere: p.settings.Elsewhere, Figures: &p.figures}
	if prior, ok := p.inner.(Predictor); ok {
		o.Prior = prior
	}
	return o
}

// Verdict returns the decision from all events so far, as reports show it.
func (p *Plan) Verdict() verdict.Verdict {
	for _, d := range p.decisions {
		if d.events == len(p.events) {
			return p.DecideAt(d.known, nil)
		}
	}
	return p.DecideAt(p.Posterior(), nil)
}

// DecideAt makes the decision from beliefs, with the strategy's predictions of unmeasured cells. at
// compares all configurations at one load, for any client batch; nil: each at its best.
func (p *Plan) DecideAt(known verdict.Beliefs, at *measure.Load) verdict.Verdict {
	return verdict.Decide(known, p.verdictOptions(at))
}

// decideNow makes the decision of a running campaign from beliefs.
func (p *Plan) decideNow(known verdict.Beliefs) verdict.Verdict {
	o := p.verdictOptions(nil)
	o.IsRunning = true
	return verdict.Decide(known, o)
}

func (p *Plan) verdictOptions(at *measure.Load) verdict.Options {
	o := verdict.Options{Space: p.settings.Space, Goal: p.settings.Goal, Confidence: p.settings.Confidence, Until: p.settings.Until, At: at}
	if at != nil {
		return o // rivals are at their best loads
	}
	o.MustConfirm = true
	if predictor, ok := p.inner.(Predictor); ok {
		o.Rivals, o.IsOpen = predictor.Rivals()
	} else {
		o.IsOpen = p.inner.Remaining() > 0
	}
	return o
}

// Leader returns the answer so far; false while nothing is likely to keep the constraints. It
// learns only from the newest events, so that it may be asked after each trial.
func (p *Plan) Leader() (standings.Standing, bool) { return standingOf(p.soFar()) }

// standingOf returns a verdict's answer if it is likely to keep the constraints.
func standingOf(v verdict.Verdict) (standings.Standing, bool) {
	answer := v.Answer()
	if answer == nil || answer.Holds < verdict.Likely {
		return standings.Standing{}, false
	}
	return standings.Standing{Candidate: answer.Candidate, Load: answer.Load, Point: pointOf(*answer)}, true
}

func pointOf(c verdict.Choice) standings.Point {
	return standings.Point{Level: c.Load.Level(), Score: c.Score.Mean, Scored: true, Misses: c.Misses}
}

// soFar is a fast Verdict. It is the campaign's current decision if that was made after the last
// event, else a sketch with scales that were learned before.
func (p *Plan) soFar() verdict.Verdict {
	n := len(p.events)
	for _, d := range append(slices.Clip(p.decisions), p.shown) {
		if d != nil && d.events == n {
			return d.verdict
		}
	}
	if p.known == nil || float64(n) >= posterior.Growth*float64(p.knownOf) {
		p.shown = p.decide(p.events)
	} else {
		o := p.posteriorOptions()
		o.Like, o.IsSketch = p.known, true
		known := posterior.New(o, p.events)
		p.shown = &decision{n, known, p.decideNow(known)}
	}
	return p.shown.verdict
}

// SoFar returns the decision after the last event, for people who watch. It may differ from Verdict
// in the last digit, and has fewer figures (verdict.Options.IsRunning).
func (p *Plan) SoFar() verdict.Verdict { return p.soFar() }

// Statement describes the result in sentences, with the strategy's notes about its search.
func (p *Plan) Statement() []string {
	return append(p.Verdict().Sentences(p.settings.Goal), p.Notes()...)
}

// Notes are sentences about what the answer means for several models, and about the search itself: its
// sources, its omissions, the reason of its end.
func (p *Plan) Notes() []string {
	var notes []string
	if x, ok := p.inner.(Separator); ok {
		if answer := p.soFar().Recommended; answer != nil {
			if text := x.Apart(answer.Load); text != "" {
				notes = append(notes, text)
			}
		}
	}
	if x, ok := p.inner.(Noter); ok {
		notes = append(notes, x.Notes()...)
	}
	return notes
}
