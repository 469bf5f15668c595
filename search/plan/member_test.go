package plan

import (
	"slices"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/searchtest"
)

// One launch whose p99 is above the limit by chance does not lower the load; a second one does, and so does a clear miss.
func TestMemberRetreatsOnEvidence(t *testing.T) {
	t.Parallel()
	goal := search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{searchtest.AtMost(measure.LatencyP99, 0.029)},
	}
	axis := search.LoadAxis{Levels: []float64{8, 16, 32}, BatchSize: 1}
	// Of 100 requests 98 are within the limit and two are not: the 99th percentile is beyond it, its interval begins below.
	unlucky := append(slices.Repeat([]time.Duration{28 * time.Millisecond}, 98), 31*time.Millisecond, 31*time.Millisecond)
	clear := slices.Repeat([]time.Duration{40 * time.Millisecond}, 100)
	for name, test := range map[string]struct {
		launches [][]time.Duration
		want     float64
	}{
		"one unlucky launch":   {[][]time.Duration{unlucky}, 32},
		"two unlucky launches": {[][]time.Duration{unlucky, unlucky}, 16},
		"a clear miss":         {[][]time.Duration{clear}, 16},
	} {
		load := axis.At(32)
		m := newMember(search.Standing{Load: load, Point: search.Point{Level: 32, Score: 7, Scored: true}})
		for _, latencies := range test.launches {
			m.tell(search.Event{Trial: search.Trial{Load: load, Windows: 1, Window: time.Second}, Measurement: windowOf(latencies)}, goal, axis)
		}
		if m.current != test.want {
			t.Errorf("%s: goes on at %g, want %g", name, m.current, test.want)
		}
	}
}

// A member that has too little throughput at its load gets more of it, for all that its latency is better low.
func TestMemberAdvancesForThroughput(t *testing.T) {
	t.Parallel()
	least := 150.0
	goal := search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.LatencyP99, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.Throughput, Min: &least}},
	}
	axis := search.LoadAxis{Levels: []float64{8, 16, 32}, BatchSize: 1}
	m := newMember(search.Standing{Load: axis.At(8), Point: search.Point{Level: 8, Score: 5, Scored: true}})
	tell := func(requests int, latency time.Duration) {
		load := axis.At(m.current)
		m.tell(search.Event{Trial: search.Trial{Load: load, Windows: 1, Window: time.Second}, Measurement: windowOf(slices.Repeat([]time.Duration{latency}, requests))},
			goal, axis)
	}
	tell(100, 20*time.Millisecond)
	if m.current != 16 {
		t.Fatalf("with 100 of 150 inferences/s at 8 it goes on at %g, want 16", m.current)
	}
	tell(190, 21*time.Millisecond)
	tell(190, 21*time.Millisecond)
	if level, ok := m.bestLevel(goal, axis, 1000); m.current != 16 || !ok || level != 16 {
		t.Errorf("with 190 at 16 it goes on at %g, and is best at %g, %t; no higher load makes it quicker", m.current, level, ok)
	}
}

// Three launches that miss a limit refute what the search found at higher loads, too, and say nothing of lower ones.
func TestFinalsRefuteHigherLoads(t *testing.T) {
	t.Parallel()
	s := search.Settings{
		Goal: search.Goal{
			Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
			Constraints: []search.Constraint{searchtest.AtMost(measure.LatencyP99, 0.029)},
		},
		Space: search.Space{Load: search.LoadAxis{Levels: []float64{8, 16, 32}, BatchSize: 1}},
	}
	found := func(level float64) search.Standing {
		return search.Standing{Load: s.Space.Load.At(level), Point: search.Point{Level: level, Score: 7, Scored: true}}
	}
	f := &finals{settings: s, members: []member{newMember(found(16))}}
	for launches := 1; launches <= telling; launches++ {
		f.members[0].tell(search.Event{Trial: search.Trial{Load: s.Space.Load.At(16), Windows: 1, Window: time.Second},
			Measurement: windowOf(slices.Repeat([]time.Duration{40 * time.Millisecond}, 100))}, s.Goal, s.Space.Load)
		lower, same, higher := f.refutes(found(8)), f.refutes(found(16)), f.refutes(found(32))
		if lower || !same || higher != (launches == telling) {
			t.Errorf("%d launches that miss the limit at 16 refute 8: %t, 16: %t, 32: %t", launches, lower, same, higher)
		}
	}
}

// windowOf is a measurement of one window with these latencies.
func windowOf(latencies []time.Duration) measure.Measurement {
	n := len(latencies)
	return measure.Measurement{Launch: 1, Windows: []measure.Window{{Duration: time.Second, Requests: n, Inferences: n,
		Sub: []measure.SubWindow{{Requests: n, Latency: measure.NewHistogram(latencies)}}}}}
}
