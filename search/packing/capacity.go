package packing

import (
	"slices"

	"tuner/search/queuesim"
)

// Capacity returns an upper bound of the requests/s that a configuration's instances answer, with any
// number of inferences in an execution and any number of busy instances. batchSize is the client batch.
func Capacity(b queuesim.Batcher, c queuesim.ServiceCurve, batchSize int) float64 {
	rows, instances, most := max(batchSize, 1), max(b.Instances, 1), 0.0
	sizes := []int{rows}
	if b.Dynamic { // between the curve's sizes an instance's throughput is monotone
		sizes = append(slices.DeleteFunc(slices.Clone(c.Sizes), func(size int) bool { return size < rows || size > b.MaxBatch }), rows, max(b.MaxBatch, rows))
	}
	for _, size := range sizes {
		for _, busy := range []int{1, instances} {
			most = max(most, float64(size*busy)/c.Time(size, busy, instances))
		}
	}
	return most / float64(rows)
}
