// Turns measures the precision of comparisons between engines that take turns. Both engines serve
// the same configuration, so the true ratio of their throughputs is 1. The program prints the
// standard error of the logarithm of the measured ratio, by Little's law and by counting. It also
// draws short meetings from all rounds, and prints the number of those that would have found a
// difference. It judges nothing.
//
//	TUNER_ORT_LIBRARY="$(bin/tuner runtime install cpu)" go -C lab run ./bench/turns -time 100s
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"tuner/lab/bench/sidebyside"
	"tuner/lab/program"
	"tuner/measure"
	"tuner/runner"
	"tuner/runner/target"
)

// options are the flags.
type options struct {
	model       string
	inputs      string
	tuner       string
	library     string
	concurrency int
	time        time.Duration
	window      time.Duration
	rounds      int // of a block
	meetings    int
	meeting     int // rounds of a meeting
}

func main() { program.Main("turns", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.Path(&o.model, "model", "models/minilm.onnx", "model")
	f.StringVar(&o.inputs, "shape", "input_ids: [32], attention_mask: [32], token_type_ids: [32]",
		"shapes of its inputs, as in gate.yaml; empty: those of the model")
	f.Tuner(&o.tuner)
	f.Library(&o.library)
	f.IntVar(&o.concurrency, "concurrency", 8, "requests in flight")
	f.DurationVar(&o.time, "time", 100*time.Second, "time of all blocks; one that has begun is finished")
	f.DurationVar(&o.window, "window", 500*time.Millisecond, "length of a turn")
	f.IntVar(&o.rounds, "rounds", 30, "turns of each engine on a launch")
	f.IntVar(&o.meetings, "meetings", 200, "short meetings that are drawn")
	f.IntVar(&o.meeting, "meeting", 12, "rounds of a short meeting")
	f.Check(func() error {
		switch {
		case o.concurrency < 1 || o.time <= 0 || o.window <= 0 || o.meetings < 1:
			return errors.New("-concurrency, -time, -window and -meetings must be above 0")
		case o.rounds < 2 || o.meeting < 2 || o.meeting > o.rounds:
			return errors.New("-rounds and -meeting must be 2 or more, and a meeting no longer than a block")
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	return program.InFolder("", "bench-turns", func(dir string) error {
		job, err := jobOf(ctx, o, dir)
		if err != nil {
			return err
		}
		begin := time.Now()
		blocks, err := measureBlocks(ctx, o, job, messages)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, report(o, blocks, time.Since(begin)))
		return err
	})
}

// measureBlocks has two engines take turns on the same job, block after block, for the requested
// time.
func measureBlocks(ctx context.Context, o options, job runner.Job, messages io.Writer) ([]block, error) {
	r := runner.New(runner.Options{
		Launcher: target.Bundled{Binary: o.tuner}, Dial: runner.GRPC, Wire: runner.Over(runner.OverGRPC),
		Log: slog.New(slog.DiscardHandler), Epoch: time.Now(),
	})
	defer r.Close(context.WithoutCancel(ctx))
	var blocks []block
	begin := time.Now()
	for time.Since(begin) < o.time {
		measured, err := r.Block(ctx, []runner.Job{job, job}, o.rounds)
		if err != nil {
			return nil, err
		}
		for _, m := range measured {
			if m.Failure != nil {
				return nil, fmt.Errorf("cannot measure the model: %s: %s", m.Failure.Stage, m.Failure.Reason)
			}
		}
		blocks = append(blocks, block{measured[0], measured[1]})
		fmt.Fprintf(messages, "block %d after %v: %s\n", len(blocks), time.Since(begin).Round(time.Second), newFigures(blocks[len(blocks)-1:]))
	}
	return blocks, nil
}

// block is one block of two equal seats.
type block struct{ a, b measure.Measurement }

// jobOf returns the job of both engines.
func jobOf(ctx context.Context, o options, dir string) (runner.Job, error) {
	shape := ""
	if o.inputs != "" {
		shape = fmt.Sprintf(", inputs: {shape: {%s}}", o.inputs)
	}
	job, err := sidebyside.Job(ctx, dir, o.model, o.library, fmt.Sprintf("load: {concurrency: %d%s}\nwindow: %v\n", o.concurrency, shape, o.window))
	job.Fresh = true
	return job, err
}
