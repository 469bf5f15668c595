package main

import (
	"fmt"
	"io"
	"strings"

	"tuner/lab/bench/sidebyside"
	"tuner/measure"
	"tuner/search/queuesim"
)

// What is simulated of a model whose batches gain little, on some cores: an instance with all of them as
// threads, against as many instances of one thread.
const (
	aloneSeconds  = 0.010 // of an inference on one core
	rowShare      = 0.9   // of it for each further inference of a batch
	largestBatch  = 8
	timeSpread    = 0.05
	manyRequests  = 60_000
	seedOfThreads = 1
)

func efficiencies() []float64 { return []float64{0.6, 0.75, 0.9} }

func busyShares() []float64 {
	return []float64{0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}
}

// threads prints how much sooner one instance answers 99 % of the requests: its threads speed it up, and its
// requests wait for each other. That bounds what changes between both can gain.
func threads(out io.Writer) error {
	var b strings.Builder
	fmt.Fprint(&b, "p99 of instances of one thread over that of one instance, by the load as a share of the instances' capacity without batches\n\n| cores | efficiency of threads |")
	for _, share := range busyShares() {
		fmt.Fprintf(&b, " %g |", share)
	}
	fmt.Fprintf(&b, "\n|---|---|%s\n", strings.Repeat("---|", len(busyShares())))
	for _, cores := range []int{2, 8} {
		for _, efficiency := range efficiencies() {
			fmt.Fprintf(&b, "| %d | %g |", cores, efficiency)
			for _, share := range busyShares() {
				load := measure.Load{RequestRate: share * float64(cores) / aloneSeconds, BatchSize: 1}
				fmt.Fprintf(&b, " %.2f |", p99(load, cores, 1)/p99(load, 1, float64(cores)*efficiency))
			}
			fmt.Fprintln(&b)
		}
	}
	return sidebyside.Print(out, b.String())
}

// p99 returns the 99th percentile in s of instances, each so many times as fast as one core.
func p99(load measure.Load, instances int, speed float64) float64 {
	full := aloneSeconds * (1 + rowShare*(largestBatch-1))
	curve := queuesim.ServiceCurve{Sizes: []int{1, largestBatch}, Alone: []float64{aloneSeconds / speed, full / speed}, Spread: timeSpread}
	batcher := queuesim.Batcher{Instances: instances, MaxBatch: largestBatch, Dynamic: true}
	return queuesim.Simulate(batcher, curve, load, queuesim.Options{Requests: manyRequests, Seed: seedOfThreads}).P99
}
