package alternating_test

import (
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/joint"
	"tuner/search/plan"
)

// machine serves two models on two cores. A request of a model takes its service time of a core, and
// all wait in one queue: latency = service / (1 − load of the cores). One thread and full batches are
// cheapest, in different ways for the two models.
type machine struct {
	settings search.Settings
	work     map[string]time.Duration // of a request, in the default configuration
}

const cores = 2

func (m machine) service(model string, c search.Candidate) time.Duration {
	factor := 1.0
	if v, _ := c.Get(search.KnobIntraOpThreads); v == "2" || v == "" {
		factor *= 1.25
	}
	if v, _ := c.Get(search.KnobMaxBatchSize); v == "8" {
		factor *= 0.6
	} else if v == "32" {
		factor *= 0.55
	}
	if v, _ := c.Get(search.KnobInstanceCount); v == "1" && model == "ranker" {
		factor *= 1.1
	}
	return time.Duration(float64(m.work[model]) * factor)
}

// latency of a model at a scale; an hour where the cores are full.
func (m machine) latency(model string, c search.Candidate, load measure.Load) time.Duration {
	busy := 0.0
	own, _ := c.Get(search.KnobIsolation)
	_, isDivided := own.Divided()
	for name := range m.work {
		if isDivided && name != model {
			continue
		}
		busy += load.Of(name).RequestRate * m.service(name, c.Of(name)).Seconds() / cores
	}
	if isDivided {
		busy *= cores // it has one of them
	}
	if busy >= 1 {
		return 10 * time.Second
	}
	return time.Duration(float64(m.service(model, c.Of(model))) / (1 - busy))
}

func (m machine) measure(t search.Trial, launch int) measure.Measurement {
	r := measure.Measurement{Launch: launch, Memory: 100e6, Scale: t.Load.Scale, Times: measure.Times{WarmUp: time.Second / 2, Windows: time.Duration(t.Windows) * t.Window}}
	for range t.Windows {
		for _, p := range m.settings.Space.Parts {
			rate := t.Load.Of(p.Model).RequestRate
			n := int(rate * t.Window.Seconds())
			recorder := measure.NewRecorder() // a median needs no more than one latency
			latency := m.latency(p.Model, t.Candidate, t.Load)
			recorder.Record(latency)
			r.Windows = append(r.Windows, measure.Window{Model: p.Model, Duration: t.Window, Requests: n, Inferences: n, Scheduled: n,
				Sub: []measure.SubWindow{{Requests: n, Duration: t.Window, Latency: recorder.Histogram(), Sum: latency}}})
		}
	}
	return r
}

// best returns the highest scale at which any configuration keeps the limits.
func (m machine) best() float64 {
	most := 0.0
	for _, c := range m.settings.Space.Candidates().All() {
		for _, level := range m.settings.Space.Load.Levels {
			load := m.settings.Space.Load.At(level)
			if m.latency("encoder", c, load) <= 50*time.Millisecond && m.latency("ranker", c, load) <= 5*time.Millisecond {
				most = max(most, level)
			}
		}
	}
	return most
}

func newMachine(t *testing.T, encoder, ranker time.Duration, budget search.Budget) machine {
	t.Helper()
	part := func(name string, rate float64) search.Part {
		return search.Part{Model: name, Space: search.Space{
			Knobs: []search.Knob{
				{Name: search.KnobIntraOpThreads, Values: []search.Value{"1", "2"}},
				{Name: search.KnobInstanceCount, Values: []search.Value{"1", "2"}},
				{Name: search.KnobMaxBatchSize, Values: []search.Value{"1", "2", "4", "8", "32"}},
			},
			Load:  search.LoadAxis{Rate: true, Levels: []float64{rate}, BatchSize: 1},
			Facts: search.Facts{Cores: cores, Batching: true, Precisions: []string{"fp32"}},
		}}
	}
	var scales []float64
	for level := 0.25; level <= 8; level *= 1.0443 {
		scales = append(scales, level)
	}
	space, err := joint.Space([]search.Part{part("encoder", 60), part("ranker", 400)}, nil, scales, search.Facts{Cores: cores})
	if err != nil {
		t.Fatal(err)
	}
	limit := func(model string, seconds float64) search.Constraint {
		return search.Constraint{Metric: measure.LatencyP50.Of(model), Max: &seconds}
	}
	return machine{search.Settings{
		Space: space, Window: time.Second, Seed: 1, Budget: budget,
		Goal: search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Scale, Weight: 1}}}, Constraints: []search.Constraint{limit("encoder", 0.05), limit("ranker", 0.005)}},
	}, map[string]time.Duration{"encoder": encoder, "ranker": ranker}}
}

