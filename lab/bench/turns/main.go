// Turns measures how precisely engines that take turns compare: one configuration in two processes, so that the truth is known. It prints the standard
// error of the logarithm of the ratio of their throughputs, by Little's law and by counting, and how many short meetings, which are drawn from all
// rounds, would have found a difference. It judges nothing.
//
//	go -C lab run ./bench/turns -time 100s -model models/minilm.onnx
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"tuner/gate"
	"tuner/hostinfo"
	"tuner/lab/program"
	"tuner/measure"
	"tuner/runner"
	"tuner/spec"
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

func main() { program.Main("turns", run) }

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("turns", flag.ContinueOnError)
	flags.StringVar(&o.model, "model", "models/minilm.onnx", "model")
	flags.StringVar(&o.inputs, "shape", "input_ids: [32], attention_mask: [32], token_type_ids: [32]", "shapes of its inputs, as in gate.yaml; empty: those of the model")
	flags.StringVar(&o.tuner, "tuner", "bin/tuner", "the tuner program")
	flags.StringVar(&o.library, "ort-library", os.Getenv("TUNER_ORT_LIBRARY"), "ONNX Runtime library")
	flags.IntVar(&o.concurrency, "concurrency", 8, "requests in flight")
	flags.DurationVar(&o.time, "time", 100*time.Second, "time of all blocks; one that has begun is finished")
	flags.DurationVar(&o.window, "window", 500*time.Millisecond, "length of a turn")
	flags.IntVar(&o.rounds, "rounds", 30, "turns of each engine on a launch")
	flags.IntVar(&o.meetings, "meetings", 200, "short meetings that are drawn")
	flags.IntVar(&o.meeting, "meeting", 12, "rounds of a short meeting")
	if err := program.Parse(flags, args, messages); err != nil {
		return options{}, err
	}
	switch {
	case o.library == "":
		return options{}, errors.New("no ONNX Runtime library: give -ort-library, or set TUNER_ORT_LIBRARY")
	case o.concurrency < 1 || o.time <= 0 || o.window <= 0 || o.meetings < 1:
		return options{}, errors.New("-concurrency, -time, -window and -meetings must be above 0")
	case o.rounds < 2 || o.meeting < 2 || o.meeting > o.rounds:
		return options{}, errors.New("-rounds and -meeting must be 2 or more, and a meeting no longer than a block")
	}
	for _, path := range []*string{&o.model, &o.tuner} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return options{}, fmt.Errorf("cannot resolve %q: %w", *path, err)
		}
		*path = absolute
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, messages io.Writer) error {
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tuner-bench-turns-*")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the model: %w", err)
	}
	defer os.RemoveAll(dir)
	job, err := jobOf(ctx, o, dir)
	if err != nil {
		return err
	}
	r := runner.New(runner.Options{
		Launcher: runner.Bundled{Binary: o.tuner}, Dial: runner.GRPC, Wire: runner.Over(runner.OverGRPC), Log: slog.New(slog.DiscardHandler), Epoch: time.Now(),
	})
	defer r.Close(context.WithoutCancel(ctx))
	var blocks []block
	begin := time.Now()
	for time.Since(begin) < o.time {
		measured, err := r.Block(ctx, []runner.Job{job, job}, o.rounds)
		if err != nil {
			return err
		}
		for _, m := range measured {
			if m.Failure != nil {
				return fmt.Errorf("cannot measure the model: %s: %s", m.Failure.Stage, m.Failure.Reason)
			}
		}
		blocks = append(blocks, block{measured[0], measured[1]})
		fmt.Fprintf(messages, "block %d after %v: %s\n", len(blocks), time.Since(begin).Round(time.Second), newFigures(blocks[len(blocks)-1:]))
	}
	_, err = io.WriteString(out, report(o, blocks, time.Since(begin)))
	return err
}

// block is one block of two seats alike.
type block struct{ a, b measure.Measurement }

// jobOf is the job of both engines: the model with the configuration that is completed from it, as a gate serves it.
func jobOf(ctx context.Context, o options, dir string) (runner.Job, error) {
	shape := ""
	if o.inputs != "" {
		shape = fmt.Sprintf(", inputs: {shape: {%s}}", o.inputs)
	}
	text := fmt.Sprintf("name: model\noutput: %q\nbaseline: {model: %q}\ncandidate: {model: %[2]q}\nload: {concurrency: %d%s}\nwindow: %v\n",
		dir, o.model, o.concurrency, shape, o.window)
	g, err := spec.ParseGate("gate.yaml", []byte(text))
	if err != nil {
		return runner.Job{}, err
	}
	setup, err := gate.Open(g, hostinfo.Read(ctx), func(string) int { return 0 })
	if err != nil {
		return runner.Job{}, err
	}
	setup.Candidate.Library = o.library
	job, err := setup.Job(setup.Candidate)
	job.Fresh = true
	return job, err
}
