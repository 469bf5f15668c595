// Pipeline measures the search for several models on one real Triton: for the stages of an ensemble, and for two or three
// models with traffic of their own. The ensemble is a tokenizer of onnxruntime-extensions, MiniLM and a head. Its parts:
//
//   - exhaustive: measures every configuration of a small space (4.5 minutes).
//   - search: the strategy for pipelines, with a tenth as many trials. It needs the exhaustive campaign (1 minute).
//   - pairs: measures both answers in alternating pairs, on fresh servers, with `tuner perf` as the client (4 minutes).
//   - stage: measures what the search has brought the ensemble, and what it has brought its bottleneck alone. Then it
//     verifies the export (5 minutes).
//
// Requests are texts, which the tokenizer pads to one length. All configurations have one load. The program prints
// which share of the exhaustive answer's throughput the search reaches with which share of the points, and how many
// configurations reach as much. It also prints the bottleneck that each campaign names, and how much the exhaustive
// throughput depends on each stage.
//
// The models are MiniLM, an MLP and, with -several 3, a published CNN. Each has a rate and a limit on its p99. The
// question is how far all rates can grow together:
//
//   - together: measures every configuration of a small space, on shared and divided cores, and searches it in the same
//     time. It also finds the best of each model by itself (24 minutes).
//   - blocks: measures which growth each answer carries, all of them in each block, on fresh servers that take turns.
//     perf_analyzer measures the search's answer (14 minutes).
//
// Model Analyzer's search of several models takes no part, since it needs MPI. The program judges nothing. A campaign
// that has not ended resumes when its part runs again with a larger -time or -together. Python's onnxruntime-extensions
// comes from lab/scripts/pipelines.sh, and the real peers from lab/scripts/peers.sh. The machine should be idle
// otherwise.
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
	what     string
	server   string
	time     time.Duration
	together time.Duration
	several  int
	pairs    int
	window   time.Duration
	tuner    string
	models   string
	output   string
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
		{Name: "stage", Run: (*bench).stage}, {Name: "together", Run: (*bench).campaigns}, {Name: "blocks", Run: (*bench).blocks},
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
	f.DurationVar(&o.time, "time", 270*time.Second, "budget of the exhaustive campaign on the ensemble, over all its runs")
	f.DurationVar(&o.together, "together", 10*time.Minute, "budget of each campaign on the models together; those of one model have a fifth of it")
	f.IntVar(&o.several, "several", 2, "number of these models: 2 or 3")
	f.IntVar(&o.pairs, "pairs", 6, "alternating pairs, or blocks, in which answers are measured")
	f.DurationVar(&o.window, "window", 2*time.Second, "of these; a measurement is three")
	f.Check(func() error {
		if o.several != 2 && o.several != 3 {
			return fmt.Errorf("-several %d: allowed are 2 and 3", o.several)
		}
		if o.time <= 0 || o.together <= 0 || o.pairs < 1 || o.window <= 0 {
			return errors.New("-time, -together, -pairs and -window must be above zero")
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
