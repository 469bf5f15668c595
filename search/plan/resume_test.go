package plan_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

// resumption is a complete campaign that is repeated from any of its events on.
type resumption struct {
	settings search.Settings
	strategy string
	events   []search.Event
	said     []string // answers of a plan that is asked everything twice: before each event, and after the last
}

func (r resumption) fresh(t *testing.T) *plan.Plan {
	t.Helper()
	p, err := plan.New(r.strategy, r.settings)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// answers returns a plan's answers to all questions, except those of people who watch (SoFar).
func answers(t *testing.T, p *plan.Plan) string {
	t.Helper()
	done, expected := p.Progress()
	return text(t, []any{p.Ask(), done, expected, p.Remaining(), p.Statement(), p.Skipped()})
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// newResumption runs a campaign that is asked only for its next trial, once each.
func newResumption(t *testing.T, strategy string) resumption {
	t.Helper()
	l := searchtest.Small()
	l.Noise = 0.03
	r := resumption{settings: searchtest.Settings(l, 50*time.Millisecond), strategy: strategy}
	r.settings.Space.Knobs = r.settings.Space.Knobs[1:4] // threads, instances, batches
	r.settings.Budget = search.Budget{Time: 75 * time.Second}
	r.events = l.Run(r.fresh(t), 1000)
	if len(phases(r.events, search.PhaseFinal)) == 0 || len(phases(r.events, search.PhaseLoadCurve)) == 0 {
		t.Fatalf("%d trials without finals or curves", len(r.events))
	}
	p := r.fresh(t)
	for i := range len(r.events) + 1 {
		r.said = append(r.said, answers(t, p))
		if again := answers(t, p); again != r.said[i] {
			t.Fatalf("after %d trials it says\n%s\nthen\n%s", i, r.said[i], again)
		}
		r.step(t, p, i)
	}
	return r
}

// step asks a plan after the given number of events for the next trial, compares it with the
// campaign's, and tells its outcome.
func (r resumption) step(t *testing.T, p *plan.Plan, told int) {
	t.Helper()
	next := p.Ask()
	if next.Stop != (told == len(r.events)) {
		t.Fatalf("after %d of %d trials: %+v", told, len(r.events), next)
	}
	if next.Stop {
		return
	}
	if got, want := text(t, next.Trial), text(t, r.events[told].Trial); got != want {
		t.Fatalf("after %d trials it asks for\n%s\nthe campaign asked for\n%s", told, got, want)
	}
	p.Tell(r.events[told])
}

// interrupt tells a new plan the events before the interruption without any question, and continues
// for some trials, or to the end.
func (r resumption) interrupt(t *testing.T, cut, trials int) {
	t.Helper()
	p := r.fresh(t)
	for _, e := range r.events[:cut] {
		p.Tell(e)
	}
	if got := answers(t, p); got != r.said[cut] {
		t.Errorf("interrupted after %d trials it says\n%s\nwithout the interruption\n%s", cut, got, r.said[cut])
	}
	last := min(cut+trials, len(r.events))
	for told := cut; told < last; told++ {
		r.step(t, p, told)
	}
	if got, want := answers(t, p), r.said[last]; got != want {
		t.Errorf("interrupted after %d trials it says after %d\n%s\nwithout the interruption\n%s", cut, last, got, want)
	}
}

// A resumed campaign continues as it would have without the interruption, at any point. Additional
// questions to the plan do not change it. Every fourth one continues to the end, and the others for five trials: what
// an interruption changes shows in the next decisions.
func TestResumedCampaignsGoOnAlike(t *testing.T) {
	t.Parallel()
	const shares = 4 // of the cuts, in parallel
	for _, strategy := range plan.Names() {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			r := newResumption(t, strategy)
			for share := range shares {
				t.Run(fmt.Sprint(share), func(t *testing.T) {
					t.Parallel()
					trials := 5
					if share == 0 {
						trials = len(r.events)
					}
					for cut := share; cut <= len(r.events); cut += shares {
						r.interrupt(t, cut, trials)
					}
				})
			}
		})
	}
}
