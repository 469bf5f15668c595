package explorer_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

// The flags set the simulated campaigns of TestCampaigns. lab/docs/search.md has the figures of many.
var (
	seeds    = flag.Int("seeds", 6, "campaigns of each kind in TestCampaigns")
	first    = flag.Uint64("first", 0, "first seed in TestCampaigns")
	budget   = flag.Duration("budget", 3*time.Minute, "budget of a campaign in TestCampaigns")
	versus   = flag.String("strategy", plan.Colocation, "strategy in TestCampaigns")
	isBroad  = flag.Bool("all", false, "also campaigns of three and four models in TestCampaigns")
	tolerant = flag.Bool("tolerant", false, "report the figures of TestCampaigns without judging them")
)

// run runs a campaign to its end.
func run(t *testing.T, name string, c searchtest.Company, b search.Budget) (*plan.Plan, search.Settings, []search.Event) {
	t.Helper()
	s, err := c.Settings(b)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(name, s)
	if err != nil {
		t.Fatal(err)
	}
	events := c.Run(p, 2000)
	if len(events) == 2000 {
		t.Fatal("the campaign does not end")
	}
	return p, s, events
}

// figures are the answers of campaigns, relative to the best scale of any candidate on the axis.
type figures struct {
	ratios                     []float64
	answered, good, infeasible int
	trials                     int
}

func (f *figures) add(c searchtest.Company, p *plan.Plan, s search.Settings, events []search.Event) string {
	best := s.Space.Load.AtMost(c.Best(s.Space))
	f.trials += len(events)
	answer := p.SoFar().Recommended
	if answer == nil {
		f.ratios = append(f.ratios, 0)
		return fmt.Sprintf("no answer, the best is %.3f", best)
	}
	scale, carries := answer.Load.Level(), c.Carries(answer.Candidate)
	f.answered++
	ratio := min(scale, s.Space.Load.AtMost(carries)) / best
	f.ratios = append(f.ratios, ratio)
	if ratio >= 0.98 {
		f.good++
	}
	if scale > 1.02*carries {
		f.infeasible++
	}
	return fmt.Sprintf("%d trials, %s at %.3f, which carries %.3f; the best is %.3f", len(events), answer.Candidate, scale, carries, best)
}

// Most answers are within 5 % of the best level of the axis. One campaign tells too little. docs/design/search.md has the
// figures of many campaigns, and of the other strategies.
func TestCampaigns(t *testing.T) {
	t.Parallel()
	kinds := []struct {
		models  int
		divides bool
	}{{2, false}, {2, true}}
	if *isBroad {
		kinds = append(kinds, []struct {
			models  int
			divides bool
		}{{3, false}, {3, true}, {4, false}, {4, true}}...)
	}
	for _, kind := range kinds {
		name := fmt.Sprintf("%d models on shared cores", kind.models)
		if kind.divides {
			name = fmt.Sprintf("%d models on shared or divided cores", kind.models)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f figures
			for seed := *first; seed < *first+uint64(*seeds); seed++ {
				c := searchtest.NewCompany(kind.models, seed)
				c.Divides = kind.divides
				p, s, events := run(t, *versus, c, search.Budget{Time: *budget})
				t.Logf("seed %d: %s", seed, f.add(c, p, s, events))
			}
			slices.Sort(f.ratios)
			near := 0
			for _, r := range f.ratios {
				if r >= 0.95 {
					near++
				}
			}
			t.Logf("%s, %s, %v: of %d campaigns %d have an answer, %d at the best level, %d within 5 %%, %d infeasible by more than 2 %%; median %.3f, tenth %.3f, least %.3f, %d trials in the mean",
				name, *versus, *budget, *seeds, f.answered, f.good, near, f.infeasible, f.ratios[len(f.ratios)/2], f.ratios[len(f.ratios)/10], f.ratios[0], f.trials / *seeds)
			if !*tolerant && (2*near < *seeds || f.infeasible > *seeds/10) {
				t.Errorf("%d of %d answers are within 5 %%, %d are infeasible", near, *seeds, f.infeasible)
			}
		})
	}
}
