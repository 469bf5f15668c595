package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tuner/lab/bench/sidebyside"
)

// saturationConcurrency keeps two instances of batch 16 busy, or one with its next batch waiting.
const saturationConcurrency = 32

// saturation compares the throughput of MiniLM under permanent load.
func (b *bench) saturation(ctx context.Context) error {
	if err := b.quantized(ctx); err != nil {
		return err
	}
	var lines []comparison
	var failed error
	for _, l := range variants() {
		more, err := b.saturate(ctx, l)
		lines = append(lines, more...)
		if err != nil && ctx.Err() == nil {
			failed = errors.Join(failed, fmt.Errorf("%v: %w", l, err))
		}
	}
	title := fmt.Sprintf("### Saturation: MiniLM, %d tokens, concurrency %d, gRPC (instances × threads)", sequence, saturationConcurrency)
	return errors.Join(context.Cause(ctx), failed, b.report(title, lines))
}

// saturate compares one variant, with perf_analyzer and with tuner's own load generator. With an
// error it also returns the complete lines.
func (b *bench) saturate(ctx context.Context, l launch) (lines []comparison, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	o := b.or(10, 3*time.Second)
	c, err := b.serve(ctx, l.file, l.of)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	for _, way := range []struct {
		name string
		run  client
	}{
		{"perf_analyzer", b.perfAnalyzer(minilm, sidebyside.GRPC, saturationConcurrency, o.window/3)},
		{"tuner's load", closedLoop(minilmRequest(), saturationConcurrency, o.window)},
	} {
		rounds, err := c.alternate(ctx, o.rounds, way.run)
		if err != nil {
			return lines, fmt.Errorf("%s: %w", way.name, err)
		}
		name := fmt.Sprintf("%v, %s", l, way.name)
		lines = append(lines,
			comparison{name + ": throughput", "infer/s", rounds, throughput, 1, "≥ 1.03"},
			comparison{name + ": p99 latency", "ms", rounds, p99, 1e3, ""},
			comparison{name + ": server CPU per 1,000 requests", "s", rounds, cpuPerThousand, 1, ""},
			comparison{name + ": mean batch", "rows", rounds, meanBatch, 1, ""})
		fmt.Fprintf(b.messages, "saturation: %s done\n", name)
	}
	return lines, nil
}
