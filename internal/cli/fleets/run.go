package fleets

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tuner/fleet"
	"tuner/fleet/cluster"
	"tuner/fleet/driver"
	"tuner/fleet/results"
	"tuner/internal/exit"
	"tuner/internal/words"
)

// newDriver makes the driver of a plan, which tells the user what happens on the console's messages.
func newDriver(con Console, p fleet.Plan) driver.Driver {
	k := kubectl(p)
	return driver.Driver{Plan: p, Read: k, List: k, Change: k, Rescue: k, End: k, Replay: replay,
		Say: func(line string) { fmt.Fprintf(con.Err, "%s %s\n", time.Now().Format("15:04:05"), line) }}
}

func kubectl(p fleet.Plan) cluster.Kubectl {
	return cluster.Kubectl{Context: p.Fleet.Cluster.Context, Namespace: p.Fleet.Cluster.Namespace}
}

func newFleetRun(con Console) *cobra.Command {
	o := watchOptions{verb: "run"}
	cmd := &cobra.Command{
		Use:   "run -f fleet.yaml",
		Short: "Run a fleet: create its objects, watch, collect, and rank the types of machines",
		Long: `Creates what is not in the cluster yet, says what each campaign does, and writes each journal as it is delivered. At the end it ranks as
'tuner fleet analyze' does. All goes through your kubectl.

The same file is the same run: after Ctrl-C, or on another laptop, the same command resumes. The pods need no one to watch them.

A campaign on a node that does not answer is not replaced by the cluster. This command does it: it says that the campaign's own pod is over.
The campaign then begins again on another node. If the first one comes back, the first result counts.`,
		Example: "  tuner fleet run -f fleet.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := readPrinted(o.file, o.format)
			if err != nil {
				return err
			}
			if p.Fleet.Confirm == nil {
				return watchFleet(cmd, con, p, o)
			}
			if err := collectFleet(cmd, con, p, o); err != nil {
				return err
			}
			second, first, err := confirmPlan(p) // what is missing by now was given up
			if err != nil {
				return err
			}
			if err := watchFleet(cmd, con, second, o); err != nil {
				return exit.Leading(err, lacking(first))
			}
			return lacking(first)
		},
	}
	watchFlags(cmd, &o)
	return cmd
}

// watchOptions are those of a verb that watches a run.
type watchOptions struct {
	file, verb, format string
	harden, blind      bool
}

// driver makes the driver of a plan with the options.
func (o watchOptions) driver(con Console, p fleet.Plan) driver.Driver {
	d := newDriver(con, p)
	d.Harden, d.Blind = o.harden, o.blind
	return d
}

// watchFleet carries a run through, and ranks what it has measured. Further campaigns follow if others disturbed
// its machines.
func watchFleet(cmd *cobra.Command, con Console, p fleet.Plan, o watchOptions) error {
	if err := collectFleet(cmd, con, p, o); err != nil {
		return err
	}
	dir := p.Fleet.Output
	stage, err := results.Read(dir)
	if err != nil {
		return err
	}
	r, err := results.Rank(dir, stage, replay, describe)
	if err != nil {
		return err
	}
	all := stage
	if p.Fleet.Repeats > 1 { // otherwise its intervals are not over machines
		if err := o.driver(con, p).More(cmd.Context(), kubectl(p), r.More()); err != nil {
			return err
		}
		if all, err = results.ReadAll(dir); err != nil {
			return err
		}
	}
	if len(all.Campaigns) > len(stage.Campaigns) {
		if r, err = results.Rank(dir, all, replay, describe); err != nil {
			return err
		}
	}
	return writeRanking(con.Out, o.format, dir, all, r)
}

// collectFleet carries a run through until all that can come is collected.
func collectFleet(cmd *cobra.Command, con Console, p fleet.Plan, o watchOptions) error {
	states, err := o.driver(con, p).Run(cmd.Context())
	if exit.CodeOf(err) == exit.Interrupted {
		file := words.ShellWord(o.file)
		fmt.Fprintf(con.Err, "next:\n  tuner fleet %s -f %s   goes on watching\n  tuner fleet status -f %s   asks once\n  tuner fleet delete -f %s   ends the fleet\n", o.verb, file, file, file)
	}
	if err != nil {
		return err
	}
	return printUndelivered(con.Err, p, states)
}

// printUndelivered lists the campaigns without a result, with the cluster's words.
func printUndelivered(out io.Writer, p fleet.Plan, states []cluster.Status) error {
	var open []cluster.Status
	for _, s := range states {
		if s.State != cluster.StateDone && s.State != cluster.StateEnded {
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return printFleetStatus(out, p, open)
}

func newFleetDelete(con Console) *cobra.Command {
	var file string
	var uncollected bool
	cmd := &cobra.Command{
		Use:   "delete -f fleet.yaml",
		Short: "Collect what a fleet has delivered, and delete it from the cluster",
		Long: `Writes what was delivered, as 'tuner fleet collect' does. Then it deletes the run's jobs, with their pods, and its plans and records. The account of
the workers and the policy of --harden stay: other fleets of the namespace use them.`,
		Example: "  tuner fleet delete -f fleet.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := readFleet(file)
			if err != nil {
				return err
			}
			if err := deleteRun(cmd, con, p, uncollected); err != nil || p.Fleet.Confirm == nil {
				return err
			}
			// The second stage follows from the results of the first one, also where campaigns are
			// missing. Without an answer it was never begun.
			second, _, err := confirmPlan(p)
			if exit.CodeOf(err) == exit.Inconclusive || exit.CodeOf(err) == exit.Infeasible {
				return nil
			}
			if err != nil {
				return err
			}
			return deleteRun(cmd, con, second, uncollected)
		},
	}
	fleetFile(cmd, &file)
	cmd.Flags().BoolVar(&uncollected, "uncollected", false, "delete also what cannot be collected")
	return cmd
}

// deleteRun collects and deletes one run, and the further campaigns of its stage that the cluster has.
func deleteRun(cmd *cobra.Command, con Console, p fleet.Plan, uncollected bool) error {
	if err := deleteOne(cmd, con, p, uncollected); err != nil {
		return err
	}
	further, err := newDriver(con, p).Further(cmd.Context())
	if err != nil {
		return err
	}
	for _, plan := range further {
		if err := deleteOne(cmd, con, plan, uncollected); err != nil {
			return err
		}
	}
	return nil
}

// deleteOne collects and deletes the objects of a plan.
func deleteOne(cmd *cobra.Command, con Console, p fleet.Plan, uncollected bool) error {
	names, err := newDriver(con, p).Delete(cmd.Context(), uncollected)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.Out, "run %s: deleted %s\n", p.Run, words.Count(len(names), "object"))
	return err
}
