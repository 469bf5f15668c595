// Package dryrun describes what a campaign would do: the conversions, the candidates, the folds
// with their reasons, and a time estimate. It measures nothing and changes nothing.
package dryrun

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/profile"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// Forecast is the description of a campaign, as `tuner profile --dry-run --format json` prints it.
type Forecast struct {
	Conversions []string  `json:"conversions"` // precisions that would be made first
	Check       string    `json:"accuracy_check,omitempty"`
	Servers     []string  `json:"servers,omitempty"` // actions on servers other than the bundled engine
	Earlier     []Earlier `json:"earlier"`           // campaigns from which the search learns
	Count       int       `json:"candidate_count"`
	// false if there are too many pools to count: the numbers then are upper bounds
	IsCounted  bool               `json:"counted"`
	Candidates []search.Candidate `json:"candidates"` // the first mostCandidates
	Folds      []search.Fold      `json:"folds"`      // empty unless they were counted
	Pools      int                `json:"pools"`      // engine processes
	Loads      []float64          `json:"loads"`
	Rate       bool               `json:"request_rate,omitempty"` // loads are requests/s, otherwise requests in flight, or factors of Traffic
	Traffic    measure.Mix        `json:"traffic,omitzero"`       // several models: the load of each at scale 1
	Estimate   float64            `json:"estimate_seconds"`
	Budget     float64            `json:"budget_seconds,omitempty"`
	Until      float64            `json:"until,omitempty"` // relative gain at which the campaign may end early

	reused []string // lines about Earlier, for people
}

// mostCandidates is the largest number of candidates in a forecast.
const mostCandidates = 10_000

// New makes the forecast of a campaign. servers describe the actions on servers other than the
// bundled engine.
func New(s profile.Setup, servers []string) (Forecast, error) {
	p, facts := s.Profile, s.Facts
	earlier, err := profile.Reuse(s)
	if err != nil {
		return Forecast{}, exit.With(exit.Usage, err)
	}
	settings := p.Settings(facts)
	planned, err := plan.New(p.Search.Strategy, settings)
	if err != nil {
		return Forecast{}, exit.Usagef("%s: %v", p.Path, err)
	}
	candidates := planned.Candidates()
	count, isCounted := candidates.Len()
	pools, _ := candidates.PoolCount()
	return Forecast{
		Conversions: conversions(s), Check: checkText(p, facts), Servers: servers,
		Earlier: earlierOf(earlier), reused: EarlierLines(p, earlier),
		Count: count, IsCounted: isCounted, Candidates: firstCandidates(candidates, mostCandidates), Folds: candidates.Folds(),
		Pools: pools, Loads: settings.Space.Load.Levels, Rate: settings.Space.Load.Rate && settings.Space.Load.Mix.IsZero(), Traffic: settings.Space.Load.Mix,
		Estimate: planned.Remaining().Seconds(), Budget: settings.Budget.Time.Seconds(), Until: settings.Until,
	}, nil
}

// conversions lists the precisions that are made before the search, of several models with their names.
func conversions(s profile.Setup) []string {
	list := append([]string{}, profile.Conversions(s.Profile, s.Facts)...)
	for _, part := range s.Parts {
		for _, name := range profile.Conversions(part.Profile, part.Facts) {
			list = append(list, name+" of "+part.Profile.Name)
		}
	}
	return list
}

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

// checkText names the limit of variants, and the data of the comparison; "" if nothing is compared.
func checkText(p spec.Profile, facts search.Facts) string {
	if !profile.Compares(p, facts) {
		return ""
	}
	return p.Accuracy.Limit.String() + " on " + cmp.Or(p.ComparedOn(), "synthetic inputs")
}

// maxListed is the largest number of printed candidates. The counts below them must stay on the
// screen.
const maxListed = 60

// Write prints the forecast for people.
func (f Forecast) Write(out io.Writer) error {
	var b strings.Builder
	for _, line := range slices.Concat(f.Servers, f.reused) {
		fmt.Fprintln(&b, line)
	}
	for _, name := range f.Conversions {
		fmt.Fprintf(&b, "first: %s is made from the model (once: it is kept for the next time)\n", name)
	}
	if f.Check != "" {
		fmt.Fprintf(&b, "first: accuracy is checked: %s; a variant that misses the limit is not measured\n", f.Check)
	}
	f.writeCandidates(&b)
	switch {
	case !f.Traffic.IsZero():
		fmt.Fprintf(&b, "loads: %g to %g times %s\n", f.Loads[0], f.Loads[len(f.Loads)-1], f.Traffic)
	case f.Rate:
		fmt.Fprintf(&b, "loads: %s requests/s\n", levelsText(f.Loads))
	default:
		fmt.Fprintf(&b, "loads: %s\n", levelsText(f.Loads))
	}
	fmt.Fprintf(&b, "time: about %s", secondsText(f.Estimate))
	if f.Budget > 0 {
		fmt.Fprintf(&b, " (budget %s)", secondsText(f.Budget))
	}
	if f.Until > 0 {
		fmt.Fprintf(&b, ", or until nothing else is better by more than %.3g %%", 100*f.Until)
	}
	fmt.Fprintln(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// writeCandidates lists the candidates and the folds.
func (f Forecast) writeCandidates(b *strings.Builder) {
	most := ""
	if !f.IsCounted {
		most = "at most "
	}
	fmt.Fprintf(b, "%s%s and the default, in %s%s\n", most, words.Count(f.Count, "candidate"), most, words.Count(f.Pools, "engine process"))
	listed := f.Candidates[:min(maxListed, len(f.Candidates))]
	for _, c := range listed {
		fmt.Fprintf(b, "  %s\n", c.Describe())
	}
	switch more := f.Count - len(listed); {
	case f.Count > len(f.Candidates):
		fmt.Fprintf(b, "  … and %s%d more\n", most, more)
	case more > 0:
		fmt.Fprintf(b, "  … and %d more (all of them: --format json)\n", more)
	}
	switch {
	case !f.IsCounted:
		fmt.Fprintln(b, "folded: not counted, since there are too many engine processes")
	case len(f.Folds) > 0:
		fmt.Fprintln(b, "folded:")
	}
	for _, fold := range f.Folds {
		fmt.Fprintf(b, "  %d × %s\n", fold.Count, fold.Reason)
	}
}

func secondsText(s float64) string { return words.Clock(time.Duration(s * float64(time.Second))) }

func levelsText(levels []float64) string {
	parts := make([]string, len(levels))
	for i, l := range levels {
		parts[i] = fmt.Sprintf("%g", l)
	}
	return strings.Join(parts, ", ")
}
