package race

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/search"
)

// option makes a candidate with one setting.
func option(name string) search.Candidate {
	return search.NewCandidate(search.Setting{Knob: "session." + name, Value: "1"})
}

// verdicts returns a result's verdicts by candidate.
func verdicts(r Result) map[string]Verdict {
	all := map[string]Verdict{}
	for _, s := range r.Standings {
		all[s.Candidate.Key()] = s.Verdict
	}
	return all
}

// ended makes a race with one heat, which ended after rounds in which a candidate was better than
// the default by these ratios.
func ended(phase Phase, failure string, ratios ...float64) Result {
	h := newHeat(phase, []search.Candidate{option("a")})
	for _, ratio := range ratios {
		for i, value := range []float64{100, 100 * ratio} {
			h.entrants[i].tell(Outcome{Value: value}, true)
		}
		h.round++
	}
	if failure != "" {
		h.entrants[1].tell(Outcome{Failure: failure}, true)
	}
	r := New(minilm(time.Minute, 1))
	r.heats = []*heat{h}
	r.endHeat(h)
	return r.Result()
}

// The default is the answer if the race came to its end. If the budget ended the race before, the
// default is served, but nothing is proven.
func TestDefaultIsNoAnswerToAnOpenQuestion(t *testing.T) {
	t.Parallel()
	var twelve []float64
	for range finalRounds / 2 {
		twelve = append(twelve, 1.01, 0.99)
	}
	for name, c := range map[string]struct {
		result   Result
		unproven bool
		a, base  Verdict
		why      string
	}{
		"finals that were cut":   {ended(PhaseFinal, "", 1.1, 0.95, 1.05, 0.97), true, Ahead, Base, "the budget of 1m0s ended in round 5 of the finals"},
		"all rounds of finals":   {ended(PhaseFinal, "", twelve...), false, Tied, Winner, "nothing beats the default"},
		"finalists that fail":    {ended(PhaseFinal, "crash", 1.1), false, Failed, Winner, "nothing beats the default"},
		"a product of one round": {ended(PhaseProduct, "", 0.98), true, Passed, Base, "the budget of 1m0s was too short"},
		"a product that is over": {ended(PhaseProduct, "", 0.9, 0.9, 0.9), false, Slower, Winner, "nothing beats the default"},
	} {
		want := map[string]Verdict{"default": c.base, "session.a=1": c.a}
		if diff := cmp.Diff(want, verdicts(c.result)); diff != "" || c.result.Unproven != c.unproven || !strings.HasPrefix(c.result.Why, c.why) {
			t.Errorf("%s: unproven %t, %q (-want +got):\n%s", name, c.result.Unproven, c.result.Why, diff)
		}
		if c.result.Confirmed && c.unproven || !c.result.Winner.IsDefault() {
			t.Errorf("%s: the winner is %s, confirmed: %t", name, c.result.Winner, c.result.Confirmed)
		}
	}
}

// Settings that were not screened leave the question open, even if the others are clear.
func TestSkippedScreeningIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, isCut := range []bool{true, false} {
		r := New(minilm(time.Minute, 1))
		h := newHeat(PhaseProduct, []search.Candidate{option("a")})
		for range firstJudged {
			h.entrants[0].tell(Outcome{Value: 100}, true)
			h.entrants[1].tell(Outcome{Value: 80}, true)
			h.round++
		}
		r.heats = append(r.heats, h)
		if isCut {
			r.elapsed = r.settings.Budget
			r.nextGroup()
		}
		r.heats = r.heats[:2]
		r.finish(h, h.isOpen())
		if got := r.Result().Unproven; got != isCut {
			t.Errorf("groups are left out: %t, unproven: %t", isCut, got)
		}
	}
}

// After the budget nothing more is measured, and the answer is open.
func TestNothingIsMeasuredAfterTheBudget(t *testing.T) {
	t.Parallel()
	r := New(minilm(10*time.Second, 1))
	r.Tell(Outcome{Value: 100, Elapsed: 11 * time.Second})
	if a := r.Ask(); !a.Stop {
		t.Fatalf("after the budget comes a window of %s, %s", a.Trial.Candidate, a.Trial.Phase)
	}
	if result := r.Result(); !result.Unproven || !strings.HasPrefix(result.Why, "the budget of 10s was too short") {
		t.Errorf("%+v", result)
	}
}

