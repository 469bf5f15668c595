package queuesim

import (
	"fmt"
	"testing"

	"tuner/measure"
)

// One prediction: 2,000 requests and the warm-up, batches of up to 8.
func BenchmarkSimulate(b *testing.B) {
	for _, instances := range []int{1, 2} {
		for _, clients := range []int{8, 64} {
			b.Run(fmt.Sprintf("instances=%d/clients=%d", instances, clients), func(b *testing.B) {
				b.ReportAllocs()
				var s Simulator
				c := ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.002, 0.009}, Crowded: []float64{0.003, 0.014}, Spread: 0.1, Overhead: 2e-4}
				for b.Loop() {
					s.Simulate(Batcher{Instances: instances, MaxBatch: 8, Dynamic: true}, c, measure.Load{Concurrency: clients, BatchSize: 1}, Options{})
				}
			})
		}
	}
}
