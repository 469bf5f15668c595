package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tuner/internal/hostinfo"
	"tuner/lab/bench/sidebyside"
)

// launch is a model with its setting, and what each launch of it is measured under.
type launch struct {
	name    string // of the model file, in tables
	file    string
	of      setting
	demands []demand
}

func (l launch) String() string { return fmt.Sprintf("%s, %v", l.name, l.of) }

// demand is a load.
type demand struct {
	name string
	run  client
}

// closed returns a closed loop of perf_analyzer.
func (b *bench) closed(protocol string, concurrency int, window time.Duration) demand {
	return demand{fmt.Sprintf("%s, concurrency %d", protocol, concurrency), b.perfAnalyzer(minilm, protocol, concurrency, window)}
}

// launches compares servers that have just been launched, one at a time. What a launch decides for
// the life of a process, such as the pages in which a model's weights lie, is part of the scatter of
// its rounds. In the other benchmarks it is a constant of both sides.
func (b *bench) launches(ctx context.Context) error {
	o := b.or(5, 600*time.Millisecond)
	closed := func(protocol string, concurrency int) demand { return b.closed(protocol, concurrency, o.window) }
	var failed error
	for _, l := range []launch{
		{"fp32", fileFP32, setting{Instances: 1, Threads: 1, MaxBatch: 16}, []demand{closed(sidebyside.HTTP, 1), closed(sidebyside.GRPC, 1)}},
		{"fp32", fileFP32, setting{Instances: 2, Threads: 1, MaxBatch: 16},
			[]demand{closed(sidebyside.HTTP, 8), closed(sidebyside.GRPC, 1), closed(sidebyside.GRPC, 32)}},
	} {
		rounds, err := b.fresh(ctx, l, o)
		failed = errors.Join(failed, err)
		var lines []comparison
		for k, w := range l.demands {
			if len(rounds[k]) == 0 {
				continue
			}
			lines = append(lines,
				comparison{w.name + ": throughput", "infer/s", rounds[k], throughput, 1, "≥ 1.1"},
				comparison{w.name + ": p99 latency", "ms", rounds[k], p99, 1e3, ""},
				comparison{w.name + ": time inside ONNX Runtime", "ms", rounds[k], infer, 1e3, ""},
				comparison{w.name + ": mean batch", "rows", rounds[k], meanBatch, 1, ""},
				comparison{w.name + ": resident memory", "MiB", rounds[k], memory, 1.0 / (1 << 20), ""})
		}
		failed = errors.Join(failed, b.report(fmt.Sprintf("### Fresh launches in turn: MiniLM %v, perf_analyzer", l), lines))
	}
	return failed
}

// fresh launches both servers in turn, and measures each launch under all its loads. It returns the
// rounds of each load, with an error the complete ones.
func (b *bench) fresh(ctx context.Context, l launch, o options) ([][]round, error) {
	rounds := make([][]round, len(l.demands))
	repository, err := b.repository(l.file, l.of.config())
	if err != nil {
		return rounds, err
	}
	for i := range o.rounds {
		both, err := b.launchRound(ctx, repository, i, l, o.window)
		if err != nil {
			return rounds, fmt.Errorf("%v, round %d: %w", l, i, err)
		}
		for k := range both {
			rounds[k] = append(rounds[k], both[k])
		}
	}
	return rounds, nil
}

// launchRound launches and measures both servers, the tuner first in even rounds. It returns a round
// of each load.
func (b *bench) launchRound(ctx context.Context, repository string, number int, l launch, window time.Duration) ([]round, error) {
	both := make([]round, len(l.demands))
	type turn struct {
		start func(ctx context.Context, repository string, args ...string) (*side, error)
		into  func(*round) *figures
	}
	order := []turn{
		{b.startTuner, func(r *round) *figures { return &r.Tuner }},
		{b.startTriton, func(r *round) *figures { return &r.Triton }},
	}
	if number%2 == 1 {
		slices.Reverse(order)
	}
	for _, t := range order {
		s, err := t.start(ctx, repository)
		if err != nil {
			return nil, err
		}
		measured, err := b.measureLaunch(ctx, s, l, window)
		if err = errors.Join(err, s.stop()); err != nil {
			return nil, err
		}
		for k := range measured {
			*t.into(&both[k]) = measured[k]
		}
	}
	return both, nil
}

// measureLaunch measures a server under each load. A load that forms batches of all sizes comes
// first, as a warm-up.
func (b *bench) measureLaunch(ctx context.Context, s *side, l launch, window time.Duration) ([]figures, error) {
	if _, err := b.closed(sidebyside.GRPC, saturationConcurrency, window).run(ctx, s); err != nil {
		return nil, err
	}
	var all []figures
	for _, w := range l.demands {
		measured, err := measureSide(ctx, s, nil, w.run)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", s.name, w.name, err)
		}
		use, err := hostinfo.Process(s.server.PID)
		if err != nil {
			return nil, err
		}
		measured.Memory = float64(use.RSS)
		all = append(all, measured)
		fmt.Fprintf(b.messages, "%v: %s, %s: %.2f infer/s, p99 %.2f ms, %.2f rows a batch\n",
			l, s.name, w.name, measured.Throughput, 1e3*measured.P99, measured.Batch)
	}
	return all, nil
}
