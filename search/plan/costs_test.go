package plan

import (
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

// Service trials have short warm-ups and windows. Their times predict only service trials, but
// launches are the same for all.
func TestCostsOfServiceTrials(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	pool := func(instances search.Value) search.Candidate {
		return search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: instances})
	}
	serving := search.Trial{Candidate: pool("1"), Load: measure.Load{Concurrency: 8, BatchSize: 1}, Windows: 1, Window: time.Second, Phase: search.PhaseSearch}
	service := search.Trial{
		Candidate: pool("1"), Load: measure.Load{Concurrency: 1, BatchSize: 1}, Windows: 4, Window: 200 * ms, Phase: search.PhaseService, Sizes: []int{1, 2, 4, 8},
	}
	elsewhere := service
	elsewhere.Candidate = pool("2")
	c := costs{tuning: DefaultTuning()}
	check := func(trial search.Trial, want time.Duration) {
		t.Helper()
		if got := c.expect(trial); got != want {
			t.Errorf("a %s trial is expected to take %v, want %v", trial.Phase, got, want)
		}
	}
	// Guesses: 2 s for the launch and 0.5 s of warm-up.
	check(serving, 3500*ms)
	check(service, 3300*ms)
	// A second of launch, 0.3 s of warm-up, 1.5 s of windows for a requested 1 s, 0.1 s for the
	// rest.
	c.record(search.Event{Trial: serving, Elapsed: 2900 * ms, Measurement: measure.Measurement{Times: measure.Times{Launch: time.Second, WarmUp: 300 * ms, Windows: 1500 * ms}}})
	check(serving, 1900*ms)
	check(service, 1300*ms)
	check(elsewhere, 2300*ms)
	// 0.2 s of warm-up, the windows as requested, 0.4 s for the rest.
	c.record(search.Event{Trial: service, Elapsed: 4300 * ms, Measurement: measure.Measurement{Times: measure.Times{WarmUp: 200 * ms, Windows: 800 * ms}}})
	check(serving, 1900*ms)
	check(service, 1400*ms)
	check(elsewhere, 2400*ms)
}

// A seat of a block fills its queue before each of its turns, and is launched for it. The times of
// blocks do not predict other trials.
func TestCostsOfTurns(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	trial := search.Trial{Load: measure.Load{Concurrency: 8, BatchSize: 1}, Windows: 1, Window: time.Second, Phase: search.PhaseFinal, Fresh: true}
	seat := search.Settings{}.Block([]search.Trial{trial, trial}, 6).Trial
	c := costs{tuning: DefaultTuning()}
	check := func(trial search.Trial, want time.Duration) {
		t.Helper()
		if got := c.expect(trial); got != want {
			t.Errorf("%d windows of %v are expected to take %v, want %v", trial.Windows, trial.Window, got, want)
		}
	}
	check(trial, 3500*ms) // guesses: 2 s for the launch and 0.5 s of warm-up
	check(seat, 6800*ms)  // plus 0.3 s before each of six turns of half a second
	// A second of launch, 0.4 s before each turn, 0.75 s in each, 0.2 s for the rest.
	c.record(search.Event{Trial: seat, Elapsed: 8100 * ms, Measurement: measure.Measurement{Times: measure.Times{Launch: time.Second, WarmUp: 2400 * ms, Windows: 4500 * ms}}})
	check(seat, 8100*ms)
	seat.Windows = 2
	check(seat, 3500*ms)
	check(trial, 2500*ms)
}

// A cut window does not show the time of a full one.
func TestCostsOfCutTrials(t *testing.T) {
	t.Parallel()
	trial := search.Trial{Load: measure.Load{Concurrency: 8, BatchSize: 1}, Windows: 1, Window: time.Second, Phase: search.PhaseSearch}
	c := costs{tuning: DefaultTuning()}
	add := func(elapsed, windows time.Duration, cut bool) {
		c.record(search.Event{Trial: trial, Elapsed: elapsed, Measurement: measure.Measurement{Cut: cut, Times: measure.Times{WarmUp: 500 * time.Millisecond, Windows: windows}}})
	}
	add(2*time.Second, 1500*time.Millisecond, false)
	add(2900*time.Millisecond, 400*time.Millisecond, true)
	if got := c.expect(trial); got != 2*time.Second {
		t.Errorf("the next is expected to take %v, want 0.5 s of warm-up and 1.5 s", got)
	}
}

