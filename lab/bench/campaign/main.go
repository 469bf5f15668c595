// Campaign measures what the search is worth on a real model, the MiniLM sentence encoder with a limit on p99 and a cosine of 0.99 with
// the original at least: whether short campaigns find what an exhaustive one finds (repeats), what a campaign finds beside the real
// Model Analyzer's quick search on the same real Triton, in the same time and a minute (analyzer), and whether the answers of several
// campaigns hold and agree, beside a process that takes CPU time in bursts (neighbour), without it (quiet), and in
// too little time (short). On four published models it asks the first two questions again, on both engines (published).
//
// Beside Model Analyzer both are timed as programs, by the wall, until the answer is there: ours from nothing, so that int8 is made and compared anew.
// What a budget does not bound, that and the starts, is measured first, on a campaign of one trial, and taken off the budget.
//
// Who chose and what was chosen are judged apart: each answer is a repository and a load, which are measured in alternating pairs, on fresh
// servers, with `tuner perf` as the client. It prints Markdown, and nothing fails by what it finds. The campaigns stay in the output folder, all but
// those of analyzer: interrupted, the same command goes on with them. The real peers come from lab/scripts/peers.sh.
//
// Run it from the root of the repository, on a machine with nothing else to do:
//
//	TUNER_ORT_LIBRARY="$(bin/tuner runtime install cpu)" go -C lab run ./bench/campaign -what analyzer
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// parts are the values of -what.
func parts() sidebyside.Parts[*bench] {
	return sidebyside.Parts[*bench]{
		{Name: "repeats", Run: (*bench).repeats}, {Name: "analyzer", Run: (*bench).analyzer},
		{Name: "neighbour", Run: (*bench).disturbed}, {Name: "quiet", Run: (*bench).undisturbed}, {Name: "short", Run: (*bench).short},
		{Name: "published", Run: (*bench).published},
	}
}

// bench is what all parts need.
type bench struct {
	options
	peers         *peers.Peers
	now           func() time.Time
	out, messages io.Writer
}

// budgetOr is what -budget says, or else a part's own.
func (o options) budgetOr(own time.Duration) time.Duration { return cmp.Or(o.budget, own) }

func main() { program.Main("campaign", run) }

func run(ctx context.Context, args []string, out, messages io.Writer) error {
	if len(args) > 0 && args[0] == asNeighbour {
		return neighbour(ctx, args[1:])
	}
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	installed, err := peers.Find()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return fmt.Errorf("cannot make the output folder: %w", err)
	}
	b := &bench{options: o, peers: installed, now: time.Now, out: out, messages: messages}
	fmt.Fprintln(out, sidebyside.Machine(ctx))
	return parts().Run(ctx, o.what, b, messages)
}

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("campaign", flag.ContinueOnError)
	parts().Flag(flags, &o.what)
	flags.IntVar(&o.repetitions, "repetitions", 5, "short campaigns: beside the exhaustive one, or beside each other")
	flags.DurationVar(&o.budget, "budget", 0, "of a campaign; 0: the part's own, 5m of repeats and published, 3m of neighbour and quiet, 45s of short")
	flags.IntVar(&o.pairs, "pairs", 8, "alternating pairs in which two answers are measured")
	flags.DurationVar(&o.window, "window", 2*time.Second, "of these; a measurement is three")
	flags.StringVar(&o.tuner, "tuner", "bin/tuner", "the tuner program")
	flags.StringVar(&o.models, "models", "models", "folder of the sample models")
	flags.StringVar(&o.sentences, "sentences", "testdata/accuracy/minilm_sentences.npz", "rows that precisions are judged on")
	flags.StringVar(&o.output, "output", "out/bench-campaign", "folder of the campaigns")
	if err := program.Parse(flags, args, messages); err != nil {
		return options{}, err
	}
	if err := parts().Check(o.what); err != nil {
		return options{}, err
	}
	if o.repetitions < 1 || o.pairs < 1 || o.budget < 0 || o.window <= 0 {
		return options{}, errors.New("-repetitions, -pairs and -window must be above zero, and -budget not below")
	}
	for _, path := range []*string{&o.tuner, &o.models, &o.sentences} {
		var err error
		if *path, err = sidebyside.Existing(*path); err != nil {
			return options{}, err
		}
	}
	output, err := filepath.Abs(o.output)
	o.output = output
	return o, err
}
