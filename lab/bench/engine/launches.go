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

// launch is a setting, and what each launch of it is measured under.
type launch struct {
	of      setting
	demands []demand
}

func launched() []launch {
	return []launch{
		{setting{Instances: 1, Threads: 1, MaxBatch: 16}, []demand{{sidebyside.HTTP, 1}, {sidebyside.GRPC, 1}}},
		{setting{Instances: 2, Threads: 1, MaxBatch: 16}, []demand{{sidebyside.HTTP, 8}, {sidebyside.GRPC, 1}, {sidebyside.GRPC, 32}}},
	}
}

// demand is a load of perf_analyzer.
type demand struct {
	protocol    string
	concurrency int
}

func (w demand) String() string { return fmt.Sprintf("%s, concurrency %d", w.protocol, w.concurrency) }

// launches compares servers that have just been launched, one at a time. What a launch decides for
// the life of a process, such as the pages in which a model's weights lie, is part of the scatter of
// its rounds. In the other benchmarks it is a constant of both sides.
func (b *bench) launches(ctx context.Context) error {
	o := b.or(5, 600*time.Millisecond)
	var failed error
	for _, l := range launched() {
		repository, err := b.repository(fileFP32, l.of.config())
		if err != nil {
			return err
		}
		rounds := make([][]round, len(l.demands))
		for i := range o.rounds {
			if err := b.launchRound(ctx, repository, i, l.demands, o.window, rounds); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%v, round %d: %w", l.of, i, err))
				break
			}
		}
		if len(rounds[0]) == 0 {
			continue
		}
		var lines []comparison
		for k, w := range l.demands {
			lines = append(lines,
				comparison{w.String() + ": throughput", "infer/s", rounds[k], throughput, 1, "≥ 1.1"},
				comparison{w.String() + ": p99 latency", "ms", rounds[k], p99, 1e3, ""},
				comparison{w.String() + ": time inside ONNX Runtime", "ms", rounds[k], infer, 1e3, ""},
				comparison{w.String() + ": mean batch", "rows", rounds[k], meanBatch, 1, ""},
				comparison{w.String() + ": resident memory", "MiB", rounds[k], memory, 1.0 / (1 << 20), ""})
		}
		failed = errors.Join(failed, b.report(fmt.Sprintf("### Fresh launches in turn: MiniLM fp32, %v, perf_analyzer", l.of), lines))
	}
	return failed
}

// launchRound launches and measures both servers, the tuner first in even rounds, and appends to the
// rounds of each load.
func (b *bench) launchRound(ctx context.Context, repository string, number int, demands []demand, window time.Duration, rounds [][]round) error {
	both := make([]round, len(demands))
	type turn struct {
		start func(ctx context.Context, repository string) (*side, error)
		into  func(*round) *figures
	}
	order := []turn{
		{b.startTuner, func(r *round) *figures { return &r.Tuner }},
		{b.startTriton, func(r *round) *figures { return &r.Triton }},
	}
	if number%2 == 1 {
		slices.Reverse(order)
	}
	for _, l := range order {
		s, err := l.start(ctx, repository)
		if err != nil {
			return err
		}
		for k, w := range demands {
			var measured figures
			if measured, err = b.measureLaunch(ctx, s, w, window); err != nil {
				break
			}
			*l.into(&both[k]) = measured
			fmt.Fprintf(b.messages, "launches: %s, %v: %.2f infer/s, %.2f ms inside ONNX Runtime\n", s.name, w, measured.Throughput, 1e3*measured.Infer)
		}
		if err = errors.Join(err, s.stop()); err != nil {
			return err
		}
	}
	for k := range demands {
		rounds[k] = append(rounds[k], both[k])
	}
	return nil
}

// measureLaunch warms a load up, and measures it.
func (b *bench) measureLaunch(ctx context.Context, s *side, w demand, window time.Duration) (figures, error) {
	if _, err := b.perfAnalyzer(minilm, w.protocol, w.concurrency, window)(ctx, s); err != nil {
		return figures{}, err
	}
	measured, err := measureSide(ctx, s, nil, b.perfAnalyzer(minilm, w.protocol, w.concurrency, window))
	if err != nil {
		return figures{}, err
	}
	use, err := hostinfo.Process(s.server.PID)
	measured.Memory = float64(use.RSS)
	return measured, err
}
