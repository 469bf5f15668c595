package plan_test

import (
	"fmt"
	"testing"
	"time"

	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
	"tuner/search/verdict"
)

// If the load curves change the answer, the new one gets a fresh launch before the budget ends.
func TestWhatTheCurvesChangeIsConfirmed(t *testing.T) {
	t.Parallel()
	for _, budget := range []search.Budget{{Time: 40 * time.Second}, {Time: time.Minute}, {Time: 2 * time.Minute}, {Trials: 30}} {
		p := newPlan(t, "random", searchtest.Small(), budget)
		var lucky *search.Trial // from the first curve
		inFinals(p, searchtest.Small(), func(trial search.Trial, throughput *float64, latency *time.Duration) {
			if trial.Phase == search.PhaseLoadCurve && lucky == nil {
				lucky = &trial
			}
			isLate := trial.Phase == search.PhaseLoadCurve || trial.Phase == search.PhaseFinal
			if lucky != nil && isLate && trial.Load == lucky.Load && trial.Candidate.Key() == lucky.Candidate.Key() {
				*throughput, *latency = *throughput*10, *latency/10
			}
		})
		answer := p.Verdict().Answer()
		if lucky == nil {
			t.Errorf("budget %+v: no curve was measured", budget)
			continue
		}
		if answer.Candidate.Key() != lucky.Candidate.Key() || answer.Load != lucky.Load {
			t.Errorf("budget %+v: the answer is %s at %v, want the first curve's", budget, answer.Candidate.Describe(), answer.Load)
		}
		if answer.Fresh == 0 {
			t.Errorf("budget %+v: the answer was measured by the curves alone", budget)
		}
	}
}

// Even in a short campaign with noise, the answer was measured on a fresh process, or the verdict
// is unfinished.
func TestShortCampaignsConfirmTheirAnswer(t *testing.T) {
	t.Parallel()
	campaigns, unconfirmed := 0, 0
	for _, budget := range []time.Duration{15 * time.Second, 30 * time.Second, 45 * time.Second, 75 * time.Second} {
		for _, strategy := range []string{plan.Random, plan.Quick} {
			for seed := range uint64(4) {
				l := searchtest.Small()
				l.Noise, l.Seed = 0.1, seed
				s := searchtest.Settings(l, 50*time.Millisecond)
				s.Turns, s.Seed, s.Budget.Time = true, seed, budget
				p, err := plan.New(strategy, s)
				if err != nil {
					t.Fatal(err)
				}
				events := l.Run(p, 1000)
				name := fmt.Sprintf("%s, %v, seed %d", strategy, budget, seed)
				if end := events[len(events)-1].Elapsed; end > budget+s.Window {
					t.Errorf("%s: it ends after %v", name, end)
				}
				v := p.Verdict()
				campaigns++
				if v.Answer().Fresh > 0 {
					continue
				}
				unconfirmed++
				if v.State != verdict.Unfinished && v.State != verdict.Nothing {
					t.Errorf("%s: %v was not measured on a fresh process, and the campaign is %s", name, v.Answer().Candidate, v.State)
				}
			}
		}
	}
	if unconfirmed > campaigns/10 {
		t.Errorf("%d of %d answers were not measured on a fresh process", unconfirmed, campaigns)
	}
}
