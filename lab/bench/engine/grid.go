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
	"tuner/measure/stats"
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
	if err := b.quantized(ctx); err != nil {
		return err
	}
	o := b.or(5, 600*time.Millisecond)
	var lines []comparison
	var failed error
	for _, l := range variants() {
		for _, protocol := range []string{sidebyside.HTTP, sidebyside.GRPC} {
			for _, concurrency := range []int{1, 4, 8, 16, 32} {
				l.demands = append(l.demands, b.closed(protocol, concurrency, o.window))
			}
		}
		rounds, err := b.fresh(ctx, l, o)
		failed = errors.Join(failed, err)
		lines = append(lines, linesOf(l, rounds, "≥ 1.0")...)
	}
	failed = errors.Join(failed, b.report("### Fresh launches in turn: MiniLM, closed loops, perf_analyzer", lines))
	return errors.Join(failed, b.summary(lines))
}

// offered compares fresh launches in open loops, at shares of what Triton answers at most. The
// requests come as a Poisson process.
func (b *bench) offered(ctx context.Context) error {
	if err := b.quantized(ctx); err != nil {
		return err
	}
	o := b.or(3, 6*time.Second)
	var lines []comparison
	var failed error
	for _, l := range variants() {
		highest, err := b.highest(ctx, l)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		for _, protocol := range []string{sidebyside.HTTP, sidebyside.GRPC} {
			for _, share := range []float64{0.3, 0.6, 0.8} {
				offer := measure.Load{RequestRate: math.Round(share * highest), BatchSize: 1}
				l.demands = append(l.demands, demand{fmt.Sprintf("%s, %v", protocol, offer), ownLoad(protocol, minilmRequest(), offer, o.window)})
			}
		}
		rounds, err := b.fresh(ctx, l, o)
		failed = errors.Join(failed, err)
		lines = append(lines, linesOf(l, rounds, "")...)
	}
	failed = errors.Join(failed, b.report("### Fresh launches in turn: MiniLM, Poisson arrivals, tuner's load", lines))
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
	ratios, logs := map[string][]float64{}, map[string][]float64{}
	var kinds []string
	for _, c := range lines {
		kind := c.kind()
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		ratios[kind] = append(ratios[kind], c.line().Ratio().Value)
		logs[kind] = append(logs[kind], math.Log(c.line().Ratio().Value))
	}
	text := ""
	for _, kind := range kinds {
		r := ratios[kind]
		text += fmt.Sprintf("\n%s: tuner / Triton %.3f in the mean of %d loads, %.2f to %.2f\n", kind, math.Exp(stats.Mean(logs[kind]).Value), len(r), slices.Min(r), slices.Max(r))
	}
	return sidebyside.Print(b.out, text)
}
