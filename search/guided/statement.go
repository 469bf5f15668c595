package guided

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
)

// Statement is what the search says of itself.
type Statement struct {
	Shortfall []string         // where nothing that was measured satisfies the constraints: what misses them least, and what would have to give, in sentences
	Chance    float64          // then also: the highest probability of any configuration to satisfy them
	Why       string           // why the search is over; "" while it is not
	Dropped   []measure.Metric // whose predictions turned out wrong, so that the search went on without them
	Unseen    int              // candidates that the search never looked at, in a space that is so large; at most
	Reused    []Reuse          // earlier campaigns, in the settings' order
}

// Statement is what can be said now.
func (g *Guided) Statement() Statement {
	d := g.decide()
	st := Statement{Why: g.over, Reused: g.reuses(), Unseen: g.unseen()}
	if d.action.Stop && !g.isConfirming {
		st.Why = d.action.Why
	}
	st.Dropped = g.dropped()
	if math.IsInf(d.survey.lead, -1) {
		st.Shortfall, st.Chance = g.ledger.Shortfall(), g.chance(d)
	}
	return st
}

// Dropped lists the metrics whose predictions turned out wrong, so that the search went on without them.
func (g *Guided) Dropped() []measure.Metric {
	g.decide()
	return g.dropped()
}

func (g *Guided) dropped() []measure.Metric {
	var list []measure.Metric
	for _, m := range g.models {
		if m.isDropped {
			list = append(list, m.metric)
		}
	}
	return list
}

// named is a cell's candidate; the default where that is the same.
func (g *Guided) named(c cell) search.Candidate {
	b := c.batcher()
	if b.key == g.twin.Key() {
		return search.Candidate{}
	}
	return b.candidate
}

// Notes are sentences about the search itself: what it learned from, what it left out, why it ended.
func (g *Guided) Notes() []string {
	s := g.Statement()
	var list []string
	if len(s.Shortfall) > 0 && s.Why != "" { // else the budget ended first
		const least = 0.001 // that is told
		list = append(list, fmt.Sprintf("No configuration satisfies the constraints with a probability above %.1f %%.", 100*max(s.Chance, least)))
	}
	for _, r := range s.Reused {
		list = append(list, r.sentence())
	}
	for _, m := range s.Dropped {
		list = append(list, fmt.Sprintf("The queue simulation does not predict %s here: the search went on without it.", m))
	}
	if s.Unseen > 0 {
		list = append(list, fmt.Sprintf("The space is so large that the search stayed near the default and the best: it never looked at the other configurations, %d at most.", s.Unseen))
	}
	if s.Why != "" {
		list = append(list, "The search is over: "+s.Why+".")
	}
	return list
}

// ending says why nothing is left to do.
func (g *Guided) ending(d *decision) string {
	switch {
	case !slices.ContainsFunc(g.pools, (*pool).isReady) && !slices.ContainsFunc(g.engines, func(e *engine) bool { return e.door() != nil }):
		return "no engine process of the space serves"
	case math.IsInf(d.survey.lead, -1):
		why := "nothing can satisfy the constraints"
		if g.chance(d) > possible { // of what was measured until little was left to learn
			why = "nothing is likely to satisfy the constraints"
		}
		if ranked := g.ledger.Ranked(); len(ranked) > 0 && len(ranked[0].Point.Misses) > 0 {
			nearest := ranked[0]
			why += fmt.Sprintf("; nearest is %s, where %s", nearest.Candidate.Describe(), nearest.Point.Misses[0])
		}
		return why
	}
	return "nothing that is left is likely to be better by what is worth a trial"
}

// byBelief orders what is trusted to be feasible by its score, before the rest by its feasibility, and last what is out of the question by
// how little it lacks.
func (g *Guided) byBelief(a, b belief) int {
	rank := func(b belief) float64 {
		if b.feasible < possible {
			return 0
		}
		return min(b.feasible, g.trusted)
	}
	x, y := rank(a), rank(b)
	if x == 0 && y == 0 {
		return cmp.Or(cmp.Compare(a.lack, b.lack), cmp.Compare(b.score, a.score))
	}
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(b.score, a.score))
}

// standing is a belief as the ledger would have it.
func (g *Guided) standing(b belief) search.Standing {
	load := g.settings.Space.Load.At(b.level)
	s := search.Standing{Candidate: g.named(b.cell), Load: load, Point: search.Point{Level: load.Level(), Score: b.score, Scored: true}}
	if t := b.pool.track(b.batcher().key, b.level); t != nil {
		s.Measurement = t.measurement
	}
	if b.feasible >= g.trusted {
		return s
	}
	for k, m := range g.models {
		for _, c := range m.limits {
			value := math.Exp(b.means[k])
			if v := c.Violation(value); v > 0 && m.isKnown {
				s.Point.Misses = append(s.Point.Misses, search.Miss{Constraint: c, Value: value, Violation: v})
			}
		}
	}
	return s
}

// Remaining estimates how many configurations are still to be measured.
func (g *Guided) Remaining() int {
	const typical, least = 20, 2
	if g.decide().action.Stop {
		return 0
	}
	return max(typical-g.served, least)
}

// Skipped says which candidates were not measured, because their pools do not serve or cannot matter.
func (g *Guided) Skipped() []search.Fold {
	if len(g.pools) == 0 {
		return nil
	}
	d := g.decide()
	var folds []search.Fold
	add := func(reason string) {
		i := slices.IndexFunc(folds, func(f search.Fold) bool { return f.Reason == reason })
		if i < 0 {
			folds, i = append(folds, search.Fold{Reason: reason}), len(folds)
		}
		folds[i].Count += g.candidates.Batchers()
	}
	known := g.experience()
	for _, e := range g.engines {
		promises := g.promises(e, &d.survey)
		for _, p := range e.pools {
			switch {
			case p.failure != "":
				add(fmt.Sprintf("the engine does not serve with %s: %s", p.key, p.failure))
			case p.isReady():
			case isHopeless(e, known):
				add("several engines with the same value of a knob failed, and none works")
			case slices.ContainsFunc(promises, func(x promise) bool { return x.pool == p }):
				add("not tried yet: its bounds do not rule it out")
			case e.isOpen():
				add("so many instances are not expected to be better, by the service times of one")
			default:
				add("by service times that are predicted from engines like them, they are not expected to be better")
			}
		}
	}
	if n := g.unseen(); n > 0 {
		folds = append(folds, search.Fold{Reason: "never looked at (so many at most): the space is so large that the search stays near the default and the best", Count: n})
	}
	return folds
}
