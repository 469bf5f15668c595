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
			second, first, err := confirmPlan(p)
			if n := first.Missing(); n > 0 {
				return exit.With(exit.Inconclusive, fmt.Errorf("the first stage has %d campaigns without a result; `tuner fleet run` goes on with it", n))
			}
			if err != nil {
				return err
			}
			return watchFleet(cmd, con, second, o)
		},
	}
	watchFlags(cmd, &o)
	return cmd
}

// confirmPlan makes the plan of the second stage from what the first one has measured. Types of machines without an
// answer are left out. The list is the first stage's, also where nothing is left.
func confirmPlan(p fleet.Plan) (second fleet.Plan, first results.List, err error) {
	if p.Fleet.Confirm == nil {
		return second, first, exit.Usagef("%s: there is no `confirm:`, such as confirm: {machines: 5, top: 3, budget: 4m}", p.Fleet.Path)
	}
	if first, err = readResults(p, results.Read); err != nil {
		return second, results.List{}, err
	}
	r, err := results.Rank(p.Fleet.Output, first, replay, describe)
	if err != nil {
		return second, first, err
	}
	if second, err = fleet.ConfirmPlan(p.Fleet, os.ReadFile, results.Left(r, p.Fleet.Confirm.Top)); err != nil {
		return second, first, exit.With(exit.Usage, err)
	}
	if len(second.Parts) == 0 {
		const nothing = "no type of machine has an answer, so there is nothing to confirm"
		if err := missing(first); err != nil {
			return second, first, exit.With(exit.Inconclusive, fmt.Errorf("%s: %w", nothing, err))
		}
		return second, first, exit.With(exit.Infeasible, errors.New(nothing))
	}
	return second, first, nil
}

// lacking is the error of a second stage after a first one that lacks campaigns; nil if it has all.
func lacking(first results.List) error {
	err := missing(first)
	if err == nil {
		return nil
	}
	return exit.With(exit.Inconclusive, fmt.Errorf("%w in the first stage, and the second one is without them\n    hint: mend what ended them, or take their types of machines out of the file", err))
}

// watchFlags adds the flags of verbs that watch a run.
func watchFlags(cmd *cobra.Command, o *watchOptions) {
	fleetFile(cmd, &o.file)
	terminal.AddFormat(cmd.Flags(), &o.format, "`format` on stdout: text or json")
	cmd.Flags().BoolVar(&o.harden, "harden", false, "add a policy of the cluster: a worker may create immutable records of its own item alone")
	cmd.Flags().BoolVar(&o.blind, "rescue-unseen", false, "replace a hanging campaign also if you may not read whether its node answers")
}
