package predict

import (
	"math"
	"slices"

	"tuner/search/guided/pools"
	"tuner/search/queuesim"
)

// Outline holds upper bounds of a pool's cells that need no simulation.
type Outline struct {
	Sizes    []int     // of batches, ascending
	Seconds  []float64 // time of a batch of each size in an instance, while all others are idle
	Most     []float64 // highest throughput in inferences/s, for batches up to each size
	Overhead float64   // s per request
	Least    float64   // s, of a lone row of the smallest kind in an instance
}

// UpTo returns the index of the largest size within a largest batch.
func (o Outline) UpTo(batch int) int {
	i, _ := slices.BinarySearch(o.Sizes, batch)
	return min(i, len(o.Sizes)-1)
}

// Largest returns the index of the largest size.
func (o Outline) Largest() int { return len(o.Sizes) - 1 }

// Lone returns the time of a request that is alone on the server, in seconds.
func (o Outline) Lone() float64 { return o.Seconds[0] + o.Overhead }

// newOutline returns the outline of a pool with a service curve, without its highest throughputs.
// It has the curve's sizes, and larger ones that were omitted or not requested, for which the curve
// continues as a line.
func (x *Predictor) newOutline(p *pools.Pool, c queuesim.ServiceCurve) Outline {
	last := c.Sizes[len(c.Sizes)-1]
	beyond := slices.DeleteFunc(x.pools.Sizes(p), func(size int) bool { return size <= last || p.Refuses(size) })
	o := Outline{Sizes: slices.Concat(c.Sizes, beyond), Overhead: c.Overhead}
	for _, size := range o.Sizes {
		o.Seconds = append(o.Seconds, c.Time(size, 1, p.Instances()))
	}
	o.Most = make([]float64, len(o.Sizes))
	o.Least = o.Seconds[0] * x.leastShare()
	return o
}

// leastShare returns the elements of the smallest kind relative to the mean. A batch takes at least
// that share of the mean time: parts of it do not depend on the elements, and others grow with their
// square only where they are many.
func (x *Predictor) leastShare() float64 {
	least, mean := math.Inf(1), 0.0
	for _, k := range x.space.Facts.Mix {
		least, mean = min(least, k.Elements), mean+k.Share*k.Elements
	}
	if mean == 0 {
		return 1
	}
	return least / mean
}

// measuredOutline returns the outline of a pool with known service times: any number of its
// instances may be busy.
func (x *Predictor) measuredOutline(p *pools.Pool, c queuesim.ServiceCurve) Outline {
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

// ExpectedOutline returns the outline of a pool for which one instance's curve is known or
// predicted. All instances together have their undisturbed throughput times their contention. It is
// never less than that of one instance. No instance has more than in a smaller pool.
func (x *Predictor) ExpectedOutline(p *pools.Pool, c queuesim.ServiceCurve) Outline {
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

// undisturbed returns the throughput of a pool's instances with batches of a size, in inferences/s,
// if only the cores limited them.
func (x *Predictor) undisturbed(p *pools.Pool, c queuesim.ServiceCurve, size int) float64 {
	useful := float64(p.Instances())
	if p.Threads() > 0 && x.cores > 0 {
		useful = min(useful, max(1, float64(x.cores)/float64(p.Threads())))
	}
	return useful * float64(size) / c.Time(size, 1, 1)
}

// Bound holds bounds for all cells of a set.
type Bound struct {
	Throughput float64 // inferences/s
	Wait       float64 // s, the least mean latency
	Lone       float64 // s, the least latency of any request
}

// Bound returns the bounds of all cells with batches up to the i-th size at a load. Clients cannot
// send faster than they are answered, and instances cannot exceed their highest throughput. By
// Little's law the requests in flight then wait accordingly.
func (x *Predictor) Bound(o Outline, i int, level float64) Bound {
	lone := o.Lone()
	inFlight, rate := x.Demand(level)
	b := Bound{Throughput: min(o.Most[i], inFlight/lone, rate), Wait: lone, Lone: o.Least + o.Overhead}
	if !math.IsInf(inFlight, 1) {
		b.Wait = max(lone, inFlight/o.Most[i])
	}
	return b
}
