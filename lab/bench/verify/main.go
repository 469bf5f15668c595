// Verify asks how well `tuner plan --verify` agrees with its own simulation. It plans a fixed number of
// replicas of an analyzed campaign for constant traffic at shares of their capacity, lets the plan be
// replayed on as many real servers of this machine, and prints the simulated and the measured latencies of
// each. It judges by the plan's own rule: a difference of 10 % in the 99th percentile.
//
//	go -C lab run ./bench/verify -campaign out/minilm -loads 0.3,0.6,0.8 -engines 3
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tuner/capacity"
	"tuner/lab/bench/sidebyside"
	"tuner/lab/program"
)

// options are the flags.
type options struct {
	campaign string
	tuner    string
	library  string
	loads    string
	engines  int
	rounds   int
	length   time.Duration
	limit    time.Duration
	server   string
	shares   []float64
}

func main() { program.Main("verify", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.Existing(&o.campaign, "campaign", "out/minilm", "output folder of a campaign that was analyzed")
	f.Tuner(&o.tuner)
	f.Library(&o.library)
	f.StringVar(&o.loads, "loads", "0.3,0.6,0.8", "loads as shares of the capacity, with commas")
	f.IntVar(&o.engines, "engines", 3, "number of servers, and of the plan's replicas")
	f.IntVar(&o.rounds, "rounds", 1, "replays of each load")
	f.DurationVar(&o.length, "time", time.Minute, "length of a replay")
	f.DurationVar(&o.limit, "p99", time.Second, "limit of the plan, which must hold at the highest load")
	f.StringVar(&o.server, "server", "", "program of a Triton that serves instead of the bundled engine")
	f.Check(func() error {
		for _, text := range strings.Split(o.loads, ",") {
			share, err := strconv.ParseFloat(text, 64)
			if err != nil || !(share > 0 && share < 1) {
				return fmt.Errorf("-loads %q: %q is no share between 0 and 1", o.loads, text)
			}
			o.shares = append(o.shares, share)
		}
		if o.engines < 1 || o.rounds < 1 {
			return fmt.Errorf("-engines %d -rounds %d: both must be above zero", o.engines, o.rounds)
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	return program.InFolder("", "bench-verify", func(work string) error {
		p, err := o.plan(ctx, work, 1, messages)
		if err != nil {
			return err
		}
		chosen, most := p.Best.Configuration, 0.0
		for _, c := range p.Configurations {
			if c.Configuration == chosen {
				most = c.Capacity
			}
		}
		if most == 0 {
			return errors.New("the plan knows no capacity of its configuration")
		}
		text := fmt.Sprintf("%s\n\n%s (%s), %.5g requests/s each at most\n\n", sidebyside.Machine(ctx), chosen, p.Best.Setup, most) +
			"| load | requests/s, planned and here | slowness | capacity | late, sender's cores | simulated p50, p99 ms | measured p50, p99 ms | p99 measured / simulated | outcome |\n|---|---|---|---|---|---|---|---|---|\n"
		if err := sidebyside.Print(out, text); err != nil {
			return err
		}
		for _, share := range o.shares {
			for range o.rounds {
				if p, err = o.plan(ctx, work, share*most, messages, "--verify", "--verify-engines", strconv.Itoa(o.engines), "--verify-time", o.length.String(),
					"--ort-library", o.library, "--verify-server", o.server); err != nil {
					return err
				}
				if p.Best.Configuration != chosen {
					return fmt.Errorf("the plan for %g of the capacity of %s chose %s", share, chosen, p.Best.Configuration)
				}
				if err := sidebyside.Print(out, row(share, p.Verification)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func row(share float64, v *capacity.Verification) string {
	ms := func(s float64) float64 { return 1e3 * s }
	return fmt.Sprintf("| %g | %.1f, %.1f | %.3f | %.3f | %.2f %%, %.3f | %.2f, %.2f | %.2f, %.2f [%.2f, %.2f] | %.3f | %s |\n", share, v.PlannedRate, v.Rate, v.Slowness, v.Capacity,
		100*float64(v.Late)/float64(max(v.Requests, 1)), v.Sender,
		ms(v.Simulated.P50), ms(v.Simulated.P99), ms(v.Measured.P50), ms(v.Measured.P99), ms(v.P99Range[0]), ms(v.P99Range[1]), v.Measured.P99/v.Simulated.P99, v.Outcome)
}

// plan asks tuner for a plan of so many replicas, each of which gets a rate.
func (o options) plan(ctx context.Context, work string, rate float64, messages io.Writer, flags ...string) (capacity.Plan, error) {
	file := filepath.Join(work, "plan.json")
	replicas := strconv.Itoa(o.engines)
	args := append([]string{"plan", o.campaign, "--traffic", fmt.Sprintf("mean %.3f/s, constant", rate*float64(o.engines)), "--p99", o.limit.String(),
		"--min-replicas", replicas, "--max-replicas", replicas, "--autoscaler", string(capacity.Fixed), "--format", "json", "-o", file}, flags...)
	cmd := exec.CommandContext(ctx, o.tuner, args...)
	cmd.Stderr = messages
	failed := cmd.Run() // a refuted plan has figures too
	text, err := os.ReadFile(file)
	if err != nil {
		return capacity.Plan{}, errors.Join(failed, err)
	}
	p, err := capacity.ParsePlan(file, text)
	switch {
	case err != nil:
		return capacity.Plan{}, err
	case len(flags) > 0 && p.Verification == nil:
		return capacity.Plan{}, fmt.Errorf("nothing was replayed: %w: %s", failed, p.Summary)
	}
	return p, os.Remove(file)
}
