// Ortsweep checks the promise of `tuner ortsweep`: a setting within 2 % of what exhaustive measurement finds, in at most a fifth
// of its time. It measures every candidate of a space once, runs the verb several times, and then lets the winners of all
// these races and the best of the exhaustive measurement meet on fresh launches, since the best of many noisy figures looks
// better than it is.
//
// It stands beside the product: it uses the verb as a user does, and package ortsweep for what the verb does not do. It prints a
// table and judges nothing.
//
//	go -C lab run ./bench/ortsweep -model models/minilm.onnx -sequence 32 -repetitions 10
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"tuner/lab/program"
)

// options are the flags.
type options struct {
	model       string
	sequence    int
	data        string
	tuner       string
	library     string
	repetitions int
	budget      time.Duration
	windows     int           // of each candidate in the exhaustive measurement
	window      time.Duration // of these
	rounds      int           // of the last comparison
	results     string        // folder that keeps the races' results; "" for one that is removed
}

func main() { program.Main("ortsweep", run) }

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("ortsweep", flag.ContinueOnError)
	flags.StringVar(&o.model, "model", "models/minilm.onnx", "model to sweep")
	flags.IntVar(&o.sequence, "sequence", 32, "length of its inputs")
	flags.StringVar(&o.data, "data", "testdata/accuracy/minilm_sentences.npz", "inputs to compare precisions on")
	flags.StringVar(&o.tuner, "tuner", "bin/tuner", "the tuner program")
	flags.StringVar(&o.library, "ort-library", os.Getenv("TUNER_ORT_LIBRARY"), "ONNX Runtime library")
	flags.IntVar(&o.repetitions, "repetitions", 10, "number of races")
	flags.DurationVar(&o.budget, "budget", 2*time.Minute, "time of each race")
	flags.IntVar(&o.windows, "windows", 5, "windows of each candidate in the exhaustive measurement")
	flags.DurationVar(&o.window, "window", time.Second, "length of these windows")
	flags.IntVar(&o.rounds, "rounds", 24, "rounds of the last comparison")
	flags.StringVar(&o.results, "results", "", "folder that keeps the results of the races (default: they are removed)")
	if err := program.Parse(flags, args, messages); err != nil {
		return options{}, err
	}
	switch {
	case o.library == "":
		return options{}, fmt.Errorf("no ONNX Runtime library: give -ort-library, or set TUNER_ORT_LIBRARY")
	case o.repetitions < 1 || o.windows < 1 || o.rounds < 3 || o.window <= 0 || o.budget <= 0:
		return options{}, fmt.Errorf("-repetitions, -windows, -window and -budget must be above zero, -rounds at least 3")
	}
	return o, nil
}

// run races, measures everything, and compares.
func run(ctx context.Context, args []string, out, messages io.Writer) error {
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	dir := absolute(o.results)
	if o.results == "" {
		if dir, err = os.MkdirTemp("", "tuner-bench-ortsweep-*"); err != nil {
			return fmt.Errorf("cannot make a folder for the results: %w", err)
		}
		defer os.RemoveAll(dir)
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder for the results: %w", err)
	}
	races := make([]raceResult, o.repetitions)
	for i := range races {
		if races[i], err = sweep(ctx, o, dir, i, messages); err != nil {
			return fmt.Errorf("race %d: %w", i+1, err)
		}
		fmt.Fprintf(messages, "race %d of %d: %s, %s, in %.0f s\n", i+1, o.repetitions, races[i].Winner.Settings, times(races[i].Winner.Gain), races[i].Elapsed)
	}
	c, err := open(ctx, o, dir, races[0])
	if err != nil {
		return err
	}
	defer c.close(ctx)
	every, err := c.exhaustive(ctx, o, messages)
	if err != nil {
		return err
	}
	meeting, err := c.meet(ctx, o, finalists(races, every), messages)
	if err != nil {
		return err
	}
	return report(out, races, every, meeting)
}
