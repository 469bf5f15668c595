package footprint_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tuner/measure"
	"tuner/ort/sessionoption"
	"tuner/search"
	"tuner/search/footprint"
)

// holds models a machine on which a process takes 40 MB. Each instance takes 30 MB, plus 2 MB for
// each row of its largest batch so far.
func holds(instances, batch int) int64 { return 40e6 + int64(instances)*(30e6+2e6*int64(batch)) }

var space = search.Space{Facts: search.Facts{Batching: true, BaseMaxBatchSize: 4, BaseInstances: 2}}

func candidate(instances, batch int) search.Candidate {
	return search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: search.IntValue(instances)},
		search.Setting{Knob: search.KnobMaxBatchSize, Value: search.IntValue(batch)})
}

// load returns a trial at a load; a fresh one follows a launch.
func load(instances, batch int, isFresh bool, memory, foot int64) search.Event {
	e := search.Event{Trial: search.Trial{Candidate: candidate(instances, batch), Phase: search.PhaseSearch, Fresh: isFresh}}
	e.Measurement = measure.Measurement{Memory: memory, Windows: make([]measure.Window, 1)}
	if isFresh {
		e.Measurement.Times.Launch = time.Second
	}
	if foot > 0 {
		e.Measurement.Footprint = measure.Footprint{Batch: batch, Bytes: foot}
	}
	return e
}

// curve returns a service trial on a fresh process.
func curve(instances int, sizes ...int) search.Event {
	e := search.Event{Trial: search.Trial{Candidate: candidate(instances, 32), Phase: search.PhaseService, Sizes: sizes}}
	e.Measurement.Times.Launch = time.Second
	for _, size := range sizes {
		e.Measurement.Memory = holds(instances, size)
		e.Measurement.Windows = append(e.Measurement.Windows, measure.Window{Memory: holds(instances, size)})
	}
	return e
}

func learned(events ...search.Event) *footprint.Model {
	m := footprint.New(space)
	for _, e := range events {
		m.Add(e)
	}
	return m
}

// The machine is linear in batch and instances, so interpolation and extrapolation are exact.
func TestClosedForms(t *testing.T) {
	t.Parallel()
	services := []search.Event{curve(1, 1, 2, 4, 32), curve(3, 1, 32)}
	for name, c := range map[string]struct {
		events           []search.Event
		instances, batch int
		basis            footprint.Basis
	}{
		"a footprint":                      {[]search.Event{load(2, 8, true, 9e9, holds(2, 8))}, 2, 8, footprint.Measured},
		"a size of a service trial":        {services, 1, 4, footprint.Measured},
		"between two sizes":                {services, 1, 20, footprint.Derived},
		"beyond the largest":               {services, 1, 64, footprint.Derived},
		"below the smallest":               {[]search.Event{curve(1, 4, 8)}, 1, 2, footprint.Derived},
		"between two numbers of instances": {services, 2, 32, footprint.Derived},
		"more instances":                   {services, 8, 4, footprint.Derived},
		"grown as a pool beside, up":       {append(services, load(2, 4, true, 0, holds(2, 4))), 2, 32, footprint.Derived},
		"grown as a pool beside, down":     {append(services, load(2, 16, true, 0, holds(2, 16))), 2, 1, footprint.Derived},
	} {
		e, ok := learned(c.events...).Of(candidate(c.instances, c.batch))
		if want := float64(holds(c.instances, c.batch)); !ok || math.Abs(e.Value/want-1) > 1e-9 || e.Basis != c.basis || e.Lo >= want || e.Hi <= want {
			t.Errorf("%s: %+v, %t, want %.0f %s", name, e, ok, want, c.basis)
		}
	}
}

// A configuration has one figure, for any trials before its own, in any order, and for any spread
// of the trials' peaks.
func TestOneFigureWhateverTheOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var events []search.Event
		held := map[int]int{}
		running := 0
		for range 40 {
			instances, batch := 1+random.IntN(3), 1<<random.IntN(6)
			isFresh := running != instances || random.IntN(4) == 0
			if running = instances; isFresh {
				held[instances] = 0
			}
			held[instances] = max(held[instances], batch)
			foot := int64(0)
			if isFresh {
				foot = int64(float64(holds(instances, batch)) * (1 + 0.01*random.Float64()))
			}
			events = append(events, load(instances, batch, isFresh, holds(instances, held[instances]), foot))
		}
		m := learned(events...)
		figures, hasFootprint := map[string]int64{}, map[string]bool{}
		for _, e := range events {
			key := e.Trial.Candidate.Key()
			hasFootprint[key] = hasFootprint[key] || e.Measurement.Footprint.Bytes > 0
			now := m.Seen(e).Measurement.Memory
			if then, known := figures[key]; known && then != now {
				t.Fatalf("seed %d: %s holds %d and %d", seed, key, then, now)
			}
			figures[key] = now
		}
		random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		shuffled := learned(events...)
		for _, e := range events {
			c := e.Trial.Candidate
			instances, batch := space.Facts.Instances(c), space.MaxBatch(c)
			a, _ := m.Of(c)
			b, _ := shuffled.Of(c)
			truth := float64(holds(instances, batch))
			if !hasFootprint[c.Key()] {
				continue
			}
			if a != b || a.Basis != footprint.Measured || a.Value < truth || a.Value > 1.011*truth {
				t.Fatalf("seed %d: %s holds %+v, in another order %+v, in truth %.0f", seed, c, a, b, truth)
			}
		}
	}
}

