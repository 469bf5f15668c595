package footprint

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/measure/stats"
)

// evidence is where a figure of a batch comes from. The first that there is counts.
type evidence int

const (
	footprint evidence = iota // of a fresh process, after one batch on every instance
	service                   // after a size of a service trial, which had seen no larger one
	fresh                     // of a load on a fresh process, in a journal without footprints
	kept                      // of a load on a process that had held no larger batch
	evidences
)

// What estimates are worth, as standard deviations of logarithms: two launches of one
// configuration differ by 1 to 3 %; what other batches or instances tell is right to some
// 10 %; what other engines take, within a factor of 2.7.
const (
	near  = 0.02
	far   = 0.1
	other = 0.5
)

// Pool is what was seen of the processes of one pool, or of one like it.
type Pool struct {
	model     *Model
	engine    *engine
	instances int
	knots     map[int]*knot   // by batch
	bounds    map[int]float64 // by a configuration's largest batch: the least peak of its trials
	line      []point         // of the knots, ascending; nil when it must be made
	isSure    bool            // the line is of sure knots
}

// knot is what was seen of a batch, in bytes.
type knot struct{ seen [evidences][]float64 }

// point is a batch and what it takes.
type point struct {
	batch int
	bytes float64
}

func (p *Pool) isKnown() bool { return len(p.knots) > 0 || len(p.bounds) > 0 }

func (p *Pool) see(from evidence, batch int, bytes int64) {
	k, known := p.knots[batch]
	if !known {
		k = &knot{}
		p.knots[batch] = k
	}
	k.seen[from] = append(k.seen[from], float64(bytes))
	p.line = nil
}

func (p *Pool) bound(batch int, bytes int64) {
	if least, known := p.bounds[batch]; !known || float64(bytes) < least {
		p.bounds[batch] = float64(bytes)
	}
}

// Inherit takes over what another campaign saw of the pool, where nothing is known of it.
func (p *Pool) Inherit(then *Pool) {
	if !p.isKnown() {
		p.knots, p.bounds, p.line = then.knots, then.bounds, nil
	}
}

// best is the evidence that counts, and what it is worth. Loads may not have made a batch
// as large as they were allowed to: of further loads on a process the most counts.
func (k *knot) best() (bytes []float64, from evidence) {
	for from, list := range k.seen {
		if len(list) > 0 {
			return list, evidence(from)
		}
	}
	return nil, evidences
}

// bytes is the figure of the evidence that counts.
func (k *knot) bytes() float64 {
	list, from := k.best()
	if from == kept {
		return slices.Max(list)
	}
	return stats.Median(list)
}

// isSure reports whether the batch was executed beyond doubt.
func (k *knot) isSure() bool {
	_, from := k.best()
	return from <= service
}

// Holds is what a process of the pool holds with a largest batch; false where nothing is
// known of any.
func (p *Pool) Holds(batch int) (Estimate, bool) {
	line := p.points()
	isWithin := len(line) > 0 && line[0].batch <= batch && batch <= line[len(line)-1].batch
	if k, known := p.knots[batch]; known && (k.isSure() || !isWithin || !p.isSure) {
		list, from := k.best()
		e := spread(k.bytes(), near, Measured)
		if from == kept {
			return spread(max(e.Value, p.below(batch)), far, Derived), true
		}
		e.Lo, e.Hi = min(e.Lo, slices.Min(list)), max(e.Hi, slices.Max(list))
		return e, true
	}
	bytes, deviation, ok := p.derive(batch)
	if least, known := p.bounds[batch]; known && (!ok || deviation == other || least < bytes) {
		bytes, deviation, ok = least, far, true
	}
	if !ok {
		return Estimate{}, false
	}
	return spread(bytes, deviation, Derived), true
}

// below is the most that batches up to one were seen to take; 0 where none were.
func (p *Pool) below(batch int) float64 {
	bytes := 0.0
	for _, x := range p.points() {
		if x.batch <= batch {
			bytes = x.bytes
		}
	}
	return bytes
}

// spread is an estimate whose logarithm has a standard deviation.
func spread(bytes, deviation float64, basis Basis) Estimate {
	factor := math.Exp(stats.Half95 * deviation)
	return Estimate{measure.Estimate{Value: bytes, Lo: bytes / factor, Hi: bytes * factor}, basis}
}

