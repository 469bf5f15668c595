package belief

import (
	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/posterior"
)

// places caches the places of cells for the posterior.
type places struct {
	space  search.Space
	pools  *pools.Pools
	byPool map[*pools.Pool]map[pools.Setting]*posterior.Place
}

// of returns the place of a cell.
func (p places) of(c pools.Cell) *posterior.Place {
	known := p.byPool[c.Pool]
	if known == nil {
		known = map[pools.Setting]*posterior.Place{}
		p.byPool[c.Pool] = known
	}
	place, isKnown := known[c.Setting]
	if !isKnown {
		made := posterior.PlaceOf(p.cell(c), p.space)
		place = &made
		known[c.Setting] = place
	}
	return place
}

// cell converts a cell for the posterior.
func (p places) cell(c pools.Cell) posterior.Cell {
	return posterior.Cell{Candidate: p.pools.Named(c), Load: p.space.Load.At(c.Level)}
}
