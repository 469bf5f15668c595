// Rewrites measures what the int8 rewrite does to a model: its speed, its size and its accuracy, beside the model as it was
// and beside what onnxruntime.quantization makes of it with the same recipe (matrix products alone, a scale for each channel).
//
// All three run in one process, each in a session of one thread, in turn and in shuffled order, so that a change of the
// machine's speed falls on all alike. It prints ratios with intervals and judges nothing: the goals stand beside the figures.
// The other side comes from scripts/peers.sh; without it the program says so and measures the rest.
//
//	TUNER_ORT_LIBRARY=$(tuner runtime install cpu) go run ./internal/bench/rewrites
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"tuner/dataset"
	"tuner/internal/bench/program"
	"tuner/onnx"
	"tuner/ort"
)

// options are the flags.
type options struct {
	model  string
	data   string
	rounds int
	window time.Duration
}

func main() { program.Main("rewrites", run) }

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("rewrites", flag.ContinueOnError)
	flags.StringVar(&o.model, "model", "models/minilm.onnx", "the model")
	flags.StringVar(&o.data, "data", "testdata/accuracy/minilm_sentences.npz", "rows for speed and accuracy")
	flags.IntVar(&o.rounds, "rounds", 15, "how often each variant is measured at each batch")
	flags.DurationVar(&o.window, "window", 500*time.Millisecond, "length of each measurement")
	if err := program.Parse(flags, args, messages); err != nil {
		return options{}, err
	}
	if o.rounds < 1 || o.window <= 0 {
		return options{}, fmt.Errorf("-rounds %d -window %v: both must be above zero", o.rounds, o.window)
	}
	return o, nil
}

// batches are the sizes at which speed is measured: a single request, and what a busy server gathers.
func batches() []int { return []int{1, 16} }

func run(ctx context.Context, args []string, out, messages io.Writer) (err error) {
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	library := os.Getenv("TUNER_ORT_LIBRARY")
	if library == "" {
		return errors.New("cannot measure: set TUNER_ORT_LIBRARY to the path that 'tuner runtime install cpu' prints")
	}
	runtime, err := ort.Open(library)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runtime.Close()) }()
	model, err := onnx.Read(o.model)
	if err != nil {
		return err
	}
	rows, err := dataset.Read(o.data, model)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rewrites")
	if err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	variants, err := makeVariants(ctx, model, dir, messages)
	if err != nil {
		return err
	}
	return compare(ctx, bench{runtime, rows, o}, variants, out)
}
