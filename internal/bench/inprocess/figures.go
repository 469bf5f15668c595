package main

import (
	"fmt"
	"time"

	"tuner/stats"
)

// engineFigures are the engine's side of a round.
type engineFigures struct {
	throughput float64       // rows per second
	batch      float64       // mean rows of an execution
	inRun      float64       // share of the instances' time that is spent inside ONNX Runtime
	cpu        time.Duration // of the process for a request, clients and ONNX Runtime included
	mallocs    float64       // of the process for a request
}

// figures are one round.
type figures struct {
	raw    float64 // rows per second
	engine engineFigures
}

func (f figures) ratio() float64 { return f.engine.throughput / f.raw }

// line is the round in the format of Go's benchmarks, so that benchstat computes medians and intervals over the rounds.
func (f figures) line(name string) string {
	e := f.engine
	return fmt.Sprintf("Benchmark%s 1 %.1f raw-infer/s %.1f engine-infer/s %.4f engine/raw %.4f in-run %.2f rows/batch %d cpu-ns/request %.2f allocs/request",
		name, f.raw, e.throughput, f.ratio(), e.inRun, e.batch, e.cpu.Nanoseconds(), e.mallocs)
}

// summary is for people: the median ratio and its 95 % interval.
func summary(name string, rounds []figures) string {
	var raw, engine, ratios, shares []float64
	for _, f := range rounds {
		raw, engine = append(raw, f.raw), append(engine, f.engine.throughput)
		ratios, shares = append(ratios, f.ratio()), append(shares, f.engine.inRun)
	}
	paired := stats.PairedRatio(engine, raw)
	return fmt.Sprintf("%s: engine / raw %.3f [%.3f, %.3f], inside Run %.3f of the time", name,
		stats.Median(ratios), paired.Lo, paired.Hi, stats.Median(shares))
}
