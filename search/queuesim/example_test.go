package queuesim_test

import (
	"fmt"
	"time"

	"tuner/measure"
	"tuner/search/queuesim"
)

// A batch of n takes 5 + n ms. Four clients never fill a batch of 8, so a queue delay only adds
// waiting time.
func Example() {
	curve := queuesim.ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.006, 0.013}, Overhead: 0.001}
	for _, delay := range []time.Duration{0, 20 * time.Millisecond} {
		r := queuesim.Simulate(queuesim.Batcher{Instances: 1, MaxBatch: 8, Dynamic: true, Delay: delay}, curve,
			measure.Load{Concurrency: 4, BatchSize: 1}, queuesim.Options{})
		fmt.Printf("delay %v: %.0f inferences/s, p99 %.0f ms, batches of %.1f\n", delay, r.Throughput, r.P99*1000, r.MeanBatch)
	}
	// Output:
	// delay 0s: 286 inferences/s, p99 14 ms, batches of 2.0
	// delay 20ms: 133 inferences/s, p99 30 ms, batches of 4.0
}
