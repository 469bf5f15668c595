package queuesim

import "slices"

// Curve is what one pool's instances take for a batch, as service trials measured it. All times are positive.
//
// Without any spread, several instances in a closed loop fall into a cycle, and into which one is arbitrary: with 12 clients and two
// instances whose batches all take the same, throughput is a tenth below that at a spread of 0.01, or of 0.1. No real server is like that.
type Curve struct {
	Sizes    []int     // of batches, ascending, ≥ 1; at least one
	Alone    []float64 // s, that a batch of Sizes[i] takes while all other instances are idle: compute input + infer + output
	Crowded  []float64 // s, the same with every instance busy; nil with one instance
	Spread   float64   // standard deviation of the logarithm of a batch's time, from batch to batch; not 0 for a real server
	Overhead float64   // s per request outside of queue and instance, alone on the machine: client, wire, front end

	// What competes with the instances for the processors, where clients and front end are on the same machine.
	Path    float64 // s of processor time that a request among many takes of the overhead; 0: what it takes does not matter
	Cores   int     // of the machine
	Threads int     // of them that an instance computes on; 0: none, as on a GPU
}

// Time is what a batch takes while so many of the instances are busy, its own among them, in seconds: linear between the measured
// sizes and between alone and crowded, affine beyond.
func (c Curve) Time(batch, busy, instances int) float64 {
	alone := interpolate(c.Sizes, c.Alone, batch)
	if len(c.Crowded) == 0 {
		return alone
	}
	return crowd(alone, interpolate(c.Sizes, c.Crowded, batch), busy, instances)
}

// crowd is the time with some instances busy.
func crowd(alone, crowded float64, busy, instances int) float64 {
	if instances < 2 {
		return alone
	}
	return alone + (crowded-alone)*float64(busy-1)/float64(instances-1)
}

// interpolate is the time of a batch. Beyond the sizes the line of the nearest two goes on, but not falling, and below them not under
// the smallest size's time per inference. With a single size the time is proportional above it, since nothing shows that
// batching pays, and the same below.
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

// slope is the time per inference from size i to size i+1, at least 0.
func slope(sizes []int, times []float64, i int) float64 {
	return max(0, (times[i+1]-times[i])/float64(sizes[i+1]-sizes[i]))
}
