package guided

import (
	"iter"
	"slices"

	"tuner/search"
)

// A space may have more pools, or more settings of the batcher in each, than can be thought about between two trials. Then the search looks
// at a part: at engines that differ in few knobs from the default's, and at more of them around each new best; and in a pool at settings that
// are spread over all, and at more of them around each that was measured. What is looked at is a matter of the events alone.
const (
	mostPools  = 20_000 // of a space that is looked at as a whole
	firstPools = 2000   // of a larger one: around the default
	nextPools  = 250    // and around each new best
	partPools  = 4000   // in all
	farthest   = 3      // knobs in which an engine may differ from the default's or the best's
	patience   = 20     // engines in a row, for each that may be entered, that are known or illegal

	mostMembers  = 1000 // of a pool that is looked at as a whole
	firstMembers = 48   // of a larger one, spread over all
	partMembers  = 150  // in all
)

// look enters the pools of the space, or a part of them.
func (g *Guided) look() {
	if n, _ := g.candidates.PoolCount(); n > mostPools {
		g.isPart = true
		g.lookAround(search.Candidate{}, firstPools)
		return
	}
	for settings := range g.candidates.Pools() {
		g.enterPool(settings)
	}
}

// lookAround enters pools whose engines differ from home's in few knobs, the nearest first: about so many.
func (g *Guided) lookAround(home search.Candidate, most int) {
	end, left := min(len(g.pools)+most, partPools), patience*most
	for distance := range farthest + 1 {
		for settings := range g.candidates.Near(home, distance) {
			_, known := g.byName[engineKey(settings)]
			if left--; !known && (len(g.pools) >= end || left <= 0) {
				return
			}
			g.meet(settings)
		}
	}
}

// meet enters a pool unless it is known.
func (g *Guided) meet(settings search.Candidate) {
	if g.byKey[settings.PoolKey()] == nil {
		g.enterPool(settings)
	}
}

// poolOf is the pool of a candidate. One that was not looked at, of a campaign that went another way before, is entered.
func (g *Guided) poolOf(c search.Candidate) (*pool, bool) {
	p, known := g.byKey[c.PoolKey()]
	if known || !g.isPart {
		return p, known
	}
	for settings := range g.candidates.Near(c, 0) {
		g.meet(settings)
	}
	g.foreseeAll()
	p, known = g.byKey[c.PoolKey()]
	return p, known
}

// follow looks around the best that was measured where that is another engine's than before.
func (g *Guided) follow() {
	if !g.isPart {
		return
	}
	ranked := g.ledger.Ranked()
	if len(ranked) == 0 || engineKey(ranked[0].Candidate) == g.home {
		return
	}
	g.home = engineKey(ranked[0].Candidate)
	g.lookAround(ranked[0].Candidate, nextPools)
	g.foreseeAll()
}

// foreseeAll predicts what engines do that were entered since the last one was opened.
func (g *Guided) foreseeAll() {
	if g.forecasts != nil {
		g.foresee()
		g.foreseeCompany()
	}
}

// isLarge reports whether not all members of a pool are looked at.
func (g *Guided) isLarge() bool { return g.candidates.Batchers() > mostMembers }

// fill lists the members of a pool that are looked at: of a large pool's those that are spread over all, that are like the best so far,
// and that is the same as the default.
func (g *Guided) fill(p *pool) {
	switch {
	case len(p.members) > 0 && !g.isLarge():
		return
	case !g.isLarge():
		p.members = g.candidates.Members(p.settings)
	default:
		if p == g.byKey[search.Candidate{}.PoolKey()] && !p.hosts {
			p.admit(g.twin)
		}
		if ranked := g.ledger.Ranked(); len(ranked) > 0 {
			g.join(p, g.candidates.Beside(withBatcher(p.settings, ranked[0].Candidate)))
		}
		g.join(p, g.candidates.Coarse(p.settings, firstMembers))
	}
	if p.hosts && !slices.ContainsFunc(p.members, search.Candidate.IsDefault) {
		p.members = append(p.members, search.Candidate{})
	}
}

// withBatcher is a pool's candidate with the batcher of another's.
func withBatcher(settings, other search.Candidate) search.Candidate {
	for _, s := range other.Settings() {
		if scope, known := search.KnobScope(s.Knob); known && scope == search.ScopeBatcher {
			settings = settings.With(s.Knob, s.Value)
		}
	}
	return settings
}

// join adds members to those of a large pool that are looked at, as long as they are not too many.
func (g *Guided) join(p *pool, members iter.Seq[search.Candidate]) {
	for c := range members {
		if len(p.members) < partMembers {
			p.admit(c)
		}
	}
}

// admit adds a member to those of a large pool that are looked at.
func (p *pool) admit(c search.Candidate) {
	if p.isMember == nil {
		p.isMember = map[string]bool{}
	}
	if key := c.Key(); !p.isMember[key] {
		p.isMember[key] = true
		p.members = append(p.members, c)
	}
}

// lookBeside looks at what is like a candidate that was measured in a large pool, and at the candidate itself.
func (g *Guided) lookBeside(p *pool, c search.Candidate) {
	if !g.isLarge() || c.IsDefault() {
		return
	}
	p.admit(c)
	g.join(p, g.candidates.Beside(c))
	if p.isReady() {
		g.prepareBatchers(p)
	}
}

// unseen is the number of candidates that were not looked at, at most.
func (g *Guided) unseen() int {
	if !g.isPart && !g.isLarge() {
		return 0
	}
	all, _ := g.candidates.Len()
	seen := len(g.pools) * g.candidates.Batchers()
	for _, p := range g.pools {
		if p.isReady() && g.isLarge() {
			seen -= g.candidates.Batchers() - len(p.members)
		}
	}
	return max(all-seen, 0)
}
