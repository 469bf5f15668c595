package race

import (
	"math"
	"testing"
	"time"

	"tuner/ort/sessionoption"
	"tuner/search"
)

// shared is MiniLM on two cores of a shared machine, as `make -C lab bench-ortsweep` measured it.
// int8 doubles the speed. Idle threads that do not spin cost a tenth. The other settings have
// almost no effect.
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
		case s.Knob == sessionoption.AllowSpinning && threads != "1":
			log -= 0.10
		case s.Knob == sessionoption.ExecutionMode:
			log -= 0.08
		case s.Knob == sessionoption.MemoryArena:
			log -= 0.015
		}
	}
	return 100 * math.Exp(log)
}

// On a noisy machine, lucky settings without a gain must not become part of the answer.
func TestRaceOnNoisyMachine(t *testing.T) {
	t.Parallel()
	const races, best = 200, 195.0
	near, within5, settings := 0, 0, 0
	for seed := range uint64(races) {
		s := minilm(2*time.Minute, seed)
		s.Knobs = []search.Knob{knob(search.KnobPrecision, "int8"), knob(search.KnobIntraOpThreads, "1", "2"),
			knob(sessionoption.GraphOptimization, "extended"), knob(sessionoption.ExecutionMode, "parallel"),
			knob(sessionoption.AllowSpinning, "false"), knob(sessionoption.MemoryArena, "false")}
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

// tiny is a model that takes microseconds, for which a second thread costs more than it gains.
// oneThread is the factor of one thread. No other setting helps, and static int8 slows it down.
func tiny(oneThread float64) func(search.Candidate) float64 {
	return func(c search.Candidate) float64 {
		log := 0.0
		threads, _ := c.Get(search.KnobIntraOpThreads)
		if precision, _ := c.Get(search.KnobPrecision); precision == "int8_static" {
			log -= 0.3
		}
		if threads == "1" {
			log += math.Log(oneThread)
		}
		for _, s := range c.Settings() {
			switch {
			case s.Knob == sessionoption.AllowSpinning && threads != "1":
				log -= 0.2
			case s.Knob == sessionoption.ExecutionMode:
				log -= 0.1
			case s.Knob == sessionoption.MemoryArena:
				log -= 0.03
			}
		}
		return 1e4 * math.Exp(log)
	}
}

// Half a minute is enough to prove what helps a tiny model, since one engine process serves all
// candidates of a model file.
func TestShortBudgetOnATinyModel(t *testing.T) {
	t.Parallel()
	const races = 100
	for _, c := range []struct {
		gain   float64
		proven int // minimum number of races
	}{{1.6, 95}, {1.15, 80}} {
		proven := 0
		for seed := range uint64(races) {
			s := minilm(30*time.Second, seed)
			s.Knobs = append(s.Knobs[3:], knob(search.KnobPrecision, "int8", "int8_static"), knob(search.KnobIntraOpThreads, "1", "2"),
				knob("session.dynamic_block_base", "4"))
			m := newMachine(seed, tiny(c.gain))
			m.noise, m.shares, m.launch, m.session, m.extra = 0.05, true, 400*time.Millisecond, 30*time.Millisecond, 150*time.Millisecond
			result := run(t, s, m)
			if threads, _ := result.Winner.Get(search.KnobIntraOpThreads); threads == "1" && result.Confirmed {
				proven++
			}
			if m.elapsed > 30*time.Second {
				t.Errorf("race %d took %v of its budget of 30 s", seed, m.elapsed)
			}
		}
		t.Logf("one thread that gains %.2f × is proven in %d of %d", c.gain, proven, races)
		if proven < c.proven {
			t.Errorf("one thread that gains %.2f × is proven in %d of %d races", c.gain, proven, races)
		}
	}
}

// A budget that is too short for the whole space is spent on what matters most, and on a proof.
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
