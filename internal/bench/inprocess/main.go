// Inprocess measures what the engine costs beyond ONNX Runtime, without a wire: the throughput of scheduler and data path
// under closed-loop clients of the same process, against as many sessions that run back to back on prepared tensors.
//
// It stands beside the data flow, on package engine and package ort: it measures, prints lines for benchstat, and judges
// nothing. Both sides run in turn in one process, so that a change of the machine's speed, and of what its caches hold, falls
// on both alike.
//
//	TUNER_ORT_LIBRARY=$(tuner runtime install cpu) go run ./internal/bench/inprocess -minilm models/minilm.onnx
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"tuner/internal/bench/program"
	"tuner/ort"
)

// options are the flags.
type options struct {
	minilm string
	rounds int
	window time.Duration
}

func main() { program.Main("inprocess", run) }

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("inprocess", flag.ContinueOnError)
	flags.StringVar(&o.minilm, "minilm", "models/minilm.onnx", "the MiniLM model; empty: leave it out")
	flags.IntVar(&o.rounds, "rounds", 5, "how often each side is measured")
	flags.DurationVar(&o.window, "window", 5*time.Second, "length of each measurement")
	if err := program.Parse(flags, args, messages); err != nil {
		return options{}, err
	}
	if o.rounds < 1 || o.window <= 0 {
		return options{}, fmt.Errorf("-rounds %d -window %v: both must be above zero", o.rounds, o.window)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, messages io.Writer) error {
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	library := os.Getenv("TUNER_ORT_LIBRARY")
	if library == "" {
		return errors.New("cannot measure: set TUNER_ORT_LIBRARY to the path that 'tuner runtime install cpu' prints")
	}
	r, err := ort.Open(library)
	if err != nil {
		return err
	}
	defer r.Close()
	dir, err := os.MkdirTemp("", "inprocess")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	workloads, err := prepare(r, dir, o.minilm)
	if err != nil {
		return err
	}
	for _, w := range workloads {
		if err := compare(ctx, r, dir, w, o, out, messages); err != nil {
			return fmt.Errorf("%s: %w", w.name(), err)
		}
	}
	return nil
}

// compare measures both sides of a workload in turn: raw, engine, engine, raw, raw, …
func compare(ctx context.Context, r *ort.Runtime, dir string, w workload, o options, out, messages io.Writer) error {
	raw, err := newRaw(r, w)
	if err != nil {
		return err
	}
	defer raw.close()
	engine, err := newServed(ctx, r, dir, w)
	if err != nil {
		return err
	}
	defer engine.close()
	var all []figures
	for round := range o.rounds + 1 {
		var f figures
		order := []func() error{
			func() (err error) { f.raw, err = raw.measure(o.window); return err },
			func() (err error) { f.engine, err = engine.measure(ctx, o.window); return err },
		}
		if round%2 == 1 {
			order[0], order[1] = order[1], order[0]
		}
		for _, measure := range order {
			if err := errors.Join(ctx.Err(), measure()); err != nil {
				return err
			}
		}
		if round == 0 {
			continue // it has warmed both up
		}
		if _, err := fmt.Fprintln(out, f.line(w.name())); err != nil {
			return err
		}
		all = append(all, f)
	}
	fmt.Fprintln(messages, summary(w.name(), all))
	return nil
}
