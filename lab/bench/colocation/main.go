// Colocation plays campaigns of several models on one simulated server, on a virtual clock. The server is the
// queue simulation: all models' clients, batchers and instances at once, with times of batches, interference and
// unexplained factors that vary by the seed. Campaigns have shared cores, cores of each model's own, or the choice
// of both. It prints how far each answer is from the best of all configurations, and judges nothing. The regret of the
// choice and that of the stated scale are told apart: a configuration may carry more than is stated of it.
//
//	go -C lab run ./bench/colocation -seeds 200
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"tuner/internal/parallel"
	"tuner/lab/program"
	"tuner/measure/stats"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

// options are the flags.
type options struct {
	seeds, first, models int
	budget               time.Duration
	strategies, kinds    []string
	perOctave            int
	formula              bool
}

// The kinds of campaigns.
const (
	shared  = "shared"
	divided = "divided"
	either  = "either"
)

func main() { program.Main("colocation", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.IntVar(&o.seeds, "seeds", 200, "campaigns of each strategy and kind")
	f.IntVar(&o.first, "first", 0, "first seed")
	f.IntVar(&o.models, "models", 2, "number of models")
	f.DurationVar(&o.budget, "budget", 5*time.Minute, "virtual time of a campaign")
	f.IntVar(&o.perOctave, "per-octave", 64, "levels in a doubling of the scale, as in profiles")
	f.BoolVar(&o.formula, "formula", false, "the server is a formula that has nothing of the queue simulation")
	f.List(&o.strategies, "strategies", []string{plan.Colocation, plan.Alternating}, "strategies, separated by commas")
	f.List(&o.kinds, "kinds", []string{shared, divided, either}, "kinds of campaigns, separated by commas")
	f.Check(func() error {
		for _, k := range o.kinds {
			if !slices.Contains([]string{shared, divided, either}, k) {
				return fmt.Errorf("-kinds: %q is not known; allowed: %s, %s, %s", k, shared, divided, either)
			}
		}
		for _, s := range o.strategies {
			if !slices.Contains(plan.OfSeveral(), s) {
				return fmt.Errorf("-strategies: %q is not known; allowed: %s", s, strings.Join(plan.OfSeveral(), ", "))
			}
		}
		if o.seeds < 1 || o.models < 2 || o.budget <= 0 || o.first < 0 {
			return fmt.Errorf("-seeds %d -models %d -budget %v -first %d: the first must be above 0, the second above 1", o.seeds, o.models, o.budget, o.first)
		}
		return nil
	})
}

// outcome is a campaign's answer. Scales are relative to the best scale of any configuration.
type outcome struct {
	ratio   float64 // what the answer's configuration carries, at most its scale; 0 without an answer
	onAxis  float64 // the same, relative to the best level of the axis
	carries float64 // the best that the answer's configuration carries, whatever its scale
	excess  float64 // answer's scale over what its configuration carries
	trials  int
	text    string
}

// key names a series of campaigns.
type key struct{ strategy, kind string }

func run(ctx context.Context, o options, out, messages io.Writer) error {
	series := map[key][]outcome{}
	var guard sync.Mutex
	err := parallel.Try(o.seeds, func(i int) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		seed := uint64(o.first + i)
		all, err := campaigns(o, seed)
		guard.Lock()
		defer guard.Unlock()
		for k, x := range all {
			series[k] = append(series[k], x)
			fmt.Fprintf(messages, "seed %d, %s, %s: %s\n", seed, k.strategy, k.kind, x.text)
		}
		return err
	})
	if err != nil {
		return err
	}
	return report(out, o, series)
}

