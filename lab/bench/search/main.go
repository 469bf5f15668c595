// Search compares search strategies on recorded and synthetic landscapes (package landscape). It
// runs all strategies on all landscapes under all limits with all seeds, on a virtual clock. It
// prints tables and judges nothing.
//
//	go -C lab run ./bench/search -seeds 50
package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tuner/lab/landscape"
	"tuner/lab/program"
)

// options are the flags.
type options struct {
	seeds      int
	budget     time.Duration
	recorded   string   // folder of recorded landscapes
	landscapes []string // names; nil: all
	strategies []string
	tuned      []string // landscapes on which strategies' constants were chosen
	neighbour  float64  // share of the cores that a neighbour takes in its bursts
	trace      bool     // print the trials of the first seed's campaigns
	save       string   // file for the campaigns; "" for none
	against    string   // file of campaigns before a change; "" for none
}

func main() { program.Main("search", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.IntVar(&o.seeds, "seeds", 50, "campaigns of each strategy on each landscape under each limit")
	f.DurationVar(&o.budget, "budget", 10*time.Minute, "virtual time of a campaign")
	f.StringVar(&o.recorded, "recorded", "lab/testdata/landscapes", "folder of recorded landscapes (*.jsonl.gz)")
	f.BoolVar(&o.trace, "trace", false, "print the trials of the first campaign of each series; for one series at a time (-seeds 1)")
	f.List(&o.landscapes, "landscapes", nil, "names of the landscapes, separated by commas (default: all)")
	f.List(&o.strategies, "strategies", strategies(), "strategies, separated by commas")
	f.List(&o.tuned, "tuned", []string{"minilm", "cnn", "mlp", "lstm"},
		"landscapes on which constants of the strategies were chosen, separated by commas: their rows say so")
	f.Float64Var(&o.neighbour, "neighbour", 0,
		"share of the cores, 0 to 0.9, that another process takes in bursts, 20 s of every 80 s in the mean")
	f.Path(&o.save, "save", "", "write what is kept of the campaigns to this file, for -against")
	f.Path(&o.against, "against", "", "compare with the campaigns that -save wrote to this file before a change, in pairs by seed")
	f.Check(func() error {
		for _, s := range o.strategies {
			if !slices.Contains(strategies(), s) {
				return fmt.Errorf("-strategies: %q is not known; allowed: %s", s, strings.Join(strategies(), ", "))
			}
		}
		switch {
		case o.neighbour < 0 || o.neighbour > 0.9:
			return fmt.Errorf("-neighbour %g: must be from 0 to 0.9", o.neighbour)
		case o.seeds < 1 || o.budget <= 0:
			return fmt.Errorf("-seeds %d -budget %v: both must be above zero", o.seeds, o.budget)
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	var earlier []kept
	if o.against != "" {
		var err error
		if earlier, err = read(o.against); err != nil {
			return err
		}
	}
	all, err := open(o)
	if err != nil {
		return err
	}
	for i, l := range all {
		fmt.Fprintln(messages, describe(l))
		if o.neighbour > 0 {
			all[i] = l.WithNeighbour(o.neighbour)
		}
	}
	series, err := campaigns(ctx, o, all, messages)
	if err != nil {
		return err
	}
	list := outline(series, o.budget)
	if o.save != "" {
		if err := save(o.save, list); err != nil {
			return err
		}
	}
	if err := report(out, o, series); err != nil || o.against == "" {
		return err
	}
	pairs, err := pairsOf(earlier, list)
	if err != nil {
		return err
	}
	return differences(out, o.budget, o.strategies, pairs)
}

// open reads the recorded landscapes and makes the synthetic ones, if they are selected.
func open(o options) ([]*landscape.Landscape, error) {
	paths, err := filepath.Glob(filepath.Join(o.recorded, "*.jsonl.gz"))
	if err != nil {
		return nil, fmt.Errorf("-recorded %q: %w", o.recorded, err)
	}
	var all []*landscape.Landscape
	for _, path := range paths {
		l, err := landscape.Load(path)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	all = append(all, landscape.Synthetic()...)
	if o.landscapes == nil {
		return all, nil
	}
	var chosen []*landscape.Landscape
	for _, name := range o.landscapes {
		i := slices.IndexFunc(all, func(l *landscape.Landscape) bool { return l.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("-landscapes: there is no landscape %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// describe prints the contents of a landscape, and the best under each limit.
func describe(l *landscape.Landscape) string {
	text := fmt.Sprintf("%s: %d points", l.Name, len(l.Points))
	for _, limit := range l.Limits() {
		best, ok := l.Best(limit)
		if !ok {
			text += fmt.Sprintf("; %s: no point", limitText(limit))
			continue
		}
		text += fmt.Sprintf("; %s: %.1f infer/s with %s at %g", limitText(limit), best.Throughput, best.Candidate.Describe(), best.Level)
		if l.Recorded {
			text += fmt.Sprintf(" (± %.1f %%)", best.Error*100)
		}
	}
	return text
}

func limitText(l landscape.Limit) string {
	if l.Name == "none" {
		return "no limit"
	}
	return fmt.Sprintf("p99 ≤ %.2f ms (%s)", l.P99*1e3, l.Name)
}
