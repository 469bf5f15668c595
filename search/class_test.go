package search_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/queuesim"
)

// batching returns a space whose default has batches of 4, prefers full batches, and does not wait.
func batching() search.Space {
	return search.Space{
		Knobs: []search.Knob{
			{Name: search.KnobInstanceCount, Scope: search.ScopePool, Values: []search.Value{"1", "2"}},
			{Name: search.KnobMaxBatchSize, Scope: search.ScopeBatcher, Values: []search.Value{"1", "2", "4", "8", "16"}},
			{Name: search.KnobMaxQueueDelay, Scope: search.ScopeBatcher, Values: []search.Value{"0us", "2000us"}},
			{Name: search.KnobPreferredBatchSize, Scope: search.ScopeBatcher, Values: []search.Value{"[]", "[2]", "[4]"}},
		},
		Load: search.LoadAxis{Levels: []float64{1, 2, 3, 4, 6, 8, 16}, BatchSize: 1},
		Facts: search.Facts{Batching: true, BaseMaxBatchSize: 4, BaseInstances: 1, Base: map[string]search.Value{
			search.KnobInstanceCount: "1", search.KnobMaxBatchSize: "4", search.KnobMaxQueueDelay: "0us", search.KnobPreferredBatchSize: "[4]"}},
	}
}

func of(pairs ...string) search.Candidate {
	var c search.Candidate
	for i := 0; i < len(pairs); i += 2 {
		c = c.With(pairs[i], search.Value(pairs[i+1]))
	}
	return c
}

func TestClassKey(t *testing.T) {
	t.Parallel()
	space := batching()
	const instances, batch, delay, preferred = search.KnobInstanceCount, search.KnobMaxBatchSize, search.KnobMaxQueueDelay, search.KnobPreferredBatchSize
	closed := func(n, client int) measure.Load { return measure.Load{Concurrency: n, BatchSize: client} }
	for _, tc := range []struct {
		name string
		a, b search.Candidate
		load measure.Load
		want bool
	}{
		{"all in flight fit into both", of(batch, "4"), of(batch, "16"), closed(4, 1), true},
		{"one more than fit into the smaller", of(batch, "4"), of(batch, "16"), closed(5, 1), false},
		{"requests of two inferences that fit", of(batch, "4"), of(batch, "8"), closed(2, 2), true},
		{"requests of two inferences that do not", of(batch, "4"), of(batch, "8"), closed(3, 2), false},
		{"one in flight, with batches or without", of(batch, "1"), of(batch, "8"), closed(1, 1), true},
		{"one that waits for company", of(batch, "8"), of(batch, "8", delay, "2000us"), closed(4, 1), false},
		{"two that wait for company", of(batch, "8", delay, "2000us"), of(batch, "16", delay, "2000us"), closed(4, 1), false},
		{"a batch of one never waits", of(batch, "1"), of(batch, "1", delay, "2000us"), closed(8, 1), true},
		{"other pools", of(instances, "1", batch, "8"), of(instances, "2", batch, "8"), closed(4, 1), false},
		{"a knob that the space has not", of(instances, "1", batch, "4", search.KnobIntraOpThreads, "2"), of(instances, "1", batch, "4"), closed(4, 1), false},
		{"the default and what says the same", search.Candidate{}, of(instances, "1", batch, "4", delay, "0us"), closed(16, 1), true},
		{"the default's preferred size, which is all in flight", search.Candidate{}, of(batch, "8"), closed(4, 1), true},
		{"a preferred size that ends batches", of(batch, "8", preferred, "[2]"), of(batch, "8"), closed(4, 1), false},
		{"the same preferred size", of(batch, "8", preferred, "[4]"), of(batch, "8", preferred, "[4]"), closed(6, 1), true},
		{"an open loop", of(batch, "8"), of(batch, "16"), measure.Load{RequestRate: 1, BatchSize: 1}, false},
		{"an open loop, the same", of(batch, "8"), of(batch, "8", delay, "0s"), measure.Load{RequestRate: 1, BatchSize: 1}, true},
	} {
		a, b := space.ClassKey(tc.a, tc.load), space.ClassKey(tc.b, tc.load)
		if (a == b) != tc.want {
			t.Errorf("%s: %q and %q, want the same: %t", tc.name, a, b, tc.want)
		}
	}
	delete(space.Facts.Base, batch) // the default may have no dynamic batcher, and then joins nothing
	if space.ClassKey(search.Candidate{}, closed(4, 1)) == space.ClassKey(of(batch, "8"), closed(4, 1)) {
		t.Error("a default that may join nothing is taken for one that does")
	}
}

// Configurations of one class make the same batches at the same instants, for any service times.
// The queue simulation, which is Triton's batcher, gives results that are equal to the last digit.
func TestClassesAreServedAlike(t *testing.T) {
	t.Parallel()
	space := batching()
	random := rand.New(rand.NewPCG(51, 52))
	simulate := func(c search.Candidate, load measure.Load, curve queuesim.ServiceCurve, seed uint64) queuesim.Result {
		number := func(knob string) int { n, _ := space.Value(c, knob).Int(); return n }
		delay, _ := space.Value(c, search.KnobMaxQueueDelay).Duration()
		preferred, _ := space.Value(c, search.KnobPreferredBatchSize).Ints()
		b := queuesim.Batcher{Instances: number(search.KnobInstanceCount), MaxBatch: number(search.KnobMaxBatchSize), Delay: delay, Preferred: preferred}
		b.Dynamic = b.MaxBatch > 1
		return queuesim.Simulate(b, curve, load, queuesim.Options{Requests: 300, Seed: seed})
	}
	shared := 0
	for round := range 20 {
		fixed, each := 1e-3*random.Float64(), 1e-3*random.Float64()
		curve := queuesim.ServiceCurve{Sizes: []int{1, 100}, Alone: []float64{fixed + each, fixed + 100*each}, Spread: 0.1 * random.Float64(), Overhead: 1e-4}
		for _, level := range space.Load.Levels {
			load, seen := space.Load.At(level), map[string]queuesim.Result{}
			for _, c := range space.Candidates().All() {
				class, got := space.ClassKey(c, load), simulate(c, load, curve, uint64(round))
				want, known := seen[class]
				if !known {
					seen[class] = got
					continue
				}
				shared++
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s at %v is of class %q, and is served otherwise:\n%s", c, load, class, diff)
				}
			}
		}
	}
	if shared < 1000 {
		t.Errorf("only %d cells share a class", shared)
	}
}
