// Redeploy checks the promise that the deployed configuration is the measured one. It takes an
// analyzed campaign, serves its chosen repository by its own config.pbtxt, and measures it in alternating
// pairs. The other side of a pair is the same configuration as run by the campaign. With -against
// default it is the default configuration. Every measurement has a fresh engine process, and the
// campaign's own requests, load generator and windows.
//
// The program reads the journal and the repository, and changes neither. It prints a table and
// lines for benchstat. It judges nothing: a busy machine shows in the figures of foreign load.
//
//	go -C lab run ./bench/redeploy -campaign out/minilm -pairs 8 -window 3s
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"tuner/lab/program"
)

// options are the flags.
type options struct {
	campaign string
	tuner    string
	against  string
	pairs    int
	window   time.Duration
}

// The other side of the comparison.
const (
	againstCampaign = "campaign"
	againstDefault  = "default"
)

func main() { program.Main("redeploy", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.StringVar(&o.campaign, "campaign", "out/minilm", "output folder of a campaign that was analyzed")
	f.Tuner(&o.tuner)
	f.Choice(&o.against, "against", againstCampaign, []string{againstCampaign, againstDefault},
		"the same configuration as the campaign ran it, or the default configuration")
	f.IntVar(&o.pairs, "pairs", 8, "number of pairs")
	f.DurationVar(&o.window, "window", 3*time.Second, "length of each measurement")
	f.Check(func() error {
		if o.pairs < 1 || o.window <= 0 {
			return fmt.Errorf("-pairs %d -window %v: both must be above zero", o.pairs, o.window)
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	c, err := open(o)
	if err != nil {
		return err
	}
	defer c.close(ctx)
	pairs, err := measurePairs(ctx, o, c, messages)
	if err != nil {
		return err
	}
	return comparison{
		Model: c.result.Header.Model, A: c.a.name, B: c.b.name, LoadA: c.a.trial.Load, LoadB: c.b.trial.Load, Window: o.window,
		Reported: c.reported(), Pairs: pairs,
	}.write(out)
}

// measurePairs measures both sides in turn: A B, B A, A B and so on. So a drift of the machine's
// speed affects both equally.
func measurePairs(ctx context.Context, o options, c *contest, messages io.Writer) ([]pair, error) {
	var pairs []pair
	for i := range o.pairs {
		p := pair{Reversed: i%2 == 1}
		order := []*side{c.a, c.b}
		figures := []*figures{&p.A, &p.B}
		if p.Reversed {
			order[0], order[1] = c.b, c.a
			figures[0], figures[1] = &p.B, &p.A
		}
		for j, s := range order {
			measured, err := s.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("pair %d, %s: %w", i+1, s.name, err)
			}
			*figures[j] = measured
		}
		fmt.Fprintf(messages, "pair %d of %d: %.1f and %.1f infer/s\n", i+1, o.pairs, p.A.Throughput, p.B.Throughput)
		pairs = append(pairs, p)
	}
	return pairs, nil
}
