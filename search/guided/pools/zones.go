package pools

import "slices"

// zone is a part of a pool that fails. It covers the batch sizes and loads from a pair on, or one
// candidate, or one cell without usable figures. A candidate fails from a request rate on that is
// too high for it, or at every load if it does not load.
type zone struct {
	batch     int
	level     float64
	candidate string // key; "" for all
	isCell    bool   // only that candidate at that level
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

// IsDead reports whether a cell of the pool lies in a zone of failure.
func (p *Pool) IsDead(s Setting) bool {
	b := p.batchers[s.Batcher]
	return p.fails(b.Key, b.Queue.MaxBatch, s.Level)
}

// Refuses reports whether batches of a size fail at any load.
func (p *Pool) Refuses(size int) bool { return p.fails("", size, 0) }

// fails reports whether a candidate with a largest batch lies in a zone of failure at a
// load.
func (p *Pool) fails(candidate string, batch int, level float64) bool {
	holds := func(z zone) bool { return z.holds(candidate, batch, level) }
	return slices.ContainsFunc(p.zones, holds) || slices.ContainsFunc(p.engine.zones, holds)
}

// RuleOutCell rules out a candidate at one level.
func (p *Pool) RuleOutCell(key string, level float64) {
	p.zones = append(p.zones, zone{candidate: key, level: level, isCell: true})
}

// RuleOutFrom rules out a candidate from a level on; 0 rules it out completely.
func (p *Pool) RuleOutFrom(key string, level float64) {
	p.zones = append(p.zones, zone{candidate: key, level: level})
}

// RuleOutBatches rules out batches from a size on, at loads from a level on.
func (p *Pool) RuleOutBatches(size int, level float64) {
	p.zones = append(p.zones, zone{batch: size, level: level})
}

// RuleOutBatches rules out batches from a size on in all pools of the engine.
func (e *Engine) RuleOutBatches(size int) { e.zones = append(e.zones, zone{batch: size}) }
