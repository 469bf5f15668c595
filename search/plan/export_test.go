package plan

import (
	"slices"

	"tuner/search"
)

// Favourite is what the finals go by: of their members the best at its confirmed load, and where they have
// confirmed none, what the search found best and they have not refuted. What is told to people is the
// verdict's.
func (p *Plan) Favourite() (search.Standing, bool) {
	if p.finals != nil {
		if s, ok := p.finals.leader(); ok {
			return s, true
		}
	}
	ranked := p.inner.Ranked()
	mayLead := func(s search.Standing) bool {
		return s.Point.Passes() && len(s.Measurement.Windows) > 0 && (p.finals == nil || !p.finals.refutes(s))
	}
	serves := func(s search.Standing) bool {
		return mayLead(s) && (p.finals == nil || !p.finals.hasFailed(s.Candidate))
	}
	for _, isNext := range []func(search.Standing) bool{serves, mayLead} { // what fails on fresh launches comes last
		if i := slices.IndexFunc(ranked, isNext); i >= 0 {
			return ranked[i], true
		}
	}
	return search.Standing{}, false
}

// hasFailed reports whether a configuration failed on fresh launches, and served on none.
func (f *finals) hasFailed(c search.Candidate) bool {
	return slices.ContainsFunc(f.members, func(m member) bool {
		return m.out && len(m.levels) == 0 && m.standing.Candidate.Key() == c.Key()
	})
}
