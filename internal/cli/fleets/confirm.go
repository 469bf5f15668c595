package fleets

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tuner/fleet"
	"tuner/fleet/results"
	"tuner/internal/exit"
	"tuner/internal/terminal"
)

func newFleetConfirm(con Console) *cobra.Command {
	o := watchOptions{verb: "confirm"}
	cmd := &cobra.Command{
		Use:   "confirm -f fleet.yaml",
		Short: "Measure the best configurations again, on more machines",
		Long: `Runs the second stage, if fleet.yaml has 'confirm:'. 'tuner fleet run' includes it. It reads the ranking of what was collected. Types that cost more by over 10 % are left out. On each of the others, campaigns of the best configurations run on several machines.

The answer has intervals over machines, and one for a machine that was not measured. It is in OUTPUT/confirm.`,
		Example: "  tuner fleet confirm -f fleet.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := readPrinted(o.file, o.format)
			if err != nil {
				return err
			}
			second, err := confirmPlan(p)
			if err != nil {
				return err
			}
			return watchFleet(cmd, con, second, o)
		},
	}
	watchFlags(cmd, &o)
	return cmd
}

// confirmPlan makes the plan of the second stage from what the first one has measured.
func confirmPlan(p fleet.Plan) (fleet.Plan, error) {
	if p.Fleet.Confirm == nil {
		return p, exit.Usagef("%s: there is no `confirm:`, such as confirm: {machines: 5, top: 3, budget: 4m}", p.Fleet.Path)
	}
	list, err := readResults(p, results.Read)
	if err != nil {
		return p, err
	}
	if n := list.Missing(); n > 0 {
		return p, exit.With(exit.Inconclusive, fmt.Errorf("the first stage has %d campaigns without a result; `tuner fleet run` goes on with it", n))
	}
	r, err := results.Rank(p.Fleet.Output, list, replay, describe)
	if err != nil {
		return p, err
	}
	second, err := fleet.ConfirmPlan(p.Fleet, os.ReadFile, results.Left(r, p.Fleet.Confirm.Top))
	if err != nil {
		return p, exit.With(exit.Usage, err)
	}
	if len(second.Parts) == 0 {
		return p, exit.With(exit.Infeasible, errors.New("no type of machine has an answer, so there is nothing to confirm"))
	}
	return second, nil
}

// watchFlags adds the flags of verbs that watch a run.
func watchFlags(cmd *cobra.Command, o *watchOptions) {
	fleetFile(cmd, &o.file)
	terminal.AddFormat(cmd.Flags(), &o.format, "`format` on stdout: text or json")
	cmd.Flags().BoolVar(&o.harden, "harden", false, "add a policy of the cluster: a worker may create immutable records of its own item alone")
	cmd.Flags().BoolVar(&o.blind, "rescue-unseen", false, "replace a hanging campaign also if you may not read whether its node answers")
}
