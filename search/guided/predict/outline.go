package predict

import (
	"math"
	"slices"

	"tuner/search/guided/pools"
	"tuner/search/queuesim"
)

// Outline is what bounds a pool's cells from above without a simulation.
type Outline struct {
	Sizes    []int     // of batches, ascending
	Seconds  []float64 // that a batch of each size takes in an instance, all others idle
	Most     []float64 // inferences/s at most, of batches up to each size
	Overhead float64   // s per request
}

// UpTo is the place of the batches that a largest batch allows.
func (o Outline) UpTo(batch int) int {
	i, _ := slices.BinarySearch(o.Sizes, batch)
	return min(i, len(o.Sizes)-1)
}

// Largest is the place of the largest batches.
func (o Outline) Largest() int { return len(o.Sizes) - 1 }

// Lone is what a request takes that is alone on the server, in seconds.
func (o Outline) Lone() float64 { return o.Seconds[0] + o.Overhead }

// newOutline is that of a pool with a service curve, without what it does at most: of the curve's sizes, and of larger ones
// that were left out or not asked for, where the curve goes on as a line.
func (x *Predictor) newOutline(p *pools.Pool, c queuesim.Curve) Outline {
	last := c.Sizes[len(c.Sizes)-1]
	beyond := slices.DeleteFunc(x.pools.Sizes(p), func(size int) bool { return size <= last || p.Refuses(size) })
	o := Outline{Sizes: slices.Concat(c.Sizes, beyond), Overhead: c.Overhead}
	for _, size := range o.Sizes {
		o.Seconds = append(o.Seconds, c.Time(size, 1, p.Instances()))
	}
	o.Most = make([]float64, len(o.Sizes))
	return o
}

// measuredOutline is that of a pool whose service times are known: any number of its instances may be busy.
func (x *Predictor) measuredOutline(p *pools.Pool, c queuesim.Curve) Outline {
	o := x.newOutline(p, c)
	for i, size := range o.Sizes {
		if i > 0 {
			o.Most[i] = o.Most[i-1]
		}
		for busy := 1; busy <= p.Instances(); busy++ {
			o.Most[i] = max(o.Most[i], float64(busy*size)/c.Time(size, busy, p.Instances()))
		}
		o.Most[i] = min(o.Most[i], x.passable())
	}
	return o
}

// ExpectedOutline is that of a pool of which one instance's curve is known or predicted. Together, instances do what they
// would do undisturbed but for their contention, never less than one of them, and each no more than in a smaller pool.
func (x *Predictor) ExpectedOutline(p *pools.Pool, c queuesim.Curve) Outline {
	o := x.newOutline(p, c)
	for i, size := range o.Sizes {
		most := x.undisturbed(p, c, size) * math.Exp(x.contention[p].Mean)
		for _, q := range p.Engine().Pools() {
			if q.IsReady() && q.Instances() < p.Instances() {
				part, smaller := float64(p.Instances())/float64(q.Instances()), x.opened[q].outline
				most = min(most, part*smaller.Most[smaller.UpTo(size)])
			}
		}
		o.Most[i] = min(max(most, float64(size)/o.Seconds[i]), x.passable())
		if i > 0 {
			o.Most[i] = max(o.Most[i], o.Most[i-1])
		}
	}
	return o
}

// undisturbed is what the instances of a pool would do with batches of a size, in inferences/s, if nothing but the cores
// limited them.
func (x *Predictor) undisturbed(p *pools.Pool, c queuesim.Curve, size int) float64 {
	useful := float64(p.Instances())
	if p.Threads() > 0 && x.cores > 0 {
		useful = min(useful, max(1, float64(x.cores)/float64(p.Threads())))
	}
	return useful * float64(size) / c.Time(size, 1, 1)
}

// Bound is what no cell surpasses.
type Bound struct {
	Throughput float64 // inferences/s
	Wait       float64 // s, the least mean latency
	Lone       float64 // s, the least latency of any request
}

// Bound is what no cell with batches up to the i-th size surpasses at a load: clients cannot send faster than they are
// answered, nor instances do more than their most, and by Little's law the requests in flight wait accordingly.
func (x *Predictor) Bound(o Outline, i int, level float64) Bound {
	lone := o.Lone()
	inFlight, rate := x.Demand(level)
	b := Bound{Throughput: min(o.Most[i], inFlight/lone, rate), Wait: lone, Lone: lone}
	if !math.IsInf(inFlight, 1) {
		b.Wait = max(lone, inFlight/o.Most[i])
	}
	return b
}
