package guided

import (
	"fmt"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/verdict"
)

// statement is the search's description of itself.
type statement struct {
	// Shortfall describes, if no measured configuration satisfies the constraints, the smallest
	// miss and the constraints that would have to change, in sentences.
	Shortfall []string
	Chance    float64          // then also: the highest probability of any configuration to satisfy them
	Why       string           // reason for the end of the search; "" before
	Dropped   []measure.Metric // metrics whose predictions turned out wrong, so the search ignored them
	Unseen    int              // upper bound of the unconsidered candidates in a large space
	Reused    []reuse          // earlier campaigns, in the settings' order
}

// statement returns the current statement.
func (g *Guided) statement() statement {
	d := g.decide()
	st := statement{Why: g.over, Reused: g.reuses(), Unseen: g.pools.Unseen(), Dropped: g.beliefs.Dropped()}
	if d.action.Stop && !g.isConfirming {
		st.Why = d.action.Why
	}
	if !d.survey.hasLead() {
		st.Shortfall, st.Chance = g.ledger.Shortfall(), g.opener.chance(&d.survey)
	}
	return st
}

// Dropped lists the metrics whose predictions turned out wrong, so that the search ignored them.
func (g *Guided) Dropped() []measure.Metric { return g.beliefs.Dropped() }

// Notes are sentences about the search itself: its sources, its omissions, the reason of its end.
func (g *Guided) Notes() []string {
	s := g.statement()
	var list []string
	if len(s.Shortfall) > 0 && s.Why != "" { // otherwise the budget ended first
		list = append(list, fmt.Sprintf("The highest probability of any configuration to satisfy the constraints is %s.", verdict.Percent(s.Chance)))
	}
	for _, r := range s.Reused {
		list = append(list, r.sentence())
	}
	for _, m := range s.Dropped {
		list = append(list, fmt.Sprintf("The queue simulation does not predict %s here: the search continued without it.", m))
	}
	if s.Unseen > 0 {
		list = append(list, fmt.Sprintf("The space is so large that the search stayed near the default and the best: it never looked at the other configurations, %d at most.", s.Unseen))
	}
	if s.Why != "" {
		list = append(list, "The search is over: "+s.Why+".")
	}
	return list
}

// ending returns the reason why nothing is left to do.
func (g *Guided) ending(d *decision) string {
	switch {
	case !slices.ContainsFunc(g.pools.All(), (*pools.Pool).IsReady) && !slices.ContainsFunc(g.pools.Engines(), func(e *pools.Engine) bool { return e.EntryPool() != nil }):
		return "no engine process of the space serves"
	case !d.survey.hasLead():
		why := "nothing can satisfy the constraints"
		// of what was measured until little was left to learn
		if g.opener.chance(&d.survey) > g.tuning.Beliefs.Possible {
			why = "nothing is likely to satisfy the constraints"
		}
		if ranked := g.ledger.Ranked(); len(ranked) > 0 && len(ranked[0].Point.Misses) > 0 {
			nearest := ranked[0]
			why += fmt.Sprintf("; nearest is %s, where %s", nearest.Candidate.Describe(), nearest.Point.Misses[0])
		}
		return why
	}
	return "no remaining configuration is likely to be better by enough to be worth a trial"
}

// Skipped returns the unmeasured candidates whose pools do not serve or cannot matter.
func (g *Guided) Skipped() []search.Fold {
	if len(g.pools.All()) == 0 {
		return nil
	}
	d := g.decide()
	var folds search.Folds
	add := func(reason string) { folds.Add(reason, "", g.pools.PerPool()) }
	known := g.pools.Experience()
	for _, e := range g.pools.Engines() {
		worth := g.opener.worthOpening(e, &d.survey)
		for _, p := range e.Pools() {
			switch {
			case p.HasFailed():
				add(fmt.Sprintf("the engine does not serve with %s: %s", p.Key(), p.Failure()))
			case p.IsReady():
			case known.IsHopeless(e):
				add("several engines with the same value of a knob failed, and none works")
			case slices.ContainsFunc(worth, func(x poolBound) bool { return x.pool == p }):
				add("not tried yet: its bounds do not rule it out")
			case e.IsOpen():
				add("more instances are not expected to be better, by the service times of one")
			default:
				add("they are not expected to be better, by service times that are predicted from similar engines")
			}
		}
	}
	if n := g.pools.Unseen(); n > 0 {
		folds.Add("never looked at (at most this number): the space is so large that the search stays near the default and the best", "", n)
	}
	return folds.List()
}
