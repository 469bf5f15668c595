package footprint

import (
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

// event returns a trial with batches up to a size in a process with this many bytes.
func event(batch int, bytes int64) search.Event {
	c := search.NewCandidate(search.Setting{Knob: search.KnobMaxBatchSize, Value: search.IntValue(batch)})
	return search.Event{Trial: search.Trial{Candidate: c, Phase: search.PhaseSearch}, Measurement: measure.Measurement{Memory: bytes, Windows: make([]measure.Window, 1)}}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	space := search.Space{Facts: search.Facts{Batching: true}}
	var p Process
	check := func(what string, e search.Event, pool string, batch int) {
		t.Helper()
		if p = p.After(e, space); p.Pool != pool || p.Batch != batch {
			t.Errorf("%s: %q with batches of %d, want %q and %d", what, p.Pool, p.Batch, pool, batch)
		}
	}
	check("the first trial", event(8, 1), "default", 8)
	check("smaller batches", event(4, 1), "default", 8)
	fresh := event(4, 1)
	fresh.Trial.Fresh = true
	check("a process of its own", fresh, "default", 4)
	service := event(16, 1)
	service.Trial.Phase, service.Trial.Sizes, service.Measurement.Windows = search.PhaseService, []int{1, 2, 8, 16}, make([]measure.Window, 3)
	check("a service trial that left the largest out", service, "default", 8)
	unloaded := event(32, 1)
	unloaded.Measurement.Failure = &measure.Failure{Stage: measure.StageLoad}
	check("a configuration that did not load", unloaded, "default", 8)
	launched := event(2, 1)
	launched.Measurement.Times.Launch = time.Second
	check("another launch", launched, "default", 2)
	other := event(2, 1)
	other.Trial.Candidate = search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: search.IntValue(3)}, search.Setting{Knob: search.KnobMaxBatchSize, Value: search.IntValue(2)})
	check("another pool", other, other.Trial.Candidate.PoolKey(), 2)
	crash := event(2, 1)
	crash.Measurement.Failure = &measure.Failure{Stage: measure.StageCrash}
	check("a crash", crash, "", 0)
}

// The memory of larger batches burdens a configuration if the goal asks for its memory, unless it
// is within the limit anyway.
func TestBurdens(t *testing.T) {
	t.Parallel()
	most, least := 100.0, 10.0
	space := search.Space{Facts: search.Facts{Batching: true}}
	objective := func(m measure.Metric) search.Goal {
		return search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: m, Weight: 1}}}}
	}
	limit := func(c search.Constraint) search.Goal {
		g := objective(measure.Throughput)
		g.Constraints = []search.Constraint{c}
		return g
	}
	for name, tt := range map[string]struct {
		goal  search.Goal
		bytes int64
		batch int // of the candidate
		want  bool
	}{
		"nothing asks for memory":    {objective(measure.Throughput), 200, 4, false},
		"the objective does":         {objective(measure.Memory), 200, 4, true},
		"the largest batches so far": {objective(measure.Memory), 200, 8, false},
		"beyond the limit":           {limit(search.Constraint{Metric: measure.Memory, Max: &most}), 200, 4, true},
		"within the limit":           {limit(search.Constraint{Metric: measure.Memory, Max: &most}), 99, 4, false},
		"an unknown memory":          {limit(search.Constraint{Metric: measure.Memory, Max: &most}), 0, 4, true},
		"a least value":              {limit(search.Constraint{Metric: measure.Memory, Min: &least}), 99, 4, true},
		"another limit":              {limit(search.Constraint{Metric: measure.LatencyP99, Max: &most}), 200, 4, false},
	} {
		p := Process{}.After(event(8, tt.bytes), space)
		if got := p.Burdens(event(tt.batch, 0).Trial.Candidate, search.Settings{Space: space, Goal: tt.goal}); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// After a block its processes run until the next trial. That trial keeps the one of its pool, which
// has the memory of the block's batches. So its peak is no figure of smaller batches.
func TestProcessesOfABlock(t *testing.T) {
	t.Parallel()
	in := func(instances int, e search.Event) search.Event {
		e.Trial.Candidate = e.Trial.Candidate.With(search.KnobInstanceCount, search.IntValue(instances))
		return e
	}
	seat := func(e search.Event) search.Event {
		e.Trial.Fresh, e.Trial.Block, e.Measurement.Times.Launch = true, 1, time.Second
		return e
	}
	failed := seat(in(4, event(8, 0)))
	failed.Measurement.Failure = &measure.Failure{Stage: measure.StageCrash}
	space := search.Space{Facts: search.Facts{Batching: true}}
	settings := search.Settings{Space: space, Goal: search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Memory, Weight: 1}}}}}
	next := in(3, event(8, 400e6))

	var p Process
	for _, e := range []search.Event{seat(in(3, event(32, 400e6))), seat(in(2, event(4, 90e6))), failed} {
		p = p.After(e, space)
	}
	if got := p.During(next); got.Batch != 32 || !p.Burdens(next.Trial.Candidate, settings) {
		t.Errorf("the next trial has a process with batches of %d, want 32", got.Batch)
	}
	if got := p.During(in(4, event(8, 1))); got.Batch != 0 {
		t.Errorf("the process that crashed has batches of %d", got.Batch)
	}
	if p = p.After(next, space); p.Batch != 32 {
		t.Errorf("after that trial the process has batches of %d, want 32", p.Batch)
	}
	if got := p.During(in(2, event(4, 1))); got.Batch != 0 {
		t.Errorf("the other process of the block still runs, with batches of %d", got.Batch)
	}

	m := New(space)
	for _, e := range []search.Event{seat(in(3, event(32, 400e6))), seat(in(2, event(4, 90e6))), next} {
		m.Add(e)
	}
	if m.Knows(next.Trial.Candidate) {
		t.Error("a process that held larger batches shows the memory of smaller ones")
	}
}
