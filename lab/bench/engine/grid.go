package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tuner/lab/bench/sidebyside"
	"tuner/measure"
)

// variants returns MiniLM in both precisions, with two instances of one thread and one instance of
// two.
func variants() []launch {
	var all []launch
	for _, precision := range []struct{ name, file string }{{"fp32", fileFP32}, {"int8", fileInt8}} {
		for _, s := range []setting{{Instances: 2, Threads: 1, MaxBatch: 16}, {Instances: 1, Threads: 2, MaxBatch: 16}} {
			all = append(all, launch{name: precision.name, file: precision.file, of: s})
		}
	}
	return all
}

// grid compares fresh launches in closed loops from one request in flight to saturation.
func (b *bench) grid(ctx context.Context) error {
	o := b.or(5, 600*time.Millisecond)
	return b.each(ctx, o, "closed loops, perf_analyzer", "≥ 1.0", func(l launch) (demands []demand, err error) {
		for _, protocol := range []string{sidebyside.HTTP, sidebyside.GRPC} {
			for _, concurrency := range []int{1, 4, 8, 16, 32} {
				demands = append(demands, b.closed(protocol, concurrency, o.window))
			}
		}
		return demands, nil
	})
}

// offered compares fresh launches in open loops, at shares of what Triton answers at most. The
// requests come as a Poisson process.
func (b *bench) offered(ctx context.Context) error {
	o := b.or(3, 6*time.Second)
	return b.each(ctx, o, "Poisson arrivals, tuner's load", "", func(l launch) (demands []demand, err error) {
		highest, err := b.highest(ctx, l)
		if err != nil {
			return nil, err
		}
		for _, protocol := range []string{sidebyside.HTTP, sidebyside.GRPC} {
			for _, share := range []float64{0.3, 0.6, 0.8} {
				offer := measure.Load{RequestRate: math.Round(share * highest), BatchSize: 1}
				demands = append(demands, demand{fmt.Sprintf("%s, %v", protocol, offer), ownLoad(protocol, minilmRequest(), offer, o.window)})
			}
		}
		return demands, nil
	})
}

// each compares fresh launches of each variant under its loads. goal is that of the throughput's ratios.
func (b *bench) each(ctx context.Context, o options, loads, goal string, demands func(launch) ([]demand, error)) error {
	if err := b.quantized(ctx); err != nil {
		return err
	}
	var lines []comparison
	var failed error
	for _, l := range variants() {
		var err error
		if l.demands, err = demands(l); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		rounds, err := b.fresh(ctx, l, o)
		failed = errors.Join(failed, err)
		lines = append(lines, linesOf(l, rounds, goal)...)
	}
	failed = errors.Join(failed, b.report("### Fresh launches in turn: MiniLM, "+loads, lines))
	return errors.Join(failed, b.summary(lines))
}

// highest returns the throughput of a real Triton at saturation, in inferences per second.
func (b *bench) highest(ctx context.Context, l launch) (float64, error) {
	repository, err := b.repository(l.file, l.of.config())
	if err != nil {
		return 0, err
	}
	s, err := b.startTriton(ctx, repository)
	if err != nil {
		return 0, err
	}
	told, err := b.closed(sidebyside.GRPC, saturationConcurrency, time.Second).run(ctx, s)
	return told.Throughput, errors.Join(err, s.stop())
}

// linesOf returns the figures of a variant at each load that has complete rounds. The latencies beyond p99
// are those of tuner's own load; a window of fewer than 1,000 requests has its longest there.
func linesOf(l launch, rounds [][]round, goal string) []comparison {
	var lines []comparison
	for k, w := range l.demands {
		if len(rounds[k]) == 0 {
			continue
		}
		name := fmt.Sprintf("%v, %s: ", l, w.name)
		lines = append(lines,
			comparison{name + "throughput", "infer/s", rounds[k], throughput, 1, goal},
			comparison{name + "p50 latency", "ms", rounds[k], p50, 1e3, ""},
			comparison{name + "p99 latency", "ms", rounds[k], p99, 1e3, ""})
		if rounds[k][0].Tuner.P999 > 0 {
			lines = append(lines, comparison{name + "p99.9 latency", "ms", rounds[k], p999, 1e3, ""})
		}
	}
	return lines
}

// summary prints, for each kind of figure, the geometric mean of the lines' ratios, the smallest and the
// largest.
func (b *bench) summary(lines []comparison) error {
	ratios := map[string][]float64{}
	var kinds []string
	for _, c := range lines {
		kind := c.kind()
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		ratios[kind] = append(ratios[kind], c.line().Ratio().Value)
	}
	text := ""
	for _, kind := range kinds {
		r := ratios[kind]
		sum := 0.0
		for _, ratio := range r {
			sum += math.Log(ratio)
		}
		text += fmt.Sprintf("\n%s: tuner / Triton %.3f in the mean of %d loads, %.2f to %.2f\n", kind, math.Exp(sum/float64(len(r))), len(r), slices.Min(r), slices.Max(r))
	}
	return sidebyside.Print(b.out, text)
}