// derive is what a batch that was not seen takes, and the deviation of its logarithm: on
// the line between the batches that were; beyond them as the nearest pool of the engine
// grows, for each instance, or on the line through the last two; else as other numbers of
// instances say; else what other engines take.
func (p *Pool) derive(batch int) (bytes, deviation float64, ok bool) {
	line := p.points()
	if len(line) == 0 {
		if bytes, ok = p.beside(batch); ok {
			return bytes, far, true
		}
		bytes, ok = p.model.typical(batch)
		return bytes, other, ok
	}
	first, last := line[0], line[len(line)-1]
	switch {
	case batch > last.batch:
		return max(p.from(last, batch), last.bytes), far, true
	case batch < first.batch:
		least := first.bytes * float64(batch) / float64(first.batch)
		return min(max(p.from(first, batch), least), first.bytes), far, true
	case p.isSure:
		return along(line, batch), near, true
	}
	return along(line, batch), far, true
}

// from is what a batch beyond an end of the line takes.
func (p *Pool) from(end point, batch int) float64 {
	q := p.like(end.batch, batch)
	if q == nil {
		return along(p.points(), batch)
	}
	grows := along(q.points(), batch) - along(q.points(), end.batch)
	return end.bytes + grows*float64(p.instances)/float64(q.instances)
}

// points are the knots that are sure, or all where none is. None takes less than a
// smaller one.
func (p *Pool) points() []point {
	if p.line != nil {
		return p.line
	}
	p.isSure = false
	for _, k := range p.knots {
		p.isSure = p.isSure || k.isSure()
	}
	for batch, k := range p.knots {
		if !p.isSure || k.isSure() {
			p.line = append(p.line, point{batch, k.bytes()})
		}
	}
	slices.SortFunc(p.line, func(a, b point) int { return a.batch - b.batch })
	for i := 1; i < len(p.line); i++ {
		p.line[i].bytes = max(p.line[i].bytes, p.line[i-1].bytes)
	}
	return p.line
}

// along is a line's value at a batch: linear between its points, and beyond them as
// between the two at that end, but no less than in proportion to the batch.
func along(line []point, batch int) float64 {
	if len(line) == 1 {
		return line[0].bytes
	}
	i, _ := slices.BinarySearchFunc(line, batch, func(x point, batch int) int { return x.batch - batch })
	i = min(max(i, 1), len(line)-1)
	a, b := line[i-1], line[i]
	bytes := a.bytes + (b.bytes-a.bytes)*float64(batch-a.batch)/float64(b.batch-a.batch)
	return max(bytes, line[0].bytes*min(float64(batch)/float64(line[0].batch), 1))
}

// like is the pool of the engine with the nearest number of instances that was seen with
// two batches, and with those from one to another; nil where none was.
func (p *Pool) like(from, to int) *Pool {
	for _, q := range p.neighbours() {
		line := q.points()
		if len(line) > 1 && line[0].batch <= min(from, to) && max(from, to) <= line[len(line)-1].batch {
			return q
		}
	}
	return nil
}

// neighbours are the engine's other pools of which batches were seen, those with the
// nearest numbers of instances first, of two as near the one with fewer.
func (p *Pool) neighbours() []*Pool {
	list := slices.DeleteFunc(slices.Clone(p.engine.pools), func(q *Pool) bool { return q == p || len(q.knots) == 0 })
	slices.SortFunc(list, func(a, b *Pool) int {
		return cmp.Or(p.apart(a)-p.apart(b), a.instances-b.instances)
	})
	return list
}

func (p *Pool) apart(q *Pool) int { return max(p.instances-q.instances, q.instances-p.instances) }

// beside is what a batch takes by the engine's pools with the two nearest numbers of
// instances: each instance takes as much. Of one number alone, half is taken to be its
// instances'.
func (p *Pool) beside(batch int) (bytes float64, ok bool) {
	list := p.neighbours()
	if len(list) == 0 {
		return 0, false
	}
	q := list[0]
	first := along(q.points(), batch)
	each := first / float64(2*q.instances)
	if len(list) > 1 {
		each = max(0, (along(list[1].points(), batch)-first)/float64(list[1].instances-q.instances))
	}
	return max(first+each*float64(p.instances-q.instances), first/float64(q.instances+1)), true
}

// typical is what a batch takes in the pools of which batches were seen, in the geometric
// mean; false where none were.
func (m *Model) typical(batch int) (bytes float64, ok bool) {
	sum, count := 0.0, 0.0
	for _, p := range m.order {
		if line := p.points(); len(line) > 0 {
			sum, count = sum+math.Log(along(line, batch)), count+1
		}
	}
	return math.Exp(sum / max(count, 1)), count > 0
}
