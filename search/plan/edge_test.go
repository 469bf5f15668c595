package plan_test

import (
	"testing"
	"time"

	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

// A limit at the edge of what cells keep leaves the choice open. A bound of trials that is far away does not
// make its finals endless.
func TestFinalsEndUnderABudgetOfTrials(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	for _, limit := range []time.Duration{32 * time.Millisecond, 36 * time.Millisecond, 40 * time.Millisecond} {
		s := searchtest.Settings(l, limit)
		s.Budget = search.Budget{Trials: 100_000}
		p, err := plan.New("quick", s)
		if err != nil {
			t.Fatal(err)
		}
		events := l.Run(p, 1000)
		finals := len(phases(events, search.PhaseFinal))
		if others := len(events) - finals; !p.Ask().Stop || finals > 2*others+search.MostSeats {
			t.Errorf("p99 within %v: %d finals after %d other trials", limit, finals, others)
		}
		if p.Verdict().Answer() == nil {
			t.Errorf("p99 within %v: no answer", limit)
		}
	}
}