// An execution provider that compiles takes 25 s to launch, the other one 5 s. Another instance
// takes half a second more. A repeated launch is expected to take the same time, and a similar one
// nearly the same. The mean of all would be 10 s.
func TestCostsOfLaunchesByKind(t *testing.T) {
	t.Parallel()
	candidate := func(provider, precision, instances search.Value) search.Candidate {
		return search.NewCandidate(search.Setting{Knob: search.KnobExecutionProvider, Value: provider},
			search.Setting{Knob: search.KnobPrecision, Value: precision}, search.Setting{Knob: search.KnobInstanceCount, Value: instances})
	}
	c := costs{tuning: DefaultTuning(), settings: search.Settings{Space: search.Space{Facts: search.Facts{Base: map[string]search.Value{search.KnobExecutionProvider: "cuda", search.KnobPrecision: "fp32"}}}}}
	launch := func(x search.Candidate, d time.Duration) {
		c.record(search.Event{Trial: search.Trial{Candidate: x}, Measurement: measure.Measurement{Times: measure.Times{Launch: d}}})
	}
	launch(search.Candidate{}, 5*time.Second)
	launch(candidate("cuda", "fp32", "2"), 5500*time.Millisecond)
	launch(candidate("cuda", "fp16", "1"), 5*time.Second)
	launch(candidate("tensorrt", "fp32", "1"), 25*time.Second)
	check := func(x search.Candidate, want time.Duration) {
		t.Helper()
		trial := search.Trial{Candidate: x, Windows: 1, Fresh: true, Phase: search.PhaseFinal}
		if got := c.expect(trial) - search.GuessedWarmUp; got != want {
			t.Errorf("%v is expected to launch in %v, want %v", x, got, want)
		}
	}
	check(candidate("tensorrt", "fp32", "1"), 25*time.Second)
	check(candidate("tensorrt", "fp32", "4"), 25*time.Second)
	check(candidate("tensorrt", "fp16", "1"), 25*time.Second)         // another file, the same provider
	check(candidate("cuda", "fp32", "4"), 5250*time.Millisecond)      // the mean of the file's two pools
	check(search.Candidate{}, 5*time.Second)                          // by its own values, not by the knobs that it leaves unset
	check(candidate("openvino", "fp32", "1"), 10125*time.Millisecond) // the mean of all four
}

// Finals on another server have their own launches, which do not predict the search's, and vice
// versa.
func TestCostsOfFinalsElsewhere(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	trial := search.Trial{Load: measure.Load{Concurrency: 8, BatchSize: 1}, Windows: 1, Window: time.Second, Phase: search.PhaseSearch, Fresh: true}
	final := trial
	final.Phase = search.PhaseFinal
	add := func(c *costs, t search.Trial, launch time.Duration) {
		c.record(search.Event{Trial: t, Measurement: measure.Measurement{Times: measure.Times{Launch: launch, WarmUp: 500 * ms, Windows: time.Second}}})
	}
	for _, elsewhere := range []bool{false, true} {
		c := costs{tuning: DefaultTuning(), settings: search.Settings{Elsewhere: elsewhere}}
		add(&c, trial, 400*ms)
		// 0.5 s of warm-up and 1 s of window. Another server's launch is guessed to take 2 s.
		want := 1900 * ms
		if elsewhere {
			want = 3500 * ms
		}
		if got := c.expect(final); got != want {
			t.Errorf("elsewhere %t: a final is expected to take %v, want %v", elsewhere, got, want)
		}
		add(&c, final, 4400*ms)
		// A common mean would be 2.4 s; separate ones are 0.4 s and 4.4 s.
		search, finals := 3900*ms, 3900*ms
		if elsewhere {
			search, finals = 1900*ms, 5900*ms
		}
		if a, b := c.expect(trial), c.expect(final); a != search || b != finals {
			t.Errorf("elsewhere %t: expected are %v and %v, want %v and %v", elsewhere, a, b, search, finals)
		}
	}
}
