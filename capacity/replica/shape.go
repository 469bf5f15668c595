package replica

import (
	"maps"
	"math"
	"slices"

	"tuner/report/result"
	"tuner/search/queuesim"
)

// busyClients is the number of clients for each instance with which a closed loop keeps all instances busy.
const busyClients = 2

// shaped gives the curve the sizes that the server executed in measured loads, and the times of batches the shape that these
// have. A service trial sees a size for a fraction of a second, at the speed that the machine has then. A
// load sees it for longer.
//
// The logarithm of a measured time over the curve's is a mean over its time, in which the speed changes as often as its time
// constant fits in twice. The curve's own time counts as one such time. What all sizes have in common is the
// machine's speed in another minute: fit finds the level.
func shaped(c queuesim.ServiceCurve, points []result.Point, b queuesim.Batcher) queuesim.ServiceCurve {
	type measured struct{ seconds, executions float64 }
	bySize := map[int]measured{}
	for _, p := range points {
		if p.Load.Concurrency < busyClients*b.Instances {
			continue
		}
		for _, k := range p.Batches {
			if n := float64(k.Executions); k.Size >= 1 && k.Size <= b.MaxBatch && n > 0 && k.Seconds > 0 && k.Seconds < longestBatch {
				bySize[k.Size] = measured{bySize[k.Size].seconds + n*k.Seconds, bySize[k.Size].executions + n}
			}
		}
	}
	level, all := 0.0, 0.0
	logs := map[int]float64{}
	for size, m := range bySize {
		logs[size] = math.Log(m.seconds / m.executions / c.Time(size, b.Instances, b.Instances))
		level, all = level+m.seconds*logs[size], all+m.seconds
	}
	if all == 0 {
		return c
	}
	var sizes []int
	var shape []float64
	for _, size := range slices.Sorted(maps.Keys(bySize)) {
		m := bySize[size]
		once := 2 * max(c.Speed.Time, m.seconds/m.executions)
		sizes, shape = append(sizes, size), append(shape, (logs[size]-level/all)*m.seconds/(m.seconds+once))
	}
	return reshaped(c, sizes, shape, b.Instances)
}

// reshaped multiplies the times under load by a factor for each size, whose logarithms are known for some sizes. Between
// these they are linear in the logarithm of the size, and beyond them constant. The curve has those sizes, too.
func reshaped(c queuesim.ServiceCurve, known []int, logs []float64, instances int) queuesim.ServiceCurve {
	sizes := slices.Concat(c.Sizes, known)
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	alone, crowded := make([]float64, len(sizes)), make([]float64, len(sizes))
	longest := 0.0
	for i, size := range sizes {
		longest = max(longest, c.Time(size, instances, instances)*math.Exp(between(known, logs, size))) // a larger batch never takes less time
		alone[i], crowded[i] = c.Time(size, 1, instances), longest
	}
	if c.Sizes = sizes; c.Crowded == nil {
		c.Alone = crowded
	} else {
		c.Alone, c.Crowded = alone, crowded
	}
	return c
}

// between interpolates values at sizes on the logarithm of the size.
func between(sizes []int, values []float64, size int) float64 {
	i, isKnown := slices.BinarySearch(sizes, size)
	switch {
	case isKnown || i == 0:
		return values[i]
	case i == len(sizes):
		return values[i-1]
	}
	share := math.Log(float64(size)/float64(sizes[i-1])) / math.Log(float64(sizes[i])/float64(sizes[i-1]))
	return values[i-1] + share*(values[i]-values[i-1])
}
