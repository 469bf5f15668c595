package race

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tuner/search"
)

// product makes a heat in which candidates were measured at their true gains, with the given noise.
func product(random *rand.Rand, noise float64, rounds int, gains map[string]float64) *heat {
	var list []search.Candidate
	for _, name := range []string{"a", "b", "c"} {
		if _, ok := gains[name]; ok {
			list = append(list, search.NewCandidate(search.Setting{Knob: "session." + name, Value: "1"}))
		}
	}
	h := newHeat(PhaseProduct, list)
	for range rounds {
		for i, e := range h.entrants {
			gain := 1.0
			if i > 0 {
				gain = gains[e.candidate.Settings()[0].Knob[len("session."):]]
			}
			e.tell(Outcome{Value: 100 * gain * math.Exp(noise*random.NormFloat64())}, true)
		}
		h.round++
	}
	return h
}

// Precise measurements count more than promises, noisy ones less.
func TestOutlookTrustsWhatIsKnown(t *testing.T) {
	t.Parallel()
	gains := map[string]float64{"a": 1.5, "b": 1.3, "c": 1.3}
	for _, c := range []struct {
		noise    float64
		measured bool // a comes first, by its measurements, and not b, by its promise
	}{{0.005, true}, {0.4, false}} {
		random := rand.New(rand.NewPCG(2, 3))
		agree := 0
		for range 100 {
			h := product(random, c.noise, 4, gains)
			h.promises = promises{"session.a=1": 0.3, "session.b=1": 0.5, "session.c=1": 0.3}
			if first := h.finalists(1); len(first) == 1 && (first[0].Key() == "session.a=1") == c.measured {
				agree++
			}
		}
		if agree < 60 {
			t.Errorf("with noise of %g only %d of 100 choices are as expected", c.noise, agree)
		}
	}
}

// The finals continue until the gain is known precisely, while there is time.
func TestFinalsAreWorthReporting(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		result := run(t, minilm(3*time.Minute, seed), newMachine(seed, landscape(rand.New(rand.NewPCG(seed, 7)))))
		for _, s := range result.Standings {
			if s.Verdict != Winner || s.Candidate.IsDefault() {
				continue
			}
			if rounds := len(s.Values[len(s.Values)-1]); rounds < fewestFinals {
				t.Errorf("race %d: finals of %d rounds", seed, rounds)
			}
			if s.Gain.Hi > 1.10*s.Gain.Lo {
				t.Errorf("race %d: the winner's gain is only known to be %.3f to %.3f", seed, s.Gain.Lo, s.Gain.Hi)
			}
		}
	}
}

// If only int8 matters, the answer is int8 with few other settings, for any noise. Fewer than by
// chance of the six settings without an effect are in it.
func TestLittleComesAlong(t *testing.T) {
	t.Parallel()
	const races = 60
	others := 0
	for seed := range uint64(races) {
		m := newMachine(seed, func(c search.Candidate) float64 {
			precision, _ := c.Get(search.KnobPrecision)
			if provider, _ := c.Get(search.KnobExecutionProvider); precision == "int8" && provider == "" {
				return 156
			}
			return 100
		})
		winner := run(t, minilm(3*time.Minute, seed), m).Winner
		if precision, _ := winner.Get(search.KnobPrecision); precision != "int8" {
			t.Errorf("race %d: the winner is %s", seed, winner)
		}
		others += len(winner.Settings()) - 1
	}
	t.Logf("%.2f settings come along", float64(others)/races)
	if others > 9*races/4 {
		t.Errorf("%d settings came along in %d races", others, races)
	}
}

// A candidate beats the default in the product, but its relatives lower its outlook. It gets finals
// if the finals prove no candidate better.
func TestUnheardGetFinals(t *testing.T) {
	t.Parallel()
	r := New(minilm(0, 1))
	product := product(rand.New(rand.NewPCG(2, 3)), 0.005, 6, map[string]float64{"a": 1.0, "b": 1.5})
	r.heats = []*heat{product}
	finals := newHeat(PhaseFinal, []search.Candidate{product.entrants[1].candidate})
	for range finalRounds {
		for _, e := range finals.entrants {
			e.tell(Outcome{Value: 100}, true)
		}
		finals.round++
	}
	r.heats = append(r.heats, finals)
	r.endHeat(finals)
	if r.why != "" || r.heat().phase != PhaseFinal || r.heat().entrant(product.entrants[2].candidate) == nil {
		t.Fatalf("the race is over (%q), or goes on without b", r.why)
	}
	r.endHeat(r.heat()) // without measurements the race must end here
	if r.why == "" {
		t.Error("finals follow finals without end")
	}
}

// Windows of the finals are as long as is efficient with launches, and shorter if the minimum
// number of rounds needs that.
func TestFinalWindows(t *testing.T) {
	t.Parallel()
	c := []search.Candidate{search.NewCandidate(search.Setting{Knob: "session.a", Value: "1"})}
	for _, tt := range []struct{ launch, session, budget, want time.Duration }{
		{time.Second, 280 * time.Millisecond, 0, 400 * time.Millisecond}, // √(250 ms · (1 s + 0.28 s)/2)
		{time.Minute, time.Minute, 0, finalWindow * simWindow},           // maximum
		{time.Millisecond, time.Millisecond, 0, simWindow},               // minimum
		// 95 % of 10 s are 5 · 1.9 s, minus 1.28 s: two of 0.31 s
		{time.Second, 280 * time.Millisecond, 10 * time.Second, 310 * time.Millisecond},
		{time.Second, 280 * time.Millisecond, 5 * time.Second, simWindow}, // five rounds do not fit
	} {
		r := &Race{settings: minilm(tt.budget, 1)}
		r.costs.addCost(needEngine, tt.launch)
		r.costs.addCost(needSession, tt.session)
		if got := r.finalLength(c); got != tt.want {
			t.Errorf("launch %v, session %v, budget %v: windows of %v, want %v", tt.launch, tt.session, tt.budget, got, tt.want)
		}
	}
}

// A round that was cut before the default's window makes no finalists, since there is nothing to
// compare with.
func TestNoFinalistsWithoutTheDefault(t *testing.T) {
	t.Parallel()
	h := newHeat(PhaseProduct, []search.Candidate{option("a"), option("b")})
	for _, e := range h.entrants[1:] {
		e.tell(Outcome{Value: 100}, true)
	}
	h.promises = promises{"session.a=1": 0.3, "session.b=1": 0.5}
	if list := h.finalists(mostFinalists); len(list) > 0 {
		t.Errorf("finalists are %v", list)
	}
}
