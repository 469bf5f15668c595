// Plan checks the promise of `tuner plan`. It makes weeks of traffic with daily and weekly waves and
// bursts, plans for the first five days, and simulates the plan on the last two. It compares the cost
// there with that of a clairvoyant, and with an autoscaler on 80 % of the processor time. The clairvoyant's
// cost over that autoscaler's bounds what any autoscaler can save with the same configuration. It prints a
// row for each week, and how long the decision took. It fails if a plan misses the limit on the days kept out,
// or if the plans cost more than promised on average.
//
//	go -C lab run ./bench/plan -result lab/testdata/plan/result.json -weeks 5
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"tuner/capacity"
	"tuner/capacity/replica"
	"tuner/capacity/traffic"
	"tuner/lab/program"
	"tuner/report/result"
	"tuner/search/queuesim"
)

// options are the flags.
type options struct {
	result string
	weeks  int
	limit  time.Duration
	window time.Duration
	peak   float64
	how    string
}

// planned is the number of days that a plan sees.
const planned = 5

// What the plan promises on the days that were kept out.
const (
	share        = 0.99
	overIdeal    = 1.1  // cost over the clairvoyant's, at most
	underCPU     = 0.75 // cost over the default configuration's with an autoscaler on the processor time, at most
	seedOfPlans  = 1
	mostReplicas = 500
)

func main() { program.Main("plan", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.StringVar(&o.result, "result", "lab/testdata/plan/result.json", "result.json of an analyzed campaign")
	f.IntVar(&o.weeks, "weeks", 5, "number of weeks, each with a traffic of its own")
	f.DurationVar(&o.limit, "limit", 50*time.Millisecond, "limit on the latency of 99 % of the requests")
	f.DurationVar(&o.window, "window", 30*time.Second, "time over which the autoscaler's metric is a mean")
	f.Float64Var(&o.peak, "peak", 8000, "highest rate of the daily wave, in requests/s")
	f.Choice(&o.how, "balancer", string(queuesim.Random), []string{string(queuesim.Random), string(queuesim.RoundRobin), string(queuesim.LeastRequests)}, "how requests are spread")
	f.Check(func() error {
		if o.weeks < 1 || o.limit <= 0 || o.peak <= 0 {
			return fmt.Errorf("-weeks %d -limit %v -peak %g: all must be above zero", o.weeks, o.limit, o.peak)
		}
		return nil
	})
}

// row has the figures of a week.
type row struct {
	took             time.Duration // of the decision, without the reading of files
	plan             capacity.Plan
	kept, ideal      capacity.Fleet // on the days kept out
	cpu, defaultOnes *capacity.Fleet
}

func run(_ context.Context, o options, out, _ io.Writer) error {
	text, err := os.ReadFile(o.result)
	if err != nil {
		return fmt.Errorf("cannot read result: %w", err)
	}
	r, err := result.Parse(o.result, text)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "week  seconds  chosen                      kept days: within  /clairvoyant  /80 % CPU  (within)  clairvoyant/80 % CPU  /default + 80 % CPU  (within)")
	var misses []error
	overClairvoyant, overCPU, bound, overDefault := 0.0, 0.0, 0.0, 0.0
	for i := range o.weeks {
		x, err := judge(o, r, uint64(i)+1)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%4d  %7.2f  %-27s  %17.3f%%  %12.3f  %s  %20.3f  %s\n", i+1, x.took.Seconds(),
			fmt.Sprintf("%s %.4g/s %gs", x.plan.Best.Configuration, x.plan.Best.Scaling.Target, x.plan.Best.Scaling.Down),
			100*x.kept.Within, x.kept.Hours/x.ideal.Hours, against(x.kept, x.cpu), over(x.ideal, x.cpu), against(x.kept, x.defaultOnes))
		if x.kept.Within < share {
			misses = append(misses, fmt.Errorf("week %d: %.3f %% of the requests within the limit, want %g %%", i+1, 100*x.kept.Within, 100*share))
		}
		overClairvoyant += x.kept.Hours / x.ideal.Hours / float64(o.weeks)
		overCPU += over(x.kept, x.cpu) / float64(o.weeks)
		bound += over(x.ideal, x.cpu) / float64(o.weeks)
		overDefault += over(x.kept, x.defaultOnes) / float64(o.weeks)
	}
	fmt.Fprintf(out, "mean: %.3f × a clairvoyant, %.3f × the same configuration with 80 %% CPU (a clairvoyant: %.3f), %.3f × the default configuration with 80 %% CPU\n",
		overClairvoyant, overCPU, bound, overDefault)
	if overClairvoyant > overIdeal {
		misses = append(misses, fmt.Errorf("%.3f × the clairvoyant's cost, want at most %g", overClairvoyant, overIdeal))
	}
	if overDefault > underCPU {
		misses = append(misses, fmt.Errorf("%.3f × the cost of the default configuration with 80 %% CPU, want at most %g", overDefault, underCPU))
	}
	return errors.Join(misses...)
}

// over returns the cost over another fleet's; 0 without one.
func over(kept capacity.Fleet, other *capacity.Fleet) float64 {
	if other == nil {
		return 0
	}
	return kept.Hours / other.Hours
}

func against(kept capacity.Fleet, other *capacity.Fleet) string {
	if other == nil {
		return "        –         –"
	}
	return fmt.Sprintf("%9.3f  %7.2f%%", over(kept, other), 100*other.Within)
}

// judge plans for the first days of a week, and simulates the rest.
func judge(o options, r result.Result, seed uint64) (row, error) {
	rates := week(o.peak, seed)
	seen, err := read(rates[:planned*traffic.PerDay], seed)
	if err != nil {
		return row{}, err
	}
	rest, err := read(rates[planned*traffic.PerDay:], seed+1000)
	if err != nil {
		return row{}, err
	}
	q := capacity.Question{
		Traffic: seen, Limit: o.limit, Share: share, Balancer: queuesim.Balancer(o.how), Scaler: capacity.HPA, Startup: -1, Window: o.window,
		Min: 1, Max: mostReplicas, Seed: seedOfPlans,
	}
	began := time.Now()
	replicas, _, err := capacity.Replicas("box", r, q.Limit, q.Share, seedOfPlans)
	if err != nil {
		return row{}, err
	}
	x := row{}
	if x.plan, err = capacity.Find(q, r.Model, replicas); err != nil {
		return row{}, err
	}
	x.took = time.Since(began)
	q.Traffic = rest
	chosen := replicas[slices.IndexFunc(replicas, func(c replica.Replica) bool { return c.Configuration == x.plan.Best.Configuration })]
	if x.kept, err = capacity.Replay(q, chosen, x.plan.Best.Scaling); err != nil {
		return row{}, err
	}
	wide := x.plan.Clairvoyant.Scaling
	wide.Min, wide.Max = 1, mostReplicas
	if x.ideal, err = capacity.Replay(q, chosen, wide); err != nil {
		return row{}, err
	}
	if x.cpu, err = usual(q, chosen, x.plan.Usual); err != nil {
		return row{}, err
	}
	if i := slices.IndexFunc(replicas, func(c replica.Replica) bool { return c.IsDefault }); i >= 0 {
		x.defaultOnes, err = usual(q, replicas[i], x.plan.UsualDefault)
	}
	return x, err
}

// usual simulates an autoscaler on the processor time on the days kept out; nil without one.
func usual(q capacity.Question, r replica.Replica, planned *capacity.Fleet) (*capacity.Fleet, error) {
	if planned == nil {
		return nil, nil
	}
	f, err := capacity.Replay(q, r, planned.Scaling)
	return &f, err
}
