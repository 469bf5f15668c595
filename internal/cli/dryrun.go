package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tuner/profile"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// dryRun is what a campaign is about to do, as `tuner profile --dry-run --output json` prints it.
type dryRun struct {
	Conversions []string           `json:"conversions"` // precisions that would be made first
	Check       string             `json:"accuracy_check,omitempty"`
	Servers     []string           `json:"servers,omitempty"` // other than the bundled engine: what would be done to them
	Earlier     []earlierCampaign  `json:"earlier"`           // that the search learns from
	Count       int                `json:"candidate_count"`
	IsCounted   bool               `json:"counted"`    // else there are so many pools that their numbers are the most that there may be
	Candidates  []search.Candidate `json:"candidates"` // the first of them, where there are more than mostPrinted
	Folds       []search.Fold      `json:"folds"`      // none unless they were counted
	Pools       int                `json:"pools"`      // engine processes
	Loads       []float64          `json:"loads"`
	Rate        bool               `json:"request_rate,omitempty"` // loads are requests/s, else requests in flight
	Estimate    float64            `json:"estimate_seconds"`
	Budget      float64            `json:"budget_seconds,omitempty"`
	Until       float64            `json:"until,omitempty"` // the gain at which the campaign may end earlier, as a share
}

// runDryRun lists what would be converted, the candidates, what was folded and why, and how long the campaign would take. It
// refuses what the comparison of variants would refuse; the rest has been checked (checkCampaign).
func runDryRun(con console, o profileOptions, s profile.Setup, servers []string) error {
	p, facts := s.Profile, s.Facts
	if _, _, err := variantData(p, s.Subject); err != nil {
		return inputError(err)
	}
	earlier, err := profile.Reuse(s)
	if err != nil {
		return inputError(err)
	}
	settings := p.Settings(facts)
	planned, err := plan.New(p.Search.Strategy, settings)
	if err != nil {
		return usageErrorf("%s: %v", o.file, err)
	}
	candidates := planned.Candidates()
	count, isCounted := candidates.Len()
	pools, _ := candidates.PoolCount()
	d := dryRun{Conversions: append([]string{}, profile.Conversions(p, facts)...), Check: checkText(p, facts), Earlier: earlierCampaigns(earlier),
		Count: count, IsCounted: isCounted, Candidates: firstCandidates(candidates, mostPrinted), Folds: candidates.Folds(),
		Servers: servers, Pools: pools, Loads: settings.Space.Load.Levels, Rate: settings.Space.Load.Rate,
		Estimate: planned.Remaining().Seconds(), Budget: settings.Budget.Time.Seconds(), Until: settings.Until}
	if o.output == "json" {
		return writeJSON(con.out, d)
	}
	for _, line := range slices.Concat(servers, earlierLines(p, d.Earlier)) {
		fmt.Fprintln(con.out, line)
	}
	printDryRun(con.out, d, planned.Remaining(), settings.Budget.Time)
	return nil
}

// mostPrinted is how many candidates are printed for programs.
const mostPrinted = 10_000

func firstCandidates(candidates *search.Candidates, most int) []search.Candidate {
	var list []search.Candidate
	next := candidates.Walk()
	for len(list) < most {
		c, ok := next()
		if !ok {
			break
		}
		list = append(list, c)
	}
	return list
}

// checkText says what the variants are held to, and on what; "" when nothing is checked.
func checkText(p spec.Profile, facts search.Facts) string {
	if !profile.Compares(p, facts) {
		return ""
	}
	return p.Accuracy.Limit.String() + " on " + cmp.Or(p.Accuracy.Data, "synthetic inputs")
}

// maxListed is how many candidates are printed for people: the counts below them must stay on the screen.
const maxListed = 60

func printDryRun(out io.Writer, d dryRun, estimate, budget time.Duration) {
	for _, name := range d.Conversions {
		fmt.Fprintf(out, "first: %s is made of the model (once: it is kept for the next time)\n", name)
	}
	if d.Check != "" {
		fmt.Fprintf(out, "first: accuracy is checked: %s; what misses it is not measured\n", d.Check)
	}
	most := ""
	if !d.IsCounted {
		most = "at most "
	}
	fmt.Fprintf(out, "%s%s and the default, in %s%s\n", most, countText(d.Count, "candidate", "candidates"),
		most, countText(d.Pools, "engine process", "engine processes"))
	listed := d.Candidates
	if len(listed) > maxListed {
		listed = listed[:maxListed]
	}
	for _, c := range listed {
		fmt.Fprintf(out, "  %s\n", c.Describe())
	}
	switch more := d.Count - len(listed); {
	case d.Count > len(d.Candidates):
		fmt.Fprintf(out, "  … and %s%d more\n", most, more)
	case more > 0:
		fmt.Fprintf(out, "  … and %d more (all of them: --output json)\n", more)
	}
	switch {
	case !d.IsCounted:
		fmt.Fprintln(out, "folded: not counted, of so many engine processes")
	case len(d.Folds) > 0:
		fmt.Fprintln(out, "folded:")
	}
	for _, f := range d.Folds {
		fmt.Fprintf(out, "  %d × %s\n", f.Count, f.Reason)
	}
	unit := ""
	if d.Rate {
		unit = " requests/s"
	}
	fmt.Fprintf(out, "loads: %s%s\n", levelsText(d.Loads), unit)
	fmt.Fprintf(out, "time: about %s", clockText(estimate))
	if budget > 0 {
		fmt.Fprintf(out, " (budget %s)", clockText(budget))
	}
	if d.Until > 0 {
		fmt.Fprintf(out, ", or until nothing else is better by more than %.3g %%", 100*d.Until)
	}
	fmt.Fprintln(out)
}

// countText prints a number with its noun.
func countText(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func levelsText(levels []float64) string {
	parts := make([]string, len(levels))
	for i, l := range levels {
		parts[i] = fmt.Sprintf("%g", l)
	}
	return strings.Join(parts, ", ")
}
