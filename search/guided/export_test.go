package guided

import (
	"slices"

	"tuner/search"
)

// Ranked lists the configurations, each at its best load, best first by what is believed of them: those within the constraints, then
// those that were measured and are not, and last what only the ledger knows.
func (g *Guided) Ranked() []search.Standing {
	s := g.decide().survey
	best := map[string]belief{}
	var keys []string
	for _, b := range s.beliefs {
		if b.feasible < trusted && b.trials == 0 {
			continue
		}
		key := g.named(b.cell).Key()
		known, ok := best[key]
		if !ok {
			keys = append(keys, key)
		}
		if !ok || byBelief(b, known) < 0 {
			best[key] = b
		}
	}
	slices.SortStableFunc(keys, func(a, b string) int { return byBelief(best[a], best[b]) })
	var ranked []search.Standing
	for _, key := range keys {
		ranked = append(ranked, g.standing(best[key]))
	}
	for _, standing := range g.ledger.Ranked() {
		key := standing.Candidate.Key()
		if key == g.twin.Key() {
			key = search.Candidate{}.Key()
		}
		if _, ok := best[key]; !ok {
			best[key] = belief{}
			ranked = append(ranked, standing)
		}
	}
	if i := g.floorIndex(ranked); i > 0 { // the default, better than all that is believed
		ranked = slices.Insert(slices.Delete(slices.Clone(ranked), i, i+1), 0, ranked[i])
	}
	return ranked
}
