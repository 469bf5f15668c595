package race

import (
	"math"
	"testing"
	"time"

	"tuner/search"
)

// shared is MiniLM on two cores of a shared machine, as `make bench-ortsweep` measured it: int8 doubles the speed, idle threads that
// do not spin cost a tenth, and the rest nearly nothing.
func shared(c search.Candidate) float64 {
	log := 0.0
	threads, _ := c.Get(search.KnobIntraOpThreads)
	if _, quantized := c.Get(search.KnobPrecision); quantized {
		log += math.Log(1.95)
		if threads == "1" {
			log -= 0.027
		}
	} else if threads == "1" {
		log -= 0.45
	}
	for _, s := range c.Settings() {
		switch {
		case s.Knob == search.KnobAllowSpinning && threads != "1":
			log -= 0.10
		case s.Knob == search.KnobExecutionMode:
			log -= 0.08
		case s.Knob == search.KnobMemoryArena:
			log -= 0.015
		}
	}
	return 100 * math.Exp(log)
}

// On a noisy machine settings that gain nothing must not be carried into the answer because they were lucky.
func TestRaceOnNoisyMachine(t *testing.T) {
	t.Parallel()
	const races, best = 200, 195.0
	near, within5, settings := 0, 0, 0
	for seed := range uint64(races) {
		s := minilm(2*time.Minute, seed)
		s.Knobs = []search.Knob{knob(search.KnobPrecision, "int8"), knob(search.KnobIntraOpThreads, "1", "2"),
			knob(search.KnobGraphOptimization, "extended"), knob(search.KnobExecutionMode, "parallel"),
			knob(search.KnobAllowSpinning, "false"), knob(search.KnobMemoryArena, "false")}
		m := newMachine(seed, shared)
		m.noise = 0.08
		result := run(t, s, m)
		settings += len(result.Winner.Settings())
		if speed := shared(result.Winner); speed >= 0.98*best {
			near++
		} else if speed >= 0.95*best {
			within5++
		}
	}
	t.Logf("within 2 %% in %d of %d, within 5 %% in %d; %.2f settings", near, races, near+within5, float64(settings)/races)
	if near < races*80/100 || near+within5 < races*98/100 {
		t.Errorf("within 2 %% of the best in %d of %d races, within 5 %% in %d", near, races, near+within5)
	}
}

// A budget that is too short for the whole space goes to what matters most, and to a proof.
func TestShortBudgetEndsWithAProof(t *testing.T) {
	t.Parallel()
	const races = 100
	proven := 0
	for seed := range uint64(races) {
		m := newMachine(seed, shared)
		result := run(t, minilm(30*time.Second, seed), m)
		if precision, _ := result.Winner.Get(search.KnobPrecision); precision == "int8" && result.Confirmed {
			proven++
		}
		if m.elapsed > 30*time.Second {
			t.Errorf("race %d took %v of its budget of 30 s", seed, m.elapsed)
		}
	}
	t.Logf("int8 is proven in %d of %d", proven, races)
	if proven < races*95/100 {
		t.Errorf("int8 is proven in %d of %d races", proven, races)
	}
}
