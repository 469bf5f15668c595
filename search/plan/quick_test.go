package plan_test

import (
	"testing"
	"time"

	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

// Quick climbs from the smallest batch that has a candidate. It keeps other knobs at their values
// in the space, although a batch of one has none.
func TestQuickClimbsAroundFolds(t *testing.T) {
	t.Parallel()
	knob := func(name string, values ...search.Value) search.Knob {
		scope, _ := search.KnobScope(name)
		return search.Knob{Name: name, Scope: scope, Values: values}
	}
	check := func(name string, clientBatch int, knobs []search.Knob, want ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := searchtest.Small()
			s := searchtest.Settings(l, time.Second)
			s.Space.Knobs, s.Space.Load.BatchSize = knobs, clientBatch
			p, err := plan.New("quick", s)
			if err != nil {
				t.Fatal(err)
			}
			legal := map[string]bool{}
			for _, c := range s.Space.Candidates().All() {
				legal[c.Key()] = true
			}
			measured := map[string]bool{}
			for _, e := range phases(l.Run(p, 1000), search.PhaseSearch) {
				key := e.Trial.Candidate.Key()
				if measured[key] = true; !legal[key] {
					t.Errorf("%s is no candidate of the space", key)
				}
			}
			for _, key := range want {
				if !measured[key] {
					t.Errorf("%s was not measured, but %v", key, measured)
				}
			}
			if why := p.Ask().Why; why != "the hill climb has ended, and the best loads of its best configurations are found" {
				t.Errorf("the search ended because %q", why)
			}
		})
	}
	// Batches of 1 and 2 are smaller than a request. Around 4, the three nearest larger ones are
	// within the radius of a neighbourhood.
	check("large requests", 4, []search.Knob{knob(search.KnobMaxBatchSize, "1", "2", "4", "8", "16", "32", "64", "128")},
		"max_batch_size=4", "max_batch_size=8", "max_batch_size=16", "max_batch_size=32")
	check("preferred sizes", 1, []search.Knob{knob(search.KnobMaxBatchSize, "4", "8", "16"), knob(search.KnobPreferredBatchSize, "[8]")},
		"max_batch_size=8 preferred_batch_size=[8]", "max_batch_size=16 preferred_batch_size=[8]")
	check("a preferred size that fits no batch", 1, []search.Knob{knob(search.KnobMaxBatchSize, "1", "4"), knob(search.KnobPreferredBatchSize, "[8]", "[4]")},
		"max_batch_size=1 preferred_batch_size=[]", "max_batch_size=4 preferred_batch_size=[4]")
	check("delays", 1, []search.Knob{knob(search.KnobMaxBatchSize, "1", "2", "4", "8"), knob(search.KnobMaxQueueDelay, "500us", "900us")},
		"max_batch_size=1 max_queue_delay=0us", "max_batch_size=2 max_queue_delay=500us", "max_batch_size=4 max_queue_delay=500us",
		"max_batch_size=8 max_queue_delay=500us")
}
