package guided

import (
	"slices"

	"tuner/search"
)

// zone is a part of a pool that fails: the batch sizes and loads from one on, or one
// candidate, from a request rate on that is too much for it or, when that is what does
// not load, at all; or a cell of which nothing can be told.
type zone struct {
	batch     int
	level     float64
	candidate string // key; "" for all
	isCell    bool   // that candidate, at that level
}

// holds reports whether a candidate with a largest batch fails at a load.
func (z zone) holds(candidate string, batch int, level float64) bool {
	switch {
	case z.isCell:
		return z.candidate == candidate && level == z.level
	case z.candidate != "":
		return z.candidate == candidate && level >= z.level
	}
	return batch >= z.batch && level >= z.level
}

// isDead reports whether a cell of the pool lies in a zone of failure.
func (p *pool) isDead(s setting) bool {
	b := p.batchers[s.batcher]
	return p.fails(b.key, b.queue.MaxBatch, s.level)
}

// refuses reports whether batches of a size fail at any load.
func (p *pool) refuses(size int) bool { return p.fails("", size, 0) }

// fails reports whether a candidate with a largest batch lies in a zone of failure at a
// load.
func (p *pool) fails(candidate string, batch int, level float64) bool {
	holds := func(z zone) bool { return z.holds(candidate, batch, level) }
	return slices.ContainsFunc(p.zones, holds) || slices.ContainsFunc(p.engine.zones, holds)
}

// refused is the smallest size of a service trial from which on none got an answer; false
// where the largest did. A smaller one that got none had bad luck, and sizes that were
// left out without a failure took too long.
func refused(e search.Event) (size int, found bool) {
	windows := e.Measurement.Windows
	for i := len(e.Trial.Sizes) - 1; i >= 0; i-- {
		switch {
		case i >= len(windows) && e.Measurement.Failure == nil:
			continue
		case i < len(windows) && windows[i].Requests > 0:
			return size, found
		}
		size, found = e.Trial.Sizes[i], true
	}
	return size, found
}
