package plan_test

import (
	"strings"
	"testing"
	"time"

	"tuner/search"
	"tuner/search/searchtest"
	"tuner/search/verdict"
)

// From the wish to confirm on, the campaign measures finals alone: of the answer and the
// default, each on as many launches as a confirmation takes, unless they change the answer. The
// resumed campaign searches on.
func TestConfirmEndsTheSearch(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	for _, name := range []string{"guided", "grid"} {
		for _, after := range []int{1, 12} {
			p := newPlan(t, name, l, search.Budget{Time: 10 * time.Minute})
			events := l.Run(p, after)
			p.Confirm()
			last := l.Run(p, 1000)
			launches := map[string]int{}
			for _, e := range last {
				if e.Trial.Phase != search.PhaseFinal {
					t.Fatalf("%s, after %d trials: %s of %v", name, after, e.Trial.Phase, e.Trial.Candidate)
				}
				launches[e.Trial.Candidate.Key()]++
			}
			v := p.Verdict()
			if v.Answer() == nil || v.Answer().Fresh < verdict.Confirmed || launches["default"] < verdict.Confirmed {
				t.Errorf("%s, after %d trials: launches %v, answer %+v", name, after, launches, v.Answer())
			}
			if next := p.Ask(); !next.Stop || next.Why != "the user asked for no more than to confirm the answer" {
				t.Errorf("%s, after %d trials it ends with %+v", name, after, next)
			}
			again := newPlan(t, name, l, search.Budget{Time: 10 * time.Minute})
			for _, e := range append(events, last...) {
				again.Tell(e)
			}
			if next := again.Ask(); next.Stop {
				t.Errorf("%s, after %d trials the resumed campaign ends: %s", name, after, next.Why)
			}
		}
	}
}

// A confirmation keeps to the budget, and needs an answer.
func TestConfirmWithinLimits(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	p := newPlan(t, "guided", l, search.Budget{Trials: 10})
	events := l.Run(p, 9)
	p.Confirm()
	if events = append(events, l.Run(p, 1000)...); len(events) > 10 {
		t.Errorf("%d trials of 10", len(events))
	}
	p = newPlan(t, "guided", l, search.Budget{Time: time.Minute})
	p.Confirm()
	if next := p.Ask(); !next.Stop || !strings.Contains(next.Why, "the user") {
		t.Errorf("without any figure it asks for %+v", next)
	}
}