// Old journals have three kinds of evidence. Service trials count before fresh loads, and these
// before the least peak of loads that followed larger batches.
func TestJournalsWithoutFootprints(t *testing.T) {
	t.Parallel()
	burdened := []search.Event{load(1, 32, true, 300e6, 0), load(1, 4, false, 290e6, 0), load(1, 4, false, 280e6, 0)}
	confirmed := append(burdened, load(1, 4, true, 90e6, 0), load(1, 4, true, 94e6, 0), load(1, 4, true, 91e6, 0))
	for name, c := range map[string]struct {
		events []search.Event
		want   float64
		basis  footprint.Basis
	}{
		"the least peak":   {burdened, 280e6, footprint.Derived},
		"fresh processes":  {confirmed, 91e6, footprint.Measured},
		"a service trial":  {append(confirmed, curve(1, 1, 4, 32)), float64(holds(1, 4)), footprint.Measured},
		"then a footprint": {append(confirmed, curve(1, 1, 4, 32), load(1, 4, true, 99e6, 80e6)), 80e6, footprint.Measured},
	} {
		if e, ok := learned(c.events...).Of(candidate(1, 4)); !ok || e.Value != c.want || e.Basis != c.basis {
			t.Errorf("%s: %+v, %t, want %.0f %s", name, e, ok, c.want, c.basis)
		}
	}
	if e, ok := learned(load(1, 4, true, 90e6, 90e6), load(1, 8, false, 95e6, 0), load(1, 8, false, 120e6, 0)).Of(candidate(1, 8)); !ok || e.Value != 120e6 || e.Basis != footprint.Derived {
		t.Errorf("a process that goes on to larger batches: %+v, %t", e, ok)
	}
}

// An empty model knows nothing, and knows little about another engine.
func TestWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	if e, ok := learned().Of(candidate(1, 4)); ok || learned().Any() {
		t.Errorf("of nothing: %+v", e)
	}
	int8 := candidate(1, 4).With(search.KnobPrecision, "int8")
	m := learned(curve(1, 1, 32))
	if e, ok := m.Of(int8); !ok || e.Basis != footprint.Derived || e.Hi < 2*e.Value || m.Knows(int8) || !m.Knows(candidate(1, 32)) {
		t.Errorf("of another engine: %+v, %t", e, ok)
	}
	failed := load(1, 4, true, 1e9, 0)
	failed.Measurement.Failure = &measure.Failure{Stage: measure.StageCrash}
	if m := learned(failed); m.Any() {
		t.Error("a crash tells what its configuration holds")
	}
	untouched := load(1, 4, false, 7, 0)
	untouched.Measurement.Failure = &measure.Failure{Stage: measure.StageLoad}
	for _, e := range []search.Event{untouched, curve(1, 1)} {
		if got := m.Seen(e); got.Measurement.Memory != e.Measurement.Memory {
			t.Errorf("%s trial: the memory becomes %d", e.Trial.Phase, got.Measurement.Memory)
		}
	}
}

// The default equals the configuration that sets the default's values.
func TestTwinOfTheDefault(t *testing.T) {
	t.Parallel()
	s := space
	s.Knobs = []search.Knob{{Name: search.KnobIntraOpThreads}, {Name: search.KnobInstanceCount}, {Name: search.KnobMaxBatchSize}}
	s.Facts.Base = map[string]search.Value{search.KnobIntraOpThreads: "2", search.KnobInstanceCount: "2"}
	m := footprint.New(s)
	twin := candidate(2, 4).With(search.KnobIntraOpThreads, "2")
	e := load(2, 4, true, 0, 123e6)
	e.Trial.Candidate = search.Candidate{}
	m.Add(e)
	for _, c := range []search.Candidate{{}, twin} {
		if e, ok := m.Of(c); !ok || e.Value != 123e6 || e.Basis != footprint.Measured {
			t.Errorf("%s: %+v, %t", c, e, ok)
		}
	}
}

