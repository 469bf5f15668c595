package search

import (
	"testing"
	"time"

	"tuner/measure"
)

// event returns a trial with batches up to a size in a process with this many bytes.
func event(batch int, bytes int64) Event {
	c := NewCandidate(Setting{KnobMaxBatchSize, IntValue(batch)})
	return Event{Trial: Trial{Candidate: c, Phase: PhaseSearch}, Measurement: measure.Measurement{Memory: bytes, Windows: make([]measure.Window, 1)}}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	space := Space{Facts: Facts{Batching: true}}
	var p Process
	check := func(what string, e Event, pool string, batch int) {
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
	service.Trial.Phase, service.Trial.Sizes, service.Measurement.Windows = PhaseService, []int{1, 2, 8, 16}, make([]measure.Window, 3)
	check("a service trial that left the largest out", service, "default", 8)
	unloaded := event(32, 1)
	unloaded.Measurement.Failure = &measure.Failure{Stage: measure.StageLoad}
	check("a configuration that did not load", unloaded, "default", 8)
	launched := event(2, 1)
	launched.Measurement.Times.Launch = time.Second
	check("another launch", launched, "default", 2)
	other := event(2, 1)
	other.Trial.Candidate = NewCandidate(Setting{KnobInstanceCount, IntValue(3)}, Setting{KnobMaxBatchSize, IntValue(2)})
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
	space := Space{Facts: Facts{Batching: true}}
	objective := func(m measure.Metric) Goal { return Goal{Objective: Objective{Terms: []Term{{m, 1}}}} }
	limit := func(c Constraint) Goal {
		g := objective(measure.Throughput)
		g.Constraints = []Constraint{c}
		return g
	}
	for name, tt := range map[string]struct {
		goal  Goal
		bytes int64
		batch int // of the candidate
		want  bool
	}{
		"nothing asks for memory":    {objective(measure.Throughput), 200, 4, false},
		"the objective does":         {objective(measure.Memory), 200, 4, true},
		"the largest batches so far": {objective(measure.Memory), 200, 8, false},
		"beyond the limit":           {limit(Constraint{Metric: measure.Memory, Max: &most}), 200, 4, true},
		"within the limit":           {limit(Constraint{Metric: measure.Memory, Max: &most}), 99, 4, false},
		"an unknown memory":          {limit(Constraint{Metric: measure.Memory, Max: &most}), 0, 4, true},
		"a least value":              {limit(Constraint{Metric: measure.Memory, Min: &least}), 99, 4, true},
		"another limit":              {limit(Constraint{Metric: measure.LatencyP99, Max: &most}), 200, 4, false},
	} {
		p := Process{}.After(event(8, tt.bytes), space)
		if got := p.Burdens(event(tt.batch, 0).Trial.Candidate, Settings{Space: space, Goal: tt.goal}); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}
