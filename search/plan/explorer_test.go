package plan_test

import (
	"testing"

	"tuner/search"
	"tuner/search/searchtest"
)

// A journal may come from a version with other choices of the strategy. Its trials count like any
// others.
func TestGuidedGoesOnFromOtherTrials(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	p := newPlan(t, "guided", l, search.Budget{})
	for _, e := range l.Run(newPlan(t, "random", l, search.Budget{}), 40) {
		p.Tell(e)
	}
	l.Run(p, 1000)
	leader, ok := p.Leader()
	if !ok {
		t.Fatal("no leader")
	}
	// Loads within a percent of the best are ties, and the lowest of them is recommended.
	if got, _ := l.Serve(leader.Candidate, leader.Load); got < 0.97*optimum(l) {
		t.Errorf("%v at %v has %.0f/s of %.0f/s", leader.Candidate, leader.Load, got, optimum(l))
	}
	if len(p.Statement()) == 0 {
		t.Error("it claims nothing")
	}
}
