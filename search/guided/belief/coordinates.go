package belief

import (
	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/posterior"
)

// coordinateCache caches the coordinates of cells for the posterior.
type coordinateCache struct {
	space  search.Space
	pools  *pools.Pools
	byPool map[*pools.Pool]map[pools.Setting]*posterior.Coordinates
}

// of returns the coordinates of a cell.
func (p coordinateCache) of(c pools.Cell) *posterior.Coordinates {
	known := p.byPool[c.Pool]
	if known == nil {
		known = map[pools.Setting]*posterior.Coordinates{}
		p.byPool[c.Pool] = known
	}
	at, isKnown := known[c.Setting]
	if !isKnown {
		made := posterior.CoordinatesOf(p.cell(c), p.space)
		at = &made
		known[c.Setting] = at
	}
	return at
}

// cell converts a cell for the posterior.
func (p coordinateCache) cell(c pools.Cell) posterior.Cell {
	return posterior.Cell{Candidate: p.pools.Named(c), Load: p.space.Load.At(c.Level)}
}