// run plays a campaign to its end. At every step a second strategy, which is told all events again,
// must ask for the same.
func (m machine) run(t *testing.T, replays bool) (*plan.Plan, []search.Event) {
	t.Helper()
	p, err := plan.New(plan.Alternating, m.settings)
	if err != nil {
		t.Fatal(err)
	}
	var events []search.Event
	elapsed := time.Duration(0)
	for len(events) < 500 {
		action := p.Ask()
		if replays {
			again, err := plan.New(plan.Alternating, m.settings)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				again.Tell(e)
			}
			if other := again.Ask(); other.Stop != action.Stop || other.Trial.Candidate.Key() != action.Trial.Candidate.Key() || other.Trial.Load != action.Trial.Load {
				t.Fatalf("after %d trials a resumed campaign asks for %s at %s, not for %s at %s", len(events),
					other.Trial.Candidate, other.Trial.Load, action.Trial.Candidate, action.Trial.Load)
			}
		}
		if action.Stop {
			return p, events
		}
		for _, trial := range action.Trials() {
			r := m.measure(trial, len(events)+1)
			elapsed += r.Times.Total()
			e := search.Event{Trial: trial, Measurement: r, Elapsed: elapsed}
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
			p.Tell(e)
			events = append(events, e)
		}
	}
	t.Fatal("the campaign does not end")
	return nil, nil
}

// The scale of the answer is within 10 % of the best of all configurations, although the search measures
// a part of them. Levels differ by 4.4 %, and the search leaves gaps of up to 10 %.
func TestFindsTheBestScale(t *testing.T) {
	t.Parallel()
	for _, work := range [][2]time.Duration{
		{10 * time.Millisecond, time.Millisecond}, {30 * time.Millisecond, 100 * time.Microsecond},
	} {
		m := newMachine(t, work[0], work[1], search.Budget{Trials: 70})
		p, events := m.run(t, false)
		answer := p.SoFar().Answer()
		if answer == nil {
			t.Errorf("work %v: no answer after %d trials", work, len(events))
			continue
		}
		if got, best := answer.Load.Level(), m.best(); got < 0.90*best || got > best {
			t.Errorf("work %v: the answer's scale is %.3f after %d trials (%s), the best is %.3f", work, got, len(events), answer.Candidate, best)
		}
	}
}

func TestResumesAnywhere(t *testing.T) {
	t.Parallel()
	newMachine(t, 10*time.Millisecond, time.Millisecond, search.Budget{Trials: 20}).run(t, true)
}

// The campaign keeps its budget, and begins with the default configuration at the profile's traffic.
func TestBeginsWithTheProfilesTraffic(t *testing.T) {
	t.Parallel()
	_, events := newMachine(t, 10*time.Millisecond, time.Millisecond, search.Budget{Time: time.Minute}).run(t, false)
	first := events[0].Trial
	if !first.Candidate.IsDefault() || first.Load.Level() < 1 || first.Load.Level() > 1.05 {
		t.Errorf("the first trial is of %s at %s", first.Candidate, first.Load)
	}
	if last := events[len(events)-1].Elapsed; last > time.Minute+5*time.Second {
		t.Errorf("the campaign took %v of a minute", last)
	}
}

