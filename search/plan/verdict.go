package plan

import (
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// Predictor is an explorer that predicts what it has not measured.
type Predictor interface {
	Explorer
	posterior.Prior
	// Rivals lists what was not measured and may be better; isOpen says that nothing is known of some of it.
	Rivals() (list []verdict.Rival, isOpen bool)
}

// Posterior is what is known from all events that were told.
func (p *Plan) Posterior() *posterior.Posterior { return posterior.New(p.posteriorOptions(), p.events) }

func (p *Plan) posteriorOptions() posterior.Options {
	o := posterior.Options{Space: p.settings.Space, Goal: p.settings.Goal, Elsewhere: p.settings.Elsewhere, Figures: &p.figures}
	if prior, ok := p.inner.(Predictor); ok {
		o.Prior = prior
	}
	return o
}

// Verdict is the decision by all events that were told.
func (p *Plan) Verdict() verdict.Verdict { return p.DecideAt(p.Posterior(), nil) }

// DecideAt is the decision by what is known, with what the strategy expects of all that was not measured.
// at compares all configurations at one load, whatever the client batch; nil: each at its best.
func (p *Plan) DecideAt(known verdict.Beliefs, at *measure.Load) verdict.Verdict {
	o := verdict.Options{Space: p.settings.Space, Goal: p.settings.Goal, Confidence: p.settings.Confidence, Until: p.settings.Until, At: at}
	o.MustConfirm = at == nil
	if at != nil {
		return verdict.Decide(known, o) // rivals are of best loads
	}
	if predictor, ok := p.inner.(Predictor); ok {
		o.Rivals, o.IsOpen = predictor.Rivals()
	} else {
		o.IsOpen = p.inner.Remaining() > 0
	}
	return verdict.Decide(known, o)
}

// Leader is the answer so far: false while nothing is likely to keep the constraints. It learns from the
// newest events alone, so that it may be asked after each trial.
func (p *Plan) Leader() (search.Standing, bool) { return standingOf(p.soFar()) }

// standingOf is a verdict's answer where it is likely to keep the constraints.
func standingOf(v verdict.Verdict) (search.Standing, bool) {
	answer := v.Answer()
	if answer == nil || answer.Holds < verdict.Likely {
		return search.Standing{}, false
	}
	return search.Standing{Candidate: answer.Candidate, Load: answer.Load, Point: pointOf(*answer)}, true
}

func pointOf(c verdict.Choice) search.Point {
	return search.Point{Level: c.Load.Level(), Score: c.Score.Mean, Scored: true, Misses: c.Misses}
}

// soFar is Verdict by what is quickly learned: the decision that the campaign goes on from, where it was made after the last event, else
// a sketch by scales that were learned before.
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
		p.shown = &decision{n, known, p.DecideAt(known, nil)}
	}
	return p.shown.verdict
}

// SoFar is the decision after the last event, for people who watch. It may differ from Verdict in the last
// digit.
func (p *Plan) SoFar() verdict.Verdict { return p.soFar() }

// Statement says in sentences what was found, and what the strategy notes about its search.
func (p *Plan) Statement() []string {
	return append(p.Verdict().Sentences(p.settings.Goal), p.Notes()...)
}

// Notes are sentences about the search itself: what it learned from, what it left out, why it ended.
func (p *Plan) Notes() []string {
	if x, ok := p.inner.(Noter); ok {
		return x.Notes()
	}
	return nil
}
