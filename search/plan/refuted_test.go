package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

// slowInFinals runs a campaign at one load on a machine that in the finals is fifty times as slow as in the search, and misses the limit of 50 ms
// there. It returns the finalists, too.
func slowInFinals(t *testing.T, strategy string, change func(*search.Settings)) (p *plan.Plan, finalists map[string]bool) {
	t.Helper()
	l := searchtest.Small()
	s := searchtest.Settings(l, 50*time.Millisecond)
	s.Space.Load = search.LoadAxis{Levels: []float64{8}, BatchSize: 1}
	change(&s)
	p, err := plan.New(strategy, s)
	if err != nil {
		t.Fatal(err)
	}
	finalists = map[string]bool{}
	for range 3000 {
		next := p.Ask()
		if next.Stop {
			break
		}
		throughput, latency := l.Serve(next.Trial.Candidate, next.Trial.Load)
		if next.Trial.Phase == search.PhaseFinal {
			finalists[next.Trial.Candidate.Key()] = true
			throughput, latency = throughput/50, 50*latency
		}
		p.Tell(search.Event{Trial: next.Trial, Measurement: searchtest.Measured(next.Trial, throughput, latency)})
	}
	return p, finalists
}

// What the finals refute leads no more, whatever the search made of it. Only what they did not measure may lead then, with the search's figures,
// unless the finals' server is another one.
func TestWhatTheFinalsRefuteDoesNotLead(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"grid", "random", "quick"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			// One instance: 4 requests in 12 ms / 4^0.8 = 4 ms, so that 8 take 8 ms, and 400 in the finals.
			p, finalists := slowInFinals(t, strategy, func(s *search.Settings) {
				s.Space.Knobs = []search.Knob{{Name: search.KnobInstanceCount, Scope: search.ScopePool, Values: []search.Value{"1"}}}
			})
			if leader, ok := p.Favourite(); ok || len(finalists) != 2 {
				t.Errorf("after finals of %v %v leads (%t), want none", finalists, leader.Candidate, ok)
			}
			if text := fmt.Sprint(p.Statement()); !strings.Contains(text, "Nothing satisfies the limits. Nearest: ") {
				t.Errorf("it states %s", text)
			}
		})
	}
	p, finalists := slowInFinals(t, "grid", func(*search.Settings) {})
	if leader, ok := p.Favourite(); !ok || finalists[leader.Candidate.Key()] {
		t.Errorf("after finals of %v %v leads (%t), want the best of the others", finalists, leader.Candidate, ok)
	}
	p, finalists = slowInFinals(t, "grid", func(s *search.Settings) { s.Elsewhere = true })
	if leader, ok := p.Favourite(); ok || len(finalists) < 2 {
		t.Errorf("after finals of %v on another server %v leads, want none", finalists, leader.Candidate)
	}
}

// What fails on fresh launches comes behind what the finals did not measure, as in the reports.
func TestWhatFailsInTheFinalsDoesNotLead(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	failed := map[string]bool{}
	l.Fail = func(trial search.Trial) *measure.Failure {
		if trial.Phase != search.PhaseFinal {
			return nil
		}
		failed[trial.Candidate.Key()] = true
		return &measure.Failure{Stage: measure.StageCrash, Reason: "no"}
	}
	p := newPlan(t, "grid", l, search.Budget{})
	l.Run(p, 3000)
	if leader, ok := p.Favourite(); !ok || len(failed) == 0 || failed[leader.Candidate.Key()] {
		t.Errorf("of %d that failed in the finals, %v leads (%t)", len(failed), leader.Candidate, ok)
	}
}
