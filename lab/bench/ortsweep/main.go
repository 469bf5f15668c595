// Ortsweep checks the promise of `tuner ortsweep`. It finds a setting within 2 % of the best, in at
// most a fifth of the time of exhaustive measurement.
//
// The program runs the verb several times, like a user, and measures every candidate of the space
// once. The best of many noisy figures looks better than it is. So the winners of all races and the
// best of the exhaustive measurement then meet on fresh launches. The program prints a table and
// judges nothing.
//
//	TUNER_ORT_LIBRARY="$(bin/tuner runtime install cpu)" go -C lab run ./bench/ortsweep -repetitions 10
package main

import (
	"context"
	"errors"
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
	results     string        // folder for the races' results; "" for one that is removed
}

func main() { program.Main("ortsweep", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.Path(&o.model, "model", "models/minilm.onnx", "model to sweep")
	f.IntVar(&o.sequence, "sequence", 32, "length of its inputs")
	f.Path(&o.data, "data", "testdata/accuracy/minilm_sentences.npz", "inputs to compare precisions on")
	f.Tuner(&o.tuner)
	f.Library(&o.library)
	f.IntVar(&o.repetitions, "repetitions", 10, "number of races")
	f.DurationVar(&o.budget, "budget", 2*time.Minute, "time of each race")
	f.IntVar(&o.windows, "windows", 5, "windows of each candidate in the exhaustive measurement")
	f.DurationVar(&o.window, "window", time.Second, "length of these windows")
	f.IntVar(&o.rounds, "rounds", 24, "rounds of the last comparison")
	f.Path(&o.results, "results", "", "folder that keeps the results of the races (default: they are removed)")
	f.Check(func() error {
		if o.repetitions < 1 || o.windows < 1 || o.rounds < 3 || o.window <= 0 || o.budget <= 0 {
			return errors.New("-repetitions, -windows, -window and -budget must be above zero, -rounds at least 3")
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	if o.results == "" {
		return program.InFolder("", "bench-ortsweep", func(dir string) error { return bench(ctx, o, dir, out, messages) })
	}
	if err := os.MkdirAll(o.results, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder for the results: %w", err)
	}
	return bench(ctx, o, o.results, out, messages)
}

// bench runs the races, measures everything, and compares. The races' results are in dir.
func bench(ctx context.Context, o options, dir string, out, messages io.Writer) error {
	var err error
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
