// Campaign measures the quality of campaigns' answers on real models. Its parts:
//
//   - repeats: do short campaigns on MiniLM find the answer of an exhaustive one?
//   - analyzer: compares a campaign with the real Model Analyzer's quick search, on the same real
//     Triton, in the same time plus a minute.
//   - neighbour, quiet: do the answers of several campaigns hold and agree beside a process that
//     takes CPU time in bursts, and without it?
//   - short: what do campaigns with too little time report?
//   - published: the first two questions on four published models, on both engines.
//
// MiniLM has a limit on p99, and a cosine of at least 0.99 with the original.
//
// In the comparison with Model Analyzer, both programs are timed by wall clock from start to
// answer. Ours starts from nothing: it makes the int8 variant and compares it again. A budget
// bounds neither that nor the starts. So the benchmark first measures their time with a campaign of
// one trial, and subtracts it from the budget.
//
// Each answer is a repository and a load. The benchmark measures answers in alternating pairs, on
// fresh servers, with `tuner perf` as the client. It prints Markdown and judges nothing. The
// campaigns stay in the output folder, except those of analyzer, and so do the rows of published. After an
// interruption the same command resumes with them. The real peers come from lab/scripts/peers.sh. The machine should be
// idle otherwise.
//
//	TUNER_ORT_LIBRARY="$(bin/tuner runtime install cpu)" go -C lab run ./bench/campaign -what analyzer
package main

import (
	"cmp"
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
	what        string
	repetitions int
	budget      time.Duration
	pairs       int
	window      time.Duration
	tuner       string
	models      string
	sentences   string
	output      string
}

// parts returns the values of -what.
func parts() sidebyside.Parts[*bench] {
	return sidebyside.Parts[*bench]{
		{Name: "repeats", Run: (*bench).repeats}, {Name: "analyzer", Run: (*bench).analyzer},
		{Name: "neighbour", Run: (*bench).disturbed}, {Name: "quiet", Run: (*bench).undisturbed}, {Name: "short", Run: (*bench).short},
		{Name: "published", Run: (*bench).published},
	}
}

// bench holds the common inputs of all parts.
type bench struct {
	options
	peers         *peers.Peers
	now           func() time.Time
	out, messages io.Writer
}

// budgetOr returns the value of -budget, or else a part's own budget.
func (o options) budgetOr(own time.Duration) time.Duration { return cmp.Or(o.budget, own) }

func main() { program.Main("campaign", parted()) }

// parted returns the benchmark, or its neighbour: the benchmark starts itself in that role.
func parted() program.Run { return program.Or(asNeighbour, neighbour, program.With(define, run)) }

func define(f *program.Flags, o *options) {
	parts().Define(f, &o.what)
	f.IntVar(&o.repetitions, "repetitions", 5, "short campaigns: beside the exhaustive one, or beside each other")
	f.DurationVar(&o.budget, "budget", 0, "of a campaign; 0: the part's own, 5m of repeats and published, 3m of neighbour and quiet, 45s of short")
	f.IntVar(&o.pairs, "pairs", 8, "alternating pairs in which two answers are measured")
	f.DurationVar(&o.window, "window", 2*time.Second, "of these; a measurement is three")
	f.Check(func() error {
		if o.repetitions < 1 || o.pairs < 1 || o.budget < 0 || o.window <= 0 {
			return errors.New("-repetitions, -pairs and -window must be above zero, and -budget not below")
		}
		return nil
	})
	f.Tuner(&o.tuner)
	f.Existing(&o.models, "models", "models", "folder of the sample models")
	f.Existing(&o.sentences, "sentences", "testdata/accuracy/minilm_sentences.npz", "rows that precisions are judged on")
	f.Path(&o.output, "output", "out/bench-campaign", "folder of the campaigns")
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return fmt.Errorf("cannot make the output folder: %w", err)
	}
	s := sidebyside.Setting{What: o.what, Out: out, Messages: messages}
	return parts().RunBeside(ctx, s, func(installed *peers.Peers, _ io.Writer) *bench {
		return &bench{options: o, peers: installed, now: time.Now, out: out, messages: messages}
	})
}
