package queuesim

import (
	"slices"

	"tuner/measure"
)

// ServiceCurve is the time of a batch on the instances of one pool, as service trials measured it.
// All times are positive.
//
// Without any spread, several instances in a closed loop fall into a cycle, and the choice of the
// cycle is arbitrary. Take 12 clients and two instances whose batches all take the same time:
// throughput is a tenth below that at a spread of 0.01 or of 0.1. No real server does this.
type ServiceCurve struct {
	Sizes []int // batch sizes, ascending, ≥ 1; at least one
	// Alone: s, time of a batch of Sizes[i] while all other instances are idle: compute input +
	// infer + output
	Alone   []float64
	Crowded []float64 // s, the same with all instances busy; nil with one instance
	// Kinds are the requests of different shapes, which never share a batch; nil for one shape. The
	// times above are then the means over the shares.
	Kinds []Kind
	// Spread: standard deviation of the logarithm of a batch's time, from batch to batch; not 0 for
	// a real server
	Spread   float64
	Speed    measure.Speed // of the machine; the zero value: the times are those of any instant
	Overhead float64       // s per request outside queue and instance, alone on the machine: client, wire, front end

	// These compete with the instances for the processors if clients and front end are on the same
	// machine.

	// Path: s of processor time per request of the overhead, under load; 0: the overhead takes no
	// processor time
	Path float64
	// PathSpread: standard deviation of the logarithm of a request's processor time on the path.
	// Requests then pass at the same time, as the goroutines of front end and clients do. 0: they
	// pass in order, each in the same time
	PathSpread float64
	Cores      int // of the machine
	Threads    int // cores that an instance computes on; 0: none, as on a GPU
}

// Kind is the requests of one shape.
type Kind struct {
	Share          float64   // of all requests; the shares sum to 1
	Alone, Crowded []float64 // s, as those of the curve, for batches of this kind
}

// timeOf returns the seconds of a batch of a kind, as Time does.
func (c ServiceCurve) timeOf(kind, batch, busy, instances int) float64 {
	if len(c.Kinds) > 0 {
		c.Alone, c.Crowded = c.Kinds[kind].Alone, c.Kinds[kind].Crowded
	}
	return c.Time(batch, busy, instances)
}

// Time returns the seconds that a batch takes while the given number of instances is busy,
// including its own. It is linear between the measured sizes and between alone and crowded, and
// affine beyond.
func (c ServiceCurve) Time(batch, busy, instances int) float64 {
	alone := interpolate(c.Sizes, c.Alone, batch)
	if len(c.Crowded) == 0 {
		return alone
	}
	return crowd(alone, interpolate(c.Sizes, c.Crowded, batch), busy, instances)
}

// MeanTime returns the mean time in seconds of batches of a mean size: exact for two neighbouring sizes,
// and on a line. busy and instances are as in Time.
func (c ServiceCurve) MeanTime(batch float64, busy, instances int) float64 {
	below := int(max(batch, 1))
	short := c.Time(below, busy, instances)
	return short + (max(batch, 1)-float64(below))*(c.Time(below+1, busy, instances)-short)
}

// Computed returns the processor time in seconds that batches of a mean size take on their instance, while
// all instances together execute so many per second.
//
// An instance takes longer beside others. As long as there are cores for all, it computes for all of that
// time: it shares caches and memory, or a core's other hardware thread. Where the instances ask for more
// cores than there are, it waits for the rest. It never computes less than alone.
func (c ServiceCurve) Computed(batch, rate float64, instances int) float64 {
	alone := c.MeanTime(batch, 1, instances)
	seconds, busy := alone, 1.0
	if instances > 1 {
		// An instance is busy for a share s of the time, with batches of alone + (crowded − alone)s. With its
		// batches per second, that is an equation for s.
		each, longer := rate/float64(instances), c.MeanTime(batch, instances, instances)-alone
		share := 1.0
		if free := 1 - each*longer; free > 0 {
			share = min(1, each*alone/free)
		}
		seconds, busy = alone+longer*share, 1+share*float64(instances-1)
	}
	if asked := busy * float64(c.Threads); asked > float64(max(c.Cores, 1)) {
		seconds *= float64(max(c.Cores, 1)) / asked
	}
	return float64(c.Threads) * max(alone, seconds)
}

// crowd returns the time with some instances busy.
func crowd(alone, crowded float64, busy, instances int) float64 {
	if instances < 2 {
		return alone
	}
	return alone + (crowded-alone)*float64(busy-1)/float64(instances-1)
}

// interpolate returns the time of a batch. Above the measured sizes it extends the line of the
// nearest two without falling. Below them it extends it too, but not below the smallest size's time
// per inference. With a single size the time is proportional above it, since no measurement shows a
// gain from batching, and constant below.
func interpolate(sizes []int, times []float64, batch int) float64 {
	last := len(sizes) - 1
	i, exact := slices.BinarySearch(sizes, batch)
	switch {
	case exact:
		return times[i]
	case last == 0:
		return times[0] * max(1, float64(batch)/float64(sizes[0]))
	case i == 0:
		share := times[0] * float64(batch) / float64(sizes[0])
		return max(share, times[0]-slope(sizes, times, 0)*float64(sizes[0]-batch))
	case i > last:
		return times[last] + slope(sizes, times, last-1)*float64(batch-sizes[last])
	}
	return times[i-1] + (times[i]-times[i-1])*float64(batch-sizes[i-1])/float64(sizes[i]-sizes[i-1])
}

// slope returns the time per inference from size i to size i+1, at least 0.
func slope(sizes []int, times []float64, i int) float64 {
	return max(0, (times[i+1]-times[i])/float64(sizes[i+1]-sizes[i]))
}
