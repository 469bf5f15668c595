package posterior

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

// trialAt returns a trial of a cell whose latency is a factor of 10 ms.
func trialAt(c search.Candidate, clients int, factor float64) search.Event {
	latency := time.Duration(factor * float64(10*time.Millisecond))
	latencies := slices.Repeat([]time.Duration{latency}, 10)
	sub := measure.SubWindow{Requests: 10, Duration: time.Second, Latency: measure.NewHistogram(latencies), Sum: 10 * latency}
	w := measure.Window{Duration: time.Second, Requests: 100 * clients, Inferences: 100 * clients, Sub: []measure.SubWindow{sub}}
	return search.Event{
		Trial:       search.Trial{Candidate: c, Load: measure.Load{Concurrency: clients, BatchSize: 1}, Phase: search.PhaseSearch},
		Measurement: measure.Measurement{Windows: []measure.Window{w}},
	}
}

// Cells at loads around a limit have hundreds of trials. Those beyond the limit have a few lucky ones, which keep it. The cell that keeps
// the limit, and the default, are estimated together with the others, and one far below or far beyond the limit is not.
func TestManyTrialsNearALimit(t *testing.T) {
	t.Parallel()
	limit := 0.010
	goal := search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}},
	}
	c := search.Candidate{}.With(search.KnobInstanceCount, search.IntValue(2))
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 6))
		var events []search.Event
		add := func(c search.Candidate, clients, trials int, mean float64) {
			for range trials {
				events = append(events, trialAt(c, clients, mean*math.Exp(0.04*r.NormFloat64())))
			}
		}
		add(search.Candidate{}, 1, 3, 5)
		add(c, 2, 1, 0.5)
		add(c, 20, 60, 0.94) // the answer
		add(c, 21, 130, 1.03)
		add(c, 22, 130, 1.05)
		add(c, 60, 40, 3)
		r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		joined, plain := split(events, Options{Goal: goal})
		if len(joined)+len(plain) != len(events) {
			t.Fatalf("seed %d: %d and %d of %d trials", seed, len(joined), len(plain), len(events))
		}
		is := map[int]bool{}
		for _, e := range joined {
			is[e.Trial.Load.Concurrency] = true
		}
		if !is[1] || !is[20] || is[60] {
			t.Errorf("seed %d: the loads of the joint estimate are %v", seed, is)
		}
	}
}
