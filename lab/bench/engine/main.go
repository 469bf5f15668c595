// Engine measures tuner's engine side by side with a real Triton and its onnxruntime backend. Its
// parts:
//
//   - frontend: what do the front ends cost?
//   - latency: what do the servers add to a single inference?
//   - saturation: how much do they do when there is always work?
//   - ranking: do both put the same configurations in the same order?
//   - launches: what do servers do that have just been launched, one at a time?
//   - grid: how do fresh launches compare from one request in flight to saturation?
//   - offered: and at requests that arrive at random, at shares of what Triton answers at most?
//   - large: how fast do tensors of 10 MiB pass, over the wire and in shared memory?
//
// Both servers load the same library of ONNX Runtime and the same files, and are measured in turn.
// The program prints ratios with intervals, and the CPU time that others took from the machine. It
// judges nothing: the goals stand beside the figures. The real peers come from
// lab/scripts/peers.sh, the models from lab/samplemodels.
//
//	go -C lab run ./bench/engine -what saturation -rounds 10 -window 1s
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
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

// benchmarks returns the values of -what.
func benchmarks() sidebyside.Parts[*bench] {
	return sidebyside.Parts[*bench]{
		{Name: "frontend", Run: (*bench).frontend}, {Name: "latency", Run: (*bench).latency},
		{Name: "saturation", Run: (*bench).saturation}, {Name: "ranking", Run: (*bench).ranking},
		{Name: "launches", Run: (*bench).launches}, {Name: "grid", Run: (*bench).grid}, {Name: "offered", Run: (*bench).offered},
		{Name: "large", Run: (*bench).large},
	}
}

// bench holds the common inputs of all parts.
type bench struct {
	options
	peers    *peers.Peers
	work     string // its own folder, on the file system of the models, so that repositories can link them
	out      io.Writer
	record   io.Writer // of every single figure
	messages io.Writer
}

// asAddsub is the first argument that makes this program the server of benchmark frontend.
const asAddsub = "addsub"

func main() {
	program.Main("engine", program.Or(asAddsub, addsub, program.With(define, run)))
}

func define(f *program.Flags, o *options) {
	benchmarks().Define(f, &o.what)
	f.IntVar(&o.rounds, "rounds", 0, "rounds, in each of which both servers are measured; 0: 10, 5 of launches and grid, 3 of offered, and 3 passes of ranking")
	f.DurationVar(&o.window, "window", 0, "length of a measurement; 0: 1s of frontend, latency and large, 3s of saturation, 1.5s of ranking, 0.6s of launches and grid, 6s of offered")
	f.Tuner(&o.tuner)
	f.Existing(&o.models, "models", "models", "folder of the sample models")
	f.StringVar(&o.record, "record", "", "file for every single figure, in the format that benchstat reads")
	f.Check(func() error {
		if o.rounds < 0 || o.window < 0 {
			return fmt.Errorf("-rounds %d -window %v: neither may be below zero", o.rounds, o.window)
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	return program.InFolder(o.models, ".bench-engine", func(work string) error { // beside the models
		s := sidebyside.Setting{What: o.what, Record: o.record, Out: out, Messages: messages}
		return benchmarks().RunBeside(ctx, s, func(installed *peers.Peers, record io.Writer) *bench {
			return &bench{options: o, peers: installed, work: work, out: out, record: record, messages: messages}
		})
	})
}

// or returns the requested rounds and window, else a benchmark's own.
func (o options) or(rounds int, window time.Duration) options {
	o.rounds, o.window = cmp.Or(o.rounds, rounds), cmp.Or(o.window, window)
	return o
}