// campaigns plays the campaigns of a seed.
func campaigns(o options, seed uint64) (map[key]outcome, error) {
	c := searchtest.NewCompany(o.models, seed)
	c.Queue, c.PerOctave, c.Divides = !o.formula, o.perOctave, true
	s, err := c.Settings(search.Budget{Time: o.budget})
	if err != nil {
		return nil, err
	}
	ofShared, ofDivided := c.BestOf(s.Space)
	ofDefault := c.Carries(search.Candidate{}) // it shares the cores, and may always be the answer
	best := map[string]float64{shared: ofShared, divided: max(ofDivided, ofDefault), either: max(ofShared, ofDivided)}
	all := map[key]outcome{}
	for _, kind := range o.kinds {
		c.Divides, c.DividesOnly = kind == either, kind == divided
		for _, strategy := range o.strategies {
			x, err := campaign(c, o, strategy, best[kind])
			if err != nil {
				return nil, err
			}
			all[key{strategy, kind}] = x
		}
	}
	return all, nil
}

// mostTrials ends a campaign that does not end by itself.
const mostTrials = 5000

func campaign(c searchtest.Company, o options, strategy string, best float64) (outcome, error) {
	s, err := c.Settings(search.Budget{Time: o.budget})
	if err != nil {
		return outcome{}, err
	}
	p, err := plan.New(strategy, s)
	if err != nil {
		return outcome{}, err
	}
	x := outcome{trials: len(c.Run(p, mostTrials))}
	answer := p.SoFar().Recommended
	if answer == nil {
		x.text = fmt.Sprintf("no answer after %d trials, the best is %.3f", x.trials, best)
		return x, nil
	}
	scale, carries := answer.Load.Level(), c.Carries(answer.Candidate)
	best = max(best, carries) // cells are compared by short simulations
	kept := min(scale, carries)
	x.ratio, x.carries, x.excess = kept/best, carries/best, scale/carries
	x.onAxis = min(scale, s.Space.Load.AtMost(carries)) / s.Space.Load.AtMost(best)
	x.text = fmt.Sprintf("%d trials, %s at %.3f, which carries %.3f; the best is %.3f: %.3f (%.3f on the axis)", x.trials, answer.Candidate, scale, carries, best, x.ratio, x.onAxis)
	return x, nil
}

// near is the distance from the best that the acceptance of several models allows, and far that of an infeasible
// answer (docs/design/models.md, M1).
const near, far = 0.98, 1.02

func report(out io.Writer, o options, series map[key][]outcome) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "cores\tstrategy\tcampaigns\tanswers\tconfiguration within 2 %\tstated within 2 %\ton the axis\tstated within 5 %\tmedian\tleast\tinfeasible by 2 %\ttrials")
	for _, kind := range o.kinds {
		for _, strategy := range o.strategies {
			list := series[key{strategy, kind}]
			count := func(is func(outcome) bool) int {
				n := 0
				for _, x := range list {
					if is(x) {
						n++
					}
				}
				return n
			}
			slices.SortFunc(list, func(a, b outcome) int { return cmp.Compare(a.ratio, b.ratio) })
			trials := 0
			for _, x := range list {
				trials += x.trials
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%d\t%d\t%.3f\t%.3f\t%s\t%d\n", kind, strategy, len(list), count(func(x outcome) bool { return x.ratio > 0 }),
				share(count(func(x outcome) bool { return x.carries >= near }), len(list)), share(count(func(x outcome) bool { return x.ratio >= near }), len(list)),
				count(func(x outcome) bool { return x.onAxis >= near }), count(func(x outcome) bool { return x.ratio >= 0.95 }),
				list[len(list)/2].ratio, list[0].ratio, share(count(func(x outcome) bool { return x.excess > far }), len(list)), trials/len(list))
		}
	}
	return w.Flush()
}

// share returns a count with the 95 % interval of its share, in per cent (Wilson, JASA 22, 1927).
func share(n, of int) string {
	const z2 = stats.Half95 * stats.Half95
	all, p := float64(of), float64(n)/float64(of)
	middle, half := p+z2/(2*all), stats.Half95*math.Sqrt(p*(1-p)/all+z2/(4*all*all))
	at := func(x float64) float64 { return 100 * min(max(x/(1+z2/all), 0), 1) }
	return fmt.Sprintf("%d [%.0f, %.0f] %%", n, at(middle-half), at(middle+half))
}