// Instances on one session take little each, and one of them is one instance with a session of its
// own. Before two numbers of instances were measured, each further one counts as a tenth.
func TestSharedSessions(t *testing.T) {
	t.Parallel()
	shared := func(instances, batch int) search.Candidate {
		return candidate(instances, batch).With(sessionoption.ShareSession, "true")
	}
	s := space
	s.Knobs = []search.Knob{{Name: sessionoption.ShareSession}, {Name: search.KnobInstanceCount}, {Name: search.KnobMaxBatchSize}}
	s.Facts.Base = map[string]search.Value{sessionoption.ShareSession: "false"}
	learned := func(events ...search.Event) *footprint.Model {
		m := footprint.New(s)
		for _, e := range events {
			m.Add(e)
		}
		return m
	}
	alone := float64(holds(1, 4))
	one := learned(load(1, 4, true, 0, holds(1, 4)))
	for instances, want := range map[int]float64{2: 1.1 * alone, 4: 1.3 * alone} {
		if e, ok := one.Of(shared(instances, 4)); !ok || math.Abs(e.Value/want-1) > 1e-9 || e.Basis != footprint.Derived {
			t.Errorf("%d instances on one session: %+v, %t, want %.0f", instances, e, ok, want)
		}
	}
	if e, _ := one.Of(candidate(2, 4)); e.Value != 1.5*alone {
		t.Errorf("two sessions: %.0f, want %.0f", e.Value, 1.5*alone)
	}
	three := load(3, 4, true, 0, int64(1.04*alone))
	three.Trial.Candidate = shared(3, 4)
	if e, ok := learned(load(1, 4, true, 0, holds(1, 4)), three).Of(shared(2, 4)); !ok || math.Abs(e.Value/(1.02*alone)-1) > 1e-9 {
		t.Errorf("between one instance and three: %+v, %t, want %.0f", e, ok, 1.02*alone)
	}
}

// A larger batch is never estimated to take less memory, within a pool or between the points of a
// noisy curve.
func TestGrowsWithTheBatch(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		e := curve(1+random.IntN(3), 1, 2, 4, 8, 16)
		for i := range e.Measurement.Windows {
			w := &e.Measurement.Windows[i]
			w.Memory = int64(float64(w.Memory) * (1 + 0.05*random.Float64()))
			if i > 0 {
				w.Memory = max(w.Memory, e.Measurement.Windows[i-1].Memory)
			}
		}
		p, last := learned(e).Pool(e.Trial.Candidate), 0.0
		for batch := 1; batch <= 64; batch++ {
			held, ok := p.Holds(batch)
			if !ok || held.Value < last || !(held.Lo <= held.Value && held.Value <= held.Hi) {
				t.Fatalf("seed %d: a batch of %d takes %+v, a smaller one %.0f", seed, batch, held, last)
			}
			last = held.Value
		}
	}
}

func ExampleModel() {
	m := footprint.New(space)
	m.Add(load(1, 4, true, 101e6, 78e6)) // a fresh process
	m.Add(load(1, 64, false, 198e6, 0))  // batches 16 times as large
	m.Add(load(1, 4, false, 196e6, 0))   // as before, in a process that keeps the memory of those
	e, _ := m.Of(candidate(1, 4))
	fmt.Printf("%.0f MB, %s\n", e.Value/1e6, e.Basis)
	// Output: 78 MB, measured
}

// Under a mix, the peak of a load is no figure of its largest batch, which the load seldom makes. It
// neither replaces a footprint nor bounds a figure from above. A process that grew beyond its
// footprint counts with all that it took.
func TestFiguresOfAMix(t *testing.T) {
	t.Parallel()
	mixed := space
	mixed.Facts.Mix = []search.Kind{{Share: 0.9, Elements: 10}, {Share: 0.1, Elements: 100}}
	of := func(batch int, events ...search.Event) float64 {
		m := footprint.New(mixed)
		for _, e := range events {
			m.Add(e)
		}
		held, ok := m.Of(candidate(2, batch))
		if !ok {
			t.Fatal("nothing is known")
		}
		return held.Value
	}
	check := func(what string, got float64, want int64) {
		t.Helper()
		if math.Abs(got-float64(want)) > 1 {
			t.Errorf("%s: %.0f, want %d", what, got, want)
		}
	}
	curves := curve(2, 1, 4, 32)
	check("small batches alone", of(8, curves, load(2, 8, true, holds(2, 2), 0)), holds(2, 8))
	check("as much as a footprint", of(8, load(2, 8, true, holds(2, 8), holds(2, 8))), holds(2, 8))
	check("grown", of(8, load(2, 8, true, holds(2, 20), holds(2, 8))), holds(2, 20))
	check("larger batches before", of(8, load(2, 8, true, holds(2, 8), holds(2, 8)), load(2, 32, false, holds(2, 32), 0), load(2, 8, false, holds(2, 32), 0)), holds(2, 8))
}
