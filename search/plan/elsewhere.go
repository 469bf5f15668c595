package plan

import (
	"slices"

	"tuner/search"
	"tuner/search/verdict"
)

// Where the finals run on another server, what is known of the search's says nothing of the figures
// there. So the best of the search and the default are all measured there, and each goes to a lower load
// as long as it misses the limits.

// mostFinalists is how many configurations go to another server beside the default.
const mostFinalists = 3

// elsewhere are the trials of the next round on the finals' own server.
func (f *finals) elsewhere() []search.Trial {
	p := f.plan
	if f.rounds >= mostRounds || p.settings.Budget == (search.Budget{}) && f.rounds >= fewest+fewest {
		return nil
	}
	var trials []search.Trial
	for _, c := range p.finalists() {
		if f.failed[c.Candidate.Key()] == 0 {
			trials = append(trials, finalTrial(p.settings, c.Candidate, p.levelThere(c), f.windows))
		}
	}
	return trials
}

// finalists are the best of the search and the default, each at its load there.
func (p *Plan) finalists() []verdict.Choice {
	var searched []search.Event
	for _, e := range p.events {
		if e.Trial.Phase != search.PhaseFinal && e.Trial.Phase != search.PhaseCurve {
			searched = append(searched, e)
		}
	}
	v := p.DecideAt(p.learn(searched), nil)
	list := slices.Clone(v.Configs[:min(mostFinalists, len(v.Configs))])
	if v.Default != nil && !slices.ContainsFunc(list, func(c verdict.Choice) bool { return c.Candidate.IsDefault() }) {
		list = append(list, *v.Default)
	}
	return list
}

// levelThere is the load at which a finalist goes on: below what missed the limits there.
func (p *Plan) levelThere(c verdict.Choice) float64 {
	const lower = 1.25 // factor between a load that misses the limits and the next to be tried
	level := c.Load.Level()
	for _, e := range p.events {
		t := e.Trial
		if t.Phase != search.PhaseFinal || t.Candidate.Key() != c.Candidate.Key() || e.Measurement.Failure != nil || t.Load.Level() > level {
			continue
		}
		if p.settings.Goal.Judge(t.Load, e.Measurement).IsTooHigh() {
			level = p.settings.Space.Load.AtMost(t.Load.Level() / lower)
		}
	}
	return level
}