// more returns the machine with a third model that has nothing to choose, and no traffic worth
// mentioning.
func (m machine) more(t *testing.T, rate float64) machine {
	t.Helper()
	third := search.Part{Model: "logger", Space: search.Space{
		Load: search.LoadAxis{Rate: true, Levels: []float64{rate}, BatchSize: 1}, Facts: search.Facts{Cores: cores, Batching: true, Precisions: []string{"fp32"}},
	}}
	space, err := joint.Space(append(m.settings.Space.Parts, third), nil, m.settings.Space.Load.Levels, search.Facts{Cores: cores})
	if err != nil {
		t.Fatal(err)
	}
	m.settings.Space = space
	m.work = map[string]time.Duration{"encoder": m.work["encoder"], "ranker": m.work["ranker"], "logger": time.Microsecond}
	return m
}

// A third model with hardly any traffic changes neither the number of candidates, nor the trials, nor
// the answer.
func TestThirdModelWithoutTraffic(t *testing.T) {
	t.Parallel()
	two := newMachine(t, 10*time.Millisecond, time.Millisecond, search.Budget{Trials: 40})
	three := two.more(t, 0.001)
	want, _ := two.settings.Space.Candidates().Len()
	if n, _ := three.settings.Space.Candidates().Len(); n != want {
		t.Errorf("%d candidates with the third model, want %d", n, want)
	}
	a, alone := two.run(t, false)
	b, inCompany := three.run(t, false)
	if len(alone) != len(inCompany) {
		t.Fatalf("%d trials with the third model, want %d", len(inCompany), len(alone))
	}
	for i, e := range alone {
		if other := inCompany[i].Trial; other.Candidate.Key() != e.Trial.Candidate.Key() || other.Load.Scale != e.Trial.Load.Scale {
			t.Fatalf("trial %d is %s at %s, want %s at %s", i+1, other.Candidate, other.Load, e.Trial.Candidate, e.Trial.Load)
		}
	}
	x, y := a.SoFar().Answer(), b.SoFar().Answer()
	if x == nil || y == nil || x.Candidate.Key() != y.Candidate.Key() || x.Load.Scale != y.Load.Scale {
		t.Errorf("the answer is %+v with the third model, want %+v", y, x)
	}
}

// divided returns the machine with the choice to divide its two cores. A model on a core of its own does not
// wait for the other one.
func (m machine) divided(t *testing.T, values ...search.Value) machine {
	t.Helper()
	server := []search.Knob{{Name: search.KnobIsolation, Scope: search.ScopePool, Values: values}}
	space, err := joint.Space(m.settings.Space.Parts, server, m.settings.Space.Load.Levels, search.Facts{Cores: cores})
	if err != nil {
		t.Fatal(err)
	}
	m.settings.Space = space
	return m
}

// A division of the cores is a neighbour like any other, also if the profile does not list shared cores, which
// the default has. Shared ones are not measured a second time.
func TestDividesCores(t *testing.T) {
	t.Parallel()
	for _, values := range [][]search.Value{{search.IsolationShared, search.DividedCores([]int{1, 1})}, {search.DividedCores([]int{1, 1})}} {
		m := newMachine(t, 10*time.Millisecond, time.Millisecond, search.Budget{Trials: 40}).divided(t, values...)
		p, events := m.run(t, false)
		answer := p.SoFar().Answer()
		if answer == nil {
			t.Errorf("%v: no answer after %d trials", values, len(events))
			continue
		}
		tried, shared := 0, 0
		for _, e := range events {
			if v, _ := e.Trial.Candidate.Get(search.KnobIsolation); v == "cores:1,1" {
				tried++
			} else if e.Trial.Phase == search.PhaseSearch {
				shared++
			}
			if e.Trial.Candidate.Key() == "isolation=shared" {
				t.Error("the default is measured again under another name")
			}
		}
		if tried == 0 || shared > 0 != (len(values) > 1) {
			t.Errorf("%v: of %d trials %d divide the cores, and %d share them beside the default", values, len(events), tried, shared)
		}
		if got, best := answer.Load.Level(), m.best(); got > best {
			t.Errorf("%v: the answer's scale is %.3f after %d trials (%s), the best is %.3f", values, got, len(events), answer.Candidate, best)
		}
	}
}
