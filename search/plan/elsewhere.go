package plan

import (
	"slices"

	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// If the finals run on another server, figures of the search's server carry little information
// about it. So the best of the search and the default are all measured there before any decision.

// newcomers returns the finalists with too few measurements on the finals' own server, those with
// the fewest first.
func (p *Plan) newcomers() []posterior.Cell {
	trials, isOut := map[string]int{}, map[string]bool{}
	for _, e := range p.events {
		if e.Trial.Phase == search.PhaseFinal {
			key := e.Trial.Candidate.Key()
			trials[key]++
			isOut[key] = isOut[key] || e.Measurement.Failure != nil
		}
	}
	var list []posterior.Cell
	for _, c := range p.finalists() {
		if key := c.Candidate.Key(); trials[key] < verdict.Confirmed && !isOut[key] {
			list = append(list, c.Cell)
		}
	}
	slices.SortStableFunc(list, func(a, b posterior.Cell) int { return trials[a.Candidate.Key()] - trials[b.Candidate.Key()] })
	return list[:min(search.MostSeats, len(list))]
}

// finalists returns the best of the search and the default, each at its load there.
func (p *Plan) finalists() []verdict.Choice {
	var searched []search.Event
	for _, e := range p.events {
		if e.Trial.Phase != search.PhaseFinal && e.Trial.Phase != search.PhaseLoadCurve {
			searched = append(searched, e)
		}
	}
	if p.searched == nil || p.searched.events != len(searched) {
		p.searched = p.decide(searched)
	}
	v := p.searched.verdict
	list := slices.Clone(v.Configs[:min(mostFinalists, len(v.Configs))])
	if v.Default != nil && !slices.ContainsFunc(list, func(c verdict.Choice) bool { return c.Candidate.IsDefault() }) {
		list = append(list, *v.Default)
	}
	return list
}
