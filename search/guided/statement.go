package guided

import (
	"fmt"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/pools"
)

// statement is what the search says of itself.
type statement struct {
	// Shortfall says, where nothing that was measured satisfies the constraints, what misses them least and what would have
	// to give, in sentences.
	Shortfall []string
	Chance    float64          // then also: the highest probability of any configuration to satisfy them
	Why       string           // why the search is over; "" while it is not
	Dropped   []measure.Metric // whose predictions turned out wrong, so that the search did without them
	Unseen    int              // candidates that the search never looked at, in a space that is so large; at most
	Reused    []reuse          // earlier campaigns, in the settings' order
}

// statement is what can be said now.
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

// Dropped lists the metrics whose predictions turned out wrong, so that the search did without them.
func (g *Guided) Dropped() []measure.Metric { return g.beliefs.Dropped() }

// Notes are sentences about the search itself: what it learned from, what it left out, why it ended.
func (g *Guided) Notes() []string {
	s := g.statement()
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
	case !slices.ContainsFunc(g.pools.All(), (*pools.Pool).IsReady) && !slices.ContainsFunc(g.pools.Engines(), func(e *pools.Engine) bool { return e.EntryPool() != nil }):
		return "no engine process of the space serves"
	case !d.survey.hasLead():
		why := "nothing can satisfy the constraints"
		if g.opener.chance(&d.survey) > g.tuning.Beliefs.Possible { // of what was measured until little was left to learn
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

// Skipped says which candidates were not measured, because their pools do not serve or cannot matter.
func (g *Guided) Skipped() []search.Fold {
	if len(g.pools.All()) == 0 {
		return nil
	}
	d := g.decide()
	var folds []search.Fold
	add := func(reason string) {
		i := slices.IndexFunc(folds, func(f search.Fold) bool { return f.Reason == reason })
		if i < 0 {
			folds, i = append(folds, search.Fold{Reason: reason}), len(folds)
		}
		folds[i].Count += g.pools.PerPool()
	}
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
				add("so many instances are not expected to be better, by the service times of one")
			default:
				add("by service times that are predicted from engines like them, they are not expected to be better")
			}
		}
	}
	if n := g.pools.Unseen(); n > 0 {
		folds = append(folds, search.Fold{Reason: "never looked at (so many at most): the space is so large that the search stays near the default and the best", Count: n})
	}
	return folds
}
