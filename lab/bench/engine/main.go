// Peers measures tuner's engine side by side with a real Triton and its onnxruntime backend: whether both put the same
// configurations in the same order (ranking), how much they do when they are saturated (saturation), what their front ends
// cost (frontend), and what they add to a single inference (latency).
//
// The real peers come from lab/scripts/peers.sh, the models from lab/samplemodels. Both servers load the same library of ONNX
// Runtime and the same files; they are measured in turn, and what is printed are ratios with intervals, beside the CPU time
// that others took from the machine. It judges nothing: the goals stand beside the figures.
//
// Run it from the root of the repository:
//
//	go -C lab run ./bench/engine -what saturation -rounds 10 -window 1s
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"tuner/lab/bench/sidebyside"
	"tuner/lab/peers"
	"tuner/lab/program"
)

// options are the flags.
type options struct {
	what   string
	rounds int
	window time.Duration
	tuner  string
	models string
	record string
}

// benchmarks are the values of -what.
func benchmarks() sidebyside.Parts[*bench] {
	return sidebyside.Parts[*bench]{
		{Name: "frontend", Run: (*bench).frontend}, {Name: "latency", Run: (*bench).latency},
		{Name: "saturation", Run: (*bench).saturation}, {Name: "ranking", Run: (*bench).ranking},
	}
}

// bench is what every benchmark needs.
type bench struct {
	options
	peers    *peers.Peers
	work     string // a folder of its own, on the file system of the models, so that repositories can link them
	out      io.Writer
	record   io.Writer // of every single figure
	messages io.Writer
}

func main() { program.Main("peers", run) }

func run(ctx context.Context, args []string, out, messages io.Writer) (err error) {
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	installed, err := peers.Find()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(o.models, ".bench-peers-")
	if err != nil {
		return fmt.Errorf("cannot make a folder beside the models: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	record, err := sidebyside.CreateRecord(o.record)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, record.Close()) }()
	b := &bench{options: o, peers: installed, work: work, out: out, record: record, messages: messages}
	fmt.Fprintln(out, sidebyside.Machine(ctx))
	return benchmarks().Run(ctx, o.what, b, messages)
}

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	benchmarks().Flag(flags, &o.what)
	flags.IntVar(&o.rounds, "rounds", 0, "rounds, in each of which both servers are measured; 0: 10, and 3 passes of ranking")
	flags.DurationVar(&o.window, "window", 0, "length of a measurement; 0: 1s of frontend and latency, 3s of saturation, 1.5s of ranking")
	flags.StringVar(&o.tuner, "tuner", "bin/tuner", "the tuner program, whose engine serves")
	flags.StringVar(&o.models, "models", "models", "folder of the sample models")
	flags.StringVar(&o.record, "record", "", "file for every single figure, in the format that benchstat reads")
	if err := program.Parse(flags, args, messages); err != nil {
		return options{}, err
	}
	if err := benchmarks().Check(o.what); err != nil {
		return options{}, err
	}
	if o.rounds < 0 || o.window < 0 {
		return options{}, fmt.Errorf("-rounds %d -window %v: neither may be below zero", o.rounds, o.window)
	}
	var err error
	if o.tuner, err = sidebyside.Existing(o.tuner); err != nil {
		return options{}, err
	}
	o.models, err = sidebyside.Existing(o.models)
	return o, err
}

// or returns the rounds and the window that were asked for, else a benchmark's own.
func (o options) or(rounds int, window time.Duration) options {
	o.rounds, o.window = cmp.Or(o.rounds, rounds), cmp.Or(o.window, window)
	return o
}
