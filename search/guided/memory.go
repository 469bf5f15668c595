package guided

import (
	"math"
	"slices"

	"tuner/search"
)

// memory is what a pool's engine process holds by the largest batch that it was given: it keeps what its batches took.
type memory struct {
	batches []int     // ascending
	bytes   []float64 // ascending, the most that was seen
}

func (m memory) isKnown() bool { return len(m.batches) > 0 }

// add enters what a trial tells: of each size of a service trial, but for those that are smaller than what the process was given before, and of all that
// it has been given.
func (m *memory) add(e search.Event, space search.Space, before search.Process) {
	held := before.During(e).Batch
	for i, w := range e.Measurement.Windows {
		if i < len(e.Trial.Sizes) && e.Trial.Sizes[i] >= held && w.Memory > 0 {
			m.see(e.Trial.Sizes[i], float64(w.Memory))
		}
	}
	if e.Measurement.Failure == nil && e.Measurement.Memory > 0 {
		m.see(before.After(e, space).Batch, float64(e.Measurement.Memory))
	}
}

func (m *memory) see(batch int, bytes float64) {
	at, isKnown := slices.BinarySearch(m.batches, batch)
	if !isKnown {
		m.batches, m.bytes = slices.Insert(m.batches, at, batch), slices.Insert(m.bytes, at, 0)
	}
	if at > 0 {
		bytes = max(bytes, m.bytes[at-1])
	}
	for i := at; i < len(m.bytes); i++ {
		m.bytes[i] = max(m.bytes[i], bytes)
	}
}

// of is the memory with a largest batch: linear between those that were seen, no more than of the smallest one below it, and beyond the largest, which is
// a guess, on the line through the last two.
func (m memory) of(batch int) (bytes float64, isSeen bool) {
	last := len(m.batches) - 1
	i, isKnown := slices.BinarySearch(m.batches, batch)
	switch {
	case isKnown || i == 0:
		return m.bytes[i], true
	case last == 0:
		return m.bytes[0], false
	}
	to := min(i, last)
	slope := (m.bytes[to] - m.bytes[to-1]) / float64(m.batches[to]-m.batches[to-1])
	return m.bytes[to-1] + slope*float64(batch-m.batches[to-1]), i <= last
}

// memoryOf is the log of a pool's memory with a largest batch: what was seen, else the line through what was seen of its engine with other numbers of
// instances (each takes about the same), else what others took.
func (g *Guided) memoryOf(p *pool, batch int) (mean, variance float64) {
	const seen, extrapolated, other = 0.02, 0.1, 0.5
	if p.memory.isKnown() {
		bytes, isSeen := p.memory.of(batch)
		if isSeen {
			return math.Log(bytes), seen * seen
		}
		return math.Log(bytes), extrapolated * extrapolated
	}
	if bytes, ok := p.beside(batch); ok {
		return math.Log(bytes), extrapolated * extrapolated
	}
	sum, count := 0.0, 0.0
	for _, q := range g.pools {
		if q.memory.isKnown() {
			bytes, _ := q.memory.of(batch)
			sum, count = sum+math.Log(bytes), count+1
		}
	}
	return sum / max(count, 1), other * other
}

// beside is a pool's memory with a largest batch, in bytes, by that of its engine with the nearest numbers of instances; false where none is known.
func (p *pool) beside(batch int) (bytes float64, ok bool) {
	var near []*pool
	for _, q := range p.engine.pools {
		if q.memory.isKnown() {
			near = append(near, q)
		}
	}
	if len(near) == 0 {
		return 0, false
	}
	slices.SortStableFunc(near, func(a, b *pool) int { return apart(a, p) - apart(b, p) })
	q := near[0]
	first, _ := q.memory.of(batch)
	each := first / float64(2*q.instances) // of one measured number of instances: half of it is theirs
	if len(near) > 1 {
		second, _ := near[1].memory.of(batch)
		each = max(0, (second-first)/float64(near[1].instances-q.instances))
	}
	return max(first+each*float64(p.instances-q.instances), first/float64(q.instances+1)), true
}

func apart(a, b *pool) int { return max(a.instances-b.instances, b.instances-a.instances) }
