package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tuner/profile"
	"tuner/search"
)

// dryRun is what `tuner profile --dry-run --output json` prints.
type dryRun struct {
	Candidates []search.Candidate `json:"candidates"`
	Folds      []search.Fold      `json:"folds"`
	Pools      int                `json:"pools"`
	Loads      []float64          `json:"loads"`
	Estimate   float64            `json:"estimate_seconds"`
	Budget     float64            `json:"budget_seconds,omitempty"`
}

// printDryRun lists the candidates, what was folded and why, and how long measuring all of them would take.
func printDryRun(out io.Writer, format string, plan profile.Plan) error {
	if format == "json" {
		return writeJSON(out, dryRun{plan.Candidates, plan.Folds, plan.Pools, plan.Loads, plan.Estimate.Seconds(), plan.Budget.Time.Seconds()})
	}
	fmt.Fprintf(out, "%d candidates and the default, in %d engine processes\n", len(plan.Candidates), plan.Pools)
	for _, c := range plan.Candidates {
		fmt.Fprintf(out, "  %s\n", c.Describe())
	}
	if len(plan.Folds) > 0 {
		fmt.Fprintln(out, "folded:")
	}
	for _, f := range plan.Folds {
		fmt.Fprintf(out, "  %d × %s\n", f.Count, f.Reason)
	}
	fmt.Fprintf(out, "loads: %s\n", levelsText(plan.Loads))
	fmt.Fprintf(out, "time: about %s for all of them", clockText(plan.Estimate.Round(time.Second)))
	switch budget := plan.Budget.Time; {
	case budget > 0 && budget < plan.Estimate:
		fmt.Fprintf(out, "; the budget of %s ends the search earlier\n", budget)
	case budget > 0:
		fmt.Fprintf(out, ", within the budget of %s\n", budget)
	default:
		fmt.Fprintln(out)
	}
	return nil
}

func levelsText(levels []float64) string {
	parts := make([]string, len(levels))
	for i, l := range levels {
		parts[i] = fmt.Sprintf("%g", l)
	}
	return strings.Join(parts, ", ")
}
