// Package backwards adds an artificial strategy, and runs a campaign with it. It shows that a new
// strategy needs only its own folder and a row in the plan's table (docs/how-to/add-a-strategy.md).
package backwards

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
	"tuner/search/standings"
	"tuner/search/tour"
)

// most is the largest number of candidates that are tried.
const most = 8

// Backwards visits the space from its end: the last candidates, each at its best load, the last one
// first.
type Backwards struct{ *tour.Tour }

// New returns the strategy.
func New(s search.Settings, l *standings.Ledger, candidates *search.Candidates) Backwards {
	list := candidates.All()
	slices.Reverse(list)
	return Backwards{tour.New(s, l, search.PhaseSearch, list[:min(most, len(list))])}
}

// Notes returns a sentence for the reader of the report.
func (b Backwards) Notes() []string { return []string{"The space was searched from its end."} }

// row is the strategy's row for plan.Strategies.
var row = plan.Strategy{Name: "backwards", IsExhaustive: true, New: func(s search.Settings, l *standings.Ledger, c *search.Candidates) plan.Explorer {
	return New(s, l, c)
}}

func TestBackwardsConforms(t *testing.T) {
	t.Parallel()
	searchtest.Conform(t, searchtest.Small(), func(s search.Settings) (search.Strategy, error) { return row.Plan(s) })
}

// The whole campaign: the default first, the last candidate of the space next, finals on fresh
// launches, an answer.
func TestCampaign(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	s := searchtest.Settings(l, 50*time.Millisecond)
	p, err := row.Plan(s)
	if err != nil {
		t.Fatal(err)
	}
	all := s.Space.Candidates().All()
	events := l.Run(p, 5000)
	first := slices.IndexFunc(events, func(e search.Event) bool { return e.Trial.Phase == search.PhaseSearch })
	if first < 1 || events[first].Trial.Candidate.Key() != all[len(all)-1].Key() {
		t.Errorf("the first search trial is number %d of %d", first, len(events))
	}
	if !slices.ContainsFunc(events, func(e search.Event) bool { return e.Trial.Phase == search.PhaseFinal && e.Trial.Fresh }) {
		t.Error("there are no finals")
	}
	leader, ok := p.Leader()
	if !ok || leader.Candidate.IsDefault() {
		t.Errorf("the answer is %+v", leader)
	}
	if text := strings.Join(p.Statement(), "\n"); !strings.Contains(text, "searched from its end") {
		t.Errorf("the statement lacks the strategy's note:\n%s", text)
	}
	if _, explains := p.Explainer(); explains {
		t.Error("a strategy that cannot explain its answer is said to")
	}
}

// A strategy that visits all candidates needs a budget for a large space.
func TestLargeSpaceNeedsABudget(t *testing.T) {
	t.Parallel()
	s := searchtest.Settings(searchtest.Small(), time.Second)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		s.Space.Knobs = append(s.Space.Knobs, search.Knob{Name: "session." + name, Scope: search.ScopeEngine, Values: []search.Value{"1", "2", "3", "4", "5"}})
	}
	made := row
	made.New = func(s search.Settings, l *standings.Ledger, _ *search.Candidates) plan.Explorer {
		return Backwards{tour.New(s, l, search.PhaseSearch, nil)}
	}
	if _, err := made.Plan(s); err == nil || !strings.Contains(err.Error(), "the backwards has") {
		t.Errorf("error %v", err)
	}
	s.Budget.Trials = 10
	if _, err := made.Plan(s); err != nil {
		t.Errorf("with a budget: %v", err)
	}
}
