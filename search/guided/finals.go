package guided

import "tuner/search"

// Confirm learns the outcome of a final trial: it is one more of its cell, on a launch of its own.
func (g *Guided) Confirm(e search.Event) {
	if !g.isConfirming {
		if next := g.Ask(); next.Stop {
			g.over = next.Why
		}
		g.isConfirming = true
	}
	g.Tell(e)
}

// Believed is what is believed of a configuration at a load, from all that was told; false where no open pool stands for it, or it fails.
func (g *Guided) Believed(c search.Candidate, level float64) (search.Point, bool) {
	p, ok := g.byKey[c.PoolKey()]
	if !ok || !p.isReady() {
		return search.Point{}, false
	}
	if c.IsDefault() {
		c = g.twin
	}
	at, ok := p.find(c.Key())
	x := cell{p, setting{at, level}}
	if !ok || p.isDead(x.setting) {
		return search.Point{}, false
	}
	g.decide() // it learns
	return g.standing(g.believe(x)).Point, true
}
