// Pipeline measures the search for the stages of a pipeline: a tokenizer of onnxruntime-extensions, MiniLM and a
// head, as an ensemble on a real Triton. Its parts:
//
//   - exhaustive: measures every configuration of a small space.
//   - search: the strategy for pipelines, with a tenth as many trials. It needs the exhaustive campaign.
//   - pairs: measures both answers in alternating pairs, on fresh servers, with `tuner perf` as the client.
//
// Requests are texts, which the tokenizer pads to one length. All configurations have one load. The program prints
// which share of the exhaustive answer's throughput the search reaches with which share of the points, and how many
// configurations reach as much. It also prints the bottleneck that each campaign names, and how much the exhaustive
// throughput depends on each stage. It judges nothing.
//
// Each part takes less than five minutes. A campaign that has not ended resumes when its part runs again with a larger
// -time. Python's onnxruntime-extensions comes from lab/scripts/pipelines.sh, and the real peers from
// lab/scripts/peers.sh. The machine should be idle otherwise.
//
//	go -C lab run ./bench/pipeline -what exhaustive
package main

import (
	"context"
	"errors"
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
	server string
	time   time.Duration
	pairs  int
	window time.Duration
	tuner  string
	models string
	output string
}

// The servers on which campaigns and pairs run.
const (
	onTriton = "triton"
	onTuner  = "tuner"
)

// parts returns the values of -what.
func parts() sidebyside.Parts[*bench] {
	return sidebyside.Parts[*bench]{
		{Name: "exhaustive", Run: (*bench).exhaustive}, {Name: "search", Run: (*bench).search}, {Name: "pairs", Run: (*bench).compare},
	}
}

// bench holds the common inputs of all parts.
type bench struct {
	options
	peers         *peers.Peers
	out, messages io.Writer
}

func main() { program.Main("pipeline", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	parts().Define(f, &o.what)
	f.Choice(&o.server, "server", onTriton, []string{onTriton, onTuner}, "a real Triton, or tuner's own engine")
	f.DurationVar(&o.time, "time", 270*time.Second, "budget of the exhaustive campaign, over all its runs")
	f.IntVar(&o.pairs, "pairs", 6, "alternating pairs in which two answers are measured")
	f.DurationVar(&o.window, "window", 2*time.Second, "of these; a measurement is three")
	f.Check(func() error {
		if o.time <= 0 || o.pairs < 1 || o.window <= 0 {
			return errors.New("-time, -pairs and -window must be above zero")
		}
		return nil
	})
	f.Tuner(&o.tuner)
	f.Existing(&o.models, "models", "models", "folder of the sample models")
	f.Path(&o.output, "output", "out/bench-pipeline", "folder of the repository and the campaigns")
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return fmt.Errorf("cannot make the output folder: %w", err)
	}
	s := sidebyside.Setting{What: o.what, Out: out, Messages: messages}
	return parts().RunBeside(ctx, s, func(installed *peers.Peers, _ io.Writer) *bench {
		return &bench{options: o, peers: installed, out: out, messages: messages}
	})
}
