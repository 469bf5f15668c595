package guided

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
)

// Statement is what the search claims, from all that it measured and predicted.
type Statement struct {
	Best      *Claim           // nil while nothing is believed to satisfy the constraints
	Shortfall []string         // where nothing is and something was measured: what misses them least, and what would have to give, in sentences
	Chance    float64          // of that case: the highest probability of any configuration to satisfy them
	Gain      *float64         // relative, by which anything else may still be better than Best; nil while nothing is known of engines that may be
	Why       string           // why the search is over; "" while it is not
	Dropped   []measure.Metric // whose predictions turned out wrong, so that the search went on without them
	Unseen    int              // candidates that the search never looked at, in a space that is so large; at most
	Reused    []Reuse          // earlier campaigns, in the settings' order
}

// Claim is a configuration at a load and what is believed of it.
type Claim struct {
	Candidate search.Candidate
	Load      measure.Load
	Values    []Value // of the goal's metrics
	Feasible  float64 // probability that all constraints are satisfied
	Trials    int     // in which it was measured
	IsAlone   bool    // it is the default, of which only its measurements are known: no engine process of the space is like its own
}

// Value is a metric with a 95 % interval of what is believed, in its base unit.
type Value struct {
	Metric measure.Metric
	measure.Estimate
}

// Statement is what can be said now.
func (g *Guided) Statement() Statement {
	d := g.decide()
	st := Statement{Why: g.over, Reused: g.reuses(), Unseen: g.unseen()}
	if d.action.Stop && !g.isConfirming {
		st.Why = d.action.Why
	}
	for _, m := range g.models {
		if m.isDropped {
			st.Dropped = append(st.Dropped, m.metric)
		}
	}
	s := &d.survey
	if s.leader >= 0 {
		claim := g.claim(s.beliefs[s.leader])
		st.Best, st.Gain = &claim, g.possibleGain(d)
	} else if standing, ok := g.defaultStanding(); ok {
		claim := g.defaultClaim(standing)
		st.Best, st.Gain = &claim, g.possibleGain(d)
	} else if math.IsInf(s.lead, -1) {
		st.Shortfall, st.Chance = g.ledger.Shortfall(), g.chance(d)
	}
	return st
}

// claim is what is believed of a cell. Its intervals, and its probability to satisfy the constraints, are of what the machine does in the long run: the
// campaign saw a few minutes of the drift.
func (g *Guided) claim(b belief) Claim {
	c := Claim{Candidate: g.named(b.cell), Load: g.settings.Space.Load.At(b.level), Feasible: 1, Trials: b.trials}
	for k, m := range g.models {
		if !m.isKnown || !m.isAsked() {
			continue
		}
		deviation := math.Sqrt(b.residuals[k].variance + m.level)
		half := 1.96 * deviation
		e := measure.Estimate{Value: math.Exp(b.means[k]), Lo: math.Exp(b.means[k] - half), Hi: math.Exp(b.means[k] + half)}
		c.Values = append(c.Values, Value{m.metric, e})
		for _, limit := range m.limits {
			c.Feasible *= satisfaction(limit, b.means[k], deviation)
		}
	}
	return c
}

// defaultClaim is what the windows of a default say that no pool stands for.
func (g *Guided) defaultClaim(s search.Standing) Claim {
	c := Claim{Candidate: s.Candidate, Load: s.Load, Feasible: 1, IsAlone: true}
	for _, point := range g.ledger.Points(s.Candidate) {
		if point.Level == s.Point.Level {
			c.Trials++
		}
	}
	r, _ := g.read(search.Event{Measurement: s.Measurement})
	for k, m := range g.models {
		e, ok := g.settings.Goal.Estimate(s.Measurement, m.metric)
		if !ok || !m.isAsked() {
			continue
		}
		c.Values = append(c.Values, Value{m.metric, e})
		for _, limit := range m.limits {
			c.Feasible *= satisfaction(limit, r.logs[k], r.errors[k])
		}
	}
	return c
}

// named is a cell's candidate; the default where that is the same.
func (g *Guided) named(c cell) search.Candidate {
	b := c.batcher()
	if b.key == g.twin.Key() {
		return search.Candidate{}
	}
	return b.candidate
}

// possibleGain is by how much a cell, or a pool that was not started, may be better than the leader; nil while nothing is known of an engine that was
// not tried.
func (g *Guided) possibleGain(d *decision) *float64 {
	if len(g.pools) == 0 {
		return new(float64)
	}
	s, most := &d.survey, 0.0
	for i, b := range s.beliefs {
		if i != s.leader && b.feasible >= d.width.least {
			most = max(most, g.gap(d.width, s, b))
		}
	}
	known := g.experience()
	for _, e := range g.engines {
		if isHopeless(e, known) {
			continue
		}
		if _, ok := g.foreseen(e); !ok && e.door() != nil {
			return nil
		}
		for _, x := range g.promises(e, d.width, s) {
			most = max(most, x.most-s.lead)
		}
	}
	gain := g.settings.Goal.Objective.Gain(0, most)
	return &gain
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
func byBelief(a, b belief) int {
	rank := func(b belief) float64 {
		if b.feasible < possible {
			return 0
		}
		return min(b.feasible, trusted)
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
	if b.feasible >= trusted {
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

// floorIndex is the place of a default that no pool stands for, where its measured score beats the first's; else 0.
func (g *Guided) floorIndex(ranked []search.Standing) int {
	score := g.defaultScore()
	if len(ranked) == 0 || math.IsInf(score, -1) || ranked[0].Point.Passes() && ranked[0].Point.Score >= score {
		return 0
	}
	return max(slices.IndexFunc(ranked, func(s search.Standing) bool { return s.Candidate.IsDefault() }), 0)
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
		promises := g.promises(e, d.width, &d.survey)
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
				add("so many instances cannot be better, by the service times of one")
			default:
				add("their service times, predicted from those of engines like them, cannot be better")
			}
		}
	}
	if n := g.unseen(); n > 0 {
		folds = append(folds, search.Fold{Reason: "never looked at (so many at most): the space is so large that the search stays near the default and the best", Count: n})
	}
	return folds
}
