package guided

import (
	"math"
	"slices"

	"tuner/search"
	"tuner/search/guided/belief"
	"tuner/search/standings"
)

// Ranked lists the configurations, each at its best load, best first by belief. Those within the
// constraints come first, then measured ones outside, and last those that only the ledger has.
func (g *Guided) Ranked() []standings.Standing {
	s := g.decide().survey
	best := map[string]belief.Belief{}
	var keys []string
	for _, b := range s.cells {
		if !g.beliefs.IsTrusted(b) && b.Trials == 0 {
			continue
		}
		key := g.pools.Named(b.Cell).Key()
		known, ok := best[key]
		if !ok {
			keys = append(keys, key)
		}
		if !ok || g.surveyor.byBelief(b, known) < 0 {
			best[key] = b
		}
	}
	slices.SortStableFunc(keys, func(a, b string) int { return g.surveyor.byBelief(best[a], best[b]) })
	var ranked []standings.Standing
	for _, key := range keys {
		ranked = append(ranked, g.standing(best[key]))
	}
	for _, standing := range g.ledger.Ranked() {
		key := standing.Candidate.Key()
		if key == g.pools.InPool(search.Candidate{}).Key() {
			key = search.Candidate{}.Key()
		}
		if _, ok := best[key]; !ok {
			best[key] = belief.Belief{}
			ranked = append(ranked, standing)
		}
	}
	if i := g.defaultIndex(ranked); i > 0 { // the default, better than all beliefs
		ranked = slices.Insert(slices.Delete(slices.Clone(ranked), i, i+1), 0, ranked[i])
	}
	return ranked
}

// standing converts a belief to the ledger's form.
func (g *Guided) standing(b belief.Belief) standings.Standing {
	load := g.settings.Space.Load.At(b.Level)
	s := standings.Standing{Candidate: g.pools.Named(b.Cell), Load: load, Point: standings.Point{Level: load.Level(), Score: b.Score, Scored: true}}
	if h := b.Pool.History(b.Batcher().Key, b.Level); h != nil {
		s.Measurement = h.Measurement
	}
	if !g.beliefs.IsTrusted(b) {
		s.Point.Misses = g.beliefs.Misses(b)
	}
	return s
}

// defaultIndex returns the index of a default outside all pools if its measured score exceeds the
// first's; else 0.
func (g *Guided) defaultIndex(ranked []standings.Standing) int {
	score := g.defaultScore()
	if len(ranked) == 0 || math.IsInf(score, -1) || ranked[0].Point.Passes() && ranked[0].Point.Score >= score {
		return 0
	}
	return max(slices.IndexFunc(ranked, func(s standings.Standing) bool { return s.Candidate.IsDefault() }), 0)
}