// If the budget allows only one window, that of the default, other candidates may still be better.
func TestOneWindowOfTheDefaultIsNoAnswer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := New(Settings{Knobs: []search.Knob{knob(search.KnobIntraOpThreads, "1")}, Canonical: canonical, Budget: time.Second, Window: simWindow, Seed: seed})
		if !r.Ask().Trial.Candidate.IsDefault() {
			continue
		}
		r.Tell(Outcome{Value: 100, Elapsed: 2 * time.Second})
		if result := r.Result(); !r.Ask().Stop || !result.Unproven || len(result.Standings) != 1 {
			t.Errorf("%+v", result)
		}
		return
	}
	t.Error("no race begins with the default")
}

// If all finalists fail on fresh launches, others that beat the default before get finals. If the
// time is over, the question stays open.
func TestUnheardFollowFinalistsThatFail(t *testing.T) {
	t.Parallel()
	for _, hasTime := range []bool{true, false} {
		r := New(minilm(time.Minute, 1))
		product := product(rand.New(rand.NewPCG(2, 3)), 0.005, 6, map[string]float64{"a": 1.6, "b": 1.5})
		finals := newHeat(PhaseFinal, []search.Candidate{option("a")})
		finals.base().tell(Outcome{Value: 100}, true)
		finals.entrants[1].tell(Outcome{Failure: "crash"}, true)
		finals.round++
		r.heats = []*heat{product, finals}
		if !hasTime {
			r.elapsed = r.settings.Budget
		}
		r.endHeat(finals)
		if began := r.why == "" && r.heat().entrant(option("b")) != nil; began != hasTime || r.unproven == hasTime {
			t.Errorf("there is time: %t; finals of b: %t, %q, unproven: %t", hasTime, began, r.why, r.unproven)
		}
	}
}

// A candidate that was not measured in finals that never began is not slower in them.
func TestFinalsThatNeverBeganJudgeNobody(t *testing.T) {
	t.Parallel()
	product := newHeat(PhaseProduct, []search.Candidate{option("a")})
	for range firstJudged {
		product.entrants[0].tell(Outcome{Value: 100}, true)
		product.entrants[1].tell(Outcome{Value: 99}, true)
		product.round++
	}
	r := &Race{heats: []*heat{product, newHeat(PhaseFinal, []search.Candidate{option("a")})}, why: "over", unproven: true}
	if diff := cmp.Diff(map[string]Verdict{"default": Base, "session.a=1": Passed}, verdicts(r.Result())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Without figures of the default there is no winner, even if finals were measured before it failed.
func TestBrokenDefaultHasNoWinner(t *testing.T) {
	t.Parallel()
	finals := newHeat(PhaseFinal, []search.Candidate{option("a")})
	for range fewestFinals {
		finals.entrants[0].tell(Outcome{Value: 100}, true)
		finals.entrants[1].tell(Outcome{Value: 150}, true)
		finals.round++
	}
	finals.base().tell(Outcome{Failure: "crash"}, true)
	r := &Race{heats: []*heat{finals}, why: "the default cannot be measured: crash", broken: "crash"}
	if result := r.Result(); !result.Winner.IsDefault() || result.Confirmed || result.Unproven {
		t.Errorf("%+v", result)
	}
}

// A gain is as uncertain as its differences to the default, even if all other entrants are quiet.
func TestGainBesideANoisyDefault(t *testing.T) {
	t.Parallel()
	finals := newHeat(PhaseFinal, []search.Candidate{option("a"), option("b")})
	for round := range 3 {
		finals.entrants[0].tell(Outcome{Value: math.Exp(0.1 * float64(round))}, true)
		finals.entrants[1].tell(Outcome{Value: 1}, true)
		finals.entrants[2].tell(Outcome{Value: 1}, true)
		finals.round++
	}
	// Differences of logs 0, −0.1, −0.2: mean −0.1, standard deviation 0.1; half the interval is
	// t(0.975, 2)·0.1/√3 = 4.303·0.05774 = 0.2484.
	gain := finals.ratio(finals.entrants[1], finals.base())
	if math.Abs(math.Log(gain.Value)+0.1) > 1e-9 || math.Abs(math.Log(gain.Hi)-0.1484) > 1e-4 {
		t.Errorf("the gain is %+v", gain)
	}
	if equal := finals.ratio(finals.entrants[1], finals.entrants[2]); equal.Lo != 1 || equal.Hi != 1 {
		t.Errorf("of two that are equal throughout: %+v", equal)
	}
}
