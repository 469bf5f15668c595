package plan_test

import (
	"maps"
	"testing"
	"time"

	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

// believer is an explorer that measures nothing, and believes in one configuration.
type believer struct {
	*search.Tour
	ledger   *search.Ledger
	believed search.Standing
}

func (b believer) Ask() search.Action { return search.Action{Stop: true, Why: "it believes"} }

func (b believer) Ranked() []search.Standing {
	return append([]search.Standing{b.believed}, b.ledger.Ranked()...)
}

// TestFinalsTrustTheExplorer: they compare what the explorer believes in, measured or not, with the default. Until then what was not
// measured does not lead, since it has no figures to show.
func TestFinalsTrustTheExplorer(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	s := searchtest.Settings(l, 50*time.Millisecond)
	candidates := s.Space.Candidates().All()
	believed := search.Standing{Candidate: candidates[len(candidates)-1], Load: s.Space.Load.At(16), Point: search.Point{Level: 16, Score: 100, Scored: true}}
	p, err := plan.Around(s, func(l *search.Ledger, _ *search.Candidates) plan.Explorer {
		return believer{search.NewTour(s, l, search.PhaseSearch, nil), l, believed}
	})
	if err != nil {
		t.Fatal(err)
	}
	events := l.Run(p, 1)
	if leader, ok := p.Favourite(); !ok || !leader.Candidate.IsDefault() {
		t.Errorf("after the first trial %v leads, %t; want the default", leader.Candidate, ok)
	}
	events = append(events, l.Run(p, 1000)...)
	finalists := map[string]bool{}
	for _, e := range phases(events, search.PhaseFinal) {
		finalists[e.Trial.Candidate.Key()] = true
	}
	if want := map[string]bool{"default": true, believed.Candidate.Key(): true}; !maps.Equal(finalists, want) {
		t.Errorf("finals of %v, want %v", finalists, want)
	}
	if why := p.Ask().Why; why != "it believes" {
		t.Errorf("the campaign ended because %q", why)
	}
}

// TestGuidedGoesOnFromOtherTrials: a journal may come from a version whose strategy chose otherwise. Its trials count like any others.
func TestGuidedGoesOnFromOtherTrials(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	p := newPlan(t, "guided", l, search.Budget{})
	for _, e := range l.Run(newPlan(t, "random", l, search.Budget{}), 40) {
		p.Tell(e)
	}
	l.Run(p, 1000)
	leader, ok := p.Favourite()
	if !ok {
		t.Fatal("no leader")
	}
	if got, _ := l.Serve(leader.Candidate, leader.Load); got < 0.98*optimum(l) {
		t.Errorf("%v at %v has %.0f/s of %.0f/s", leader.Candidate, leader.Load, got, optimum(l))
	}
	if len(p.Statement()) == 0 {
		t.Error("it claims nothing")
	}
}
