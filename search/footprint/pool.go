package footprint

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/measure/stats"
)

// evidence is the source of a batch's figure. The first available one counts.
type evidence int

const (
	footprint evidence = iota // from a fresh process, after one batch on every instance
	service                   // after a size of a service trial, in a process without larger batches
	fresh                     // from a load on a fresh process, in a journal without footprints
	kept                      // from a load on a process that had held no larger batch
	evidences
)

// The errors of estimates, as standard deviations of logarithms. Two launches of one configuration
// differ by 1 to 3 %. Estimates from other batches or instances are right to some 10 %. Those from
// other engines are right within a factor of 2.7.
const (
	near  = 0.02
	far   = 0.1
	other = 0.5
)

// Pool holds the observations of the processes of one pool, or of a similar one.
type Pool struct {
	model     *Model
	engine    *engine
	instances int
	knots     map[int]*knot   // by batch
	bounds    map[int]float64 // by a configuration's largest batch: the least peak of its trials
	grown     map[int]float64 // of a mix, by the same: the largest peak without larger batches before
	line      []point         // of the knots, ascending; nil if it must be computed
	isSure    bool            // the line consists of sure knots
}

// knot holds the observations of a batch, in bytes.
type knot struct{ seen [evidences][]float64 }

// point is a batch with its memory.
type point struct {
	batch int
	bytes float64
}

func (p *Pool) isKnown() bool { return len(p.knots) > 0 || len(p.bounds) > 0 || len(p.grown) > 0 }

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

func (p *Pool) grow(batch int, bytes int64) { p.grown[batch] = max(p.grown[batch], float64(bytes)) }

// Inherit copies another campaign's observations of the pool, if it has none itself.
func (p *Pool) Inherit(then *Pool) {
	if !p.isKnown() {
		p.knots, p.bounds, p.grown, p.line = then.knots, then.bounds, then.grown, nil
	}
}

// best returns the evidence that counts, with its figures. Loads may not have made batches of the
// full allowed size, so of further loads on a process the largest counts.
func (k *knot) best() (bytes []float64, from evidence) {
	for from, list := range k.seen {
		if len(list) > 0 {
			return list, evidence(from)
		}
	}
	return nil, evidences
}

// bytes returns the figure of the evidence that counts.
func (k *knot) bytes() float64 {
	list, from := k.best()
	if from == kept {
		return slices.Max(list)
	}
	return stats.Median(list)
}

// isSure reports whether the batch was certainly executed.
func (k *knot) isSure() bool {
	_, from := k.best()
	return from <= service
}

// Holds returns the memory of a process of the pool with a largest batch; false if nothing is known
// about any. Of a mix it is at least what a process grew to.
func (p *Pool) Holds(batch int) (Estimate, bool) {
	e, ok := p.holds(batch)
	if most, known := p.grown[batch]; known && (!ok || most > e.Value) {
		e, ok = spread(most, near, Measured), true
	}
	return e, ok
}

// holds is Holds without what a process grew to.
func (p *Pool) holds(batch int) (Estimate, bool) {
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

// below returns the largest observed memory of batches up to a size; 0 without one.
func (p *Pool) below(batch int) float64 {
	bytes := 0.0
	for _, x := range p.points() {
		if x.batch <= batch {
			bytes = x.bytes
		}
	}
	return bytes
}

// spread returns an estimate whose logarithm has the given standard deviation.
func spread(bytes, deviation float64, basis Basis) Estimate {
	factor := math.Exp(stats.Half95 * deviation)
	return Estimate{measure.Estimate{Value: bytes, Lo: bytes / factor, Hi: bytes * factor}, basis}
}

// derive estimates the memory of an unobserved batch, with the deviation of its logarithm. Between
// observed batches it is on their line. Beyond them it grows like the nearest pool of the engine,
// per instance, or on the line through the last two. Otherwise it comes from other numbers of
// instances, or from other engines.
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

// from estimates the memory of a batch beyond an end of the line.
func (p *Pool) from(end point, batch int) float64 {
	q := p.like(end.batch, batch)
	if q == nil {
		return along(p.points(), batch)
	}
	grows := along(q.points(), batch) - along(q.points(), end.batch)
	return end.bytes + grows*float64(p.instances)/float64(q.instances)
}

// points returns the sure knots, or all if none is sure. None takes less than a smaller one.
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

// along returns a line's value at a batch. It is linear between points. Beyond an end it continues
// the line of the two points there, but never below proportion to the batch.
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

// like returns the pool of the engine with the nearest number of instances that has two observed
// batches, including those from one to another. nil without one.
func (p *Pool) like(from, to int) *Pool {
	for _, q := range p.neighbours() {
		line := q.points()
		if len(line) > 1 && line[0].batch <= min(from, to) && max(from, to) <= line[len(line)-1].batch {
			return q
		}
	}
	return nil
}

// neighbours returns the engine's other pools with observations. Those with the nearest numbers of
// instances come first; at equal distance, the one with fewer.
func (p *Pool) neighbours() []*Pool {
	list := slices.DeleteFunc(slices.Clone(p.engine.pools), func(q *Pool) bool { return q == p || len(q.knots) == 0 })
	slices.SortFunc(list, func(a, b *Pool) int {
		return cmp.Or(p.apart(a)-p.apart(b), a.instances-b.instances)
	})
	return list
}

func (p *Pool) apart(q *Pool) int { return max(p.instances-q.instances, q.instances-p.instances) }

// beside estimates a batch from the engine's pools with the two nearest numbers of instances: each
// instance takes the same memory. With only one number, a part counts as that of its instances.
func (p *Pool) beside(batch int) (bytes float64, ok bool) {
	list := p.neighbours()
	if len(list) == 0 {
		return 0, false
	}
	q := list[0]
	first := along(q.points(), batch)
	each := first * p.engine.each / float64(q.instances)
	if len(list) > 1 {
		each = max(0, (along(list[1].points(), batch)-first)/float64(list[1].instances-q.instances))
	}
	return max(first+each*float64(p.instances-q.instances), first/float64(q.instances+1)), true
}

// typical returns the geometric mean of a batch's memory in the pools with observations; false
// without one.
func (m *Model) typical(batch int) (bytes float64, ok bool) {
	sum, count := 0.0, 0.0
	for _, p := range m.order {
		if line := p.points(); len(line) > 0 {
			sum, count = sum+math.Log(along(line, batch)), count+1
		}
	}
	return math.Exp(sum / max(count, 1)), count > 0
}
