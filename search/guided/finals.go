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
