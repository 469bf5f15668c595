package guided

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search/posterior"
	"tuner/search/queuesim"
)

// outline is what bounds a pool's cells from above without a simulation.
type outline struct {
	sizes    []int
	times    []float64 // s, a batch of each size in an instance, all others idle
	most     []float64 // inferences/s at most, of batches up to each size
	overhead float64   // s per request
}

// upTo is the index of the batches that a largest batch allows.
func (o outline) upTo(batch int) int {
	i, _ := slices.BinarySearch(o.sizes, batch)
	return min(i, len(o.sizes)-1)
}

// newOutline is that of a pool with a service curve, without what it does at most: of the curve's sizes, and of larger ones that were left out or not
// asked for, where the curve goes on as a line.
func (g *Guided) newOutline(p *pool, c queuesim.Curve) outline {
	last := c.Sizes[len(c.Sizes)-1]
	beyond := slices.DeleteFunc(g.sizes(p.maxBatch), func(size int) bool { return size <= last || p.refuses(size) })
	o := outline{sizes: slices.Concat(c.Sizes, beyond), overhead: c.Overhead}
	for _, size := range o.sizes {
		o.times = append(o.times, c.Time(size, 1, p.instances))
	}
	o.most = make([]float64, len(o.sizes))
	return o
}

// measuredOutline is that of a pool whose service times are known: any number of its instances may be busy.
func (g *Guided) measuredOutline(p *pool) outline {
	c := p.curve
	o := g.newOutline(p, c)
	for i, size := range o.sizes {
		if i > 0 {
			o.most[i] = o.most[i-1]
		}
		for busy := 1; busy <= p.instances; busy++ {
			o.most[i] = max(o.most[i], float64(busy*size)/c.Time(size, busy, p.instances))
		}
		o.most[i] = min(o.most[i], g.passable())
	}
	return o
}

// expectedOutline is that of a pool of which one instance's curve is known or predicted. Together, instances do what they would do
// undisturbed but for their company, never less than one of them, and each no more than in a smaller pool.
func (g *Guided) expectedOutline(p *pool, c queuesim.Curve) outline {
	o := g.newOutline(p, c)
	for i, size := range o.sizes {
		most := g.undisturbed(p, c, size) * math.Exp(p.company.mean)
		for _, q := range p.engine.pools {
			if q.isReady() && q.instances < p.instances {
				part := float64(p.instances) / float64(q.instances)
				most = min(most, part*q.outline.most[q.outline.upTo(size)])
			}
		}
		o.most[i] = min(max(most, float64(size)/o.times[i]), g.passable())
		if i > 0 {
			o.most[i] = max(o.most[i], o.most[i-1])
		}
	}
	return o
}

// undisturbed is what the instances of a pool would do with batches of a size, in inferences/s, if nothing but the cores limited them.
func (g *Guided) undisturbed(p *pool, c queuesim.Curve, size int) float64 {
	useful := float64(p.instances)
	if cores := g.settings.Space.Facts.Cores; p.threads > 0 && cores > 0 {
		useful = min(useful, max(1, float64(cores)/float64(p.threads)))
	}
	return useful * float64(size) / c.Time(size, 1, 1)
}

// demand is what a load asks of a pool: inferences in flight in a closed loop, or inferences/s.
func (g *Guided) demand(level float64) (inFlight, rate float64) {
	if g.settings.Space.Load.Rate {
		return math.Inf(1), level * float64(g.clientBatch())
	}
	return level * float64(g.clientBatch()), math.Inf(1)
}

// atBest fills in, for each model, the logarithm of what no cell surpasses at a load with batches up to sizes[i]: clients cannot send
// faster than they are answered, nor instances do more than their most, and by Little's law the requests in flight wait accordingly.
// A percentile above the median is no less than the mean, but for rare shapes.
func (g *Guided) atBest(o outline, i int, level float64, logs []float64) {
	lone := o.times[0] + o.overhead
	inFlight, rate := g.demand(level)
	throughput := min(o.most[i], inFlight/lone, rate)
	wait := lone
	if !math.IsInf(inFlight, 1) {
		wait = max(lone, inFlight/o.most[i])
	}
	for k, m := range g.models {
		switch {
		case m.isDropped:
			logs[k] = g.plain(m.metric, o, level)
		case m.isRate():
			logs[k] = g.ofRate(m.metric, throughput)
		case m.metric == measure.QueueTime:
			logs[k] = posterior.Log(m.metric, 0)
		case m.quantile > 0 && m.quantile <= 0.5:
			logs[k] = math.Log(lone)
		case m.isPredicted:
			logs[k] = math.Log(wait)
		default:
			logs[k] = m.centre()
		}
	}
}

// plain is the logarithm of what stands for the prediction of a metric whose predictions have turned out wrong: in each pool the same
// throughput, as far as the clients ask for it, and the latency that it makes by Little's law.
func (g *Guided) plain(metric measure.Metric, o outline, level float64) float64 {
	inFlight, rate := g.demand(level)
	most := o.most[len(o.most)-1]
	lone := o.times[0] + o.overhead
	if metric == measure.Throughput || metric == measure.Cost {
		return g.ofRate(metric, min(most, inFlight/lone, rate))
	}
	if math.IsInf(inFlight, 1) {
		return math.Log(lone)
	}
	return math.Log(max(lone, inFlight/most))
}
