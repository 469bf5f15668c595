package search_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/search"
)

// A configuration without a dynamic batcher gets one with any size or delay that is set. The
// default's preferred sizes are dropped if the largest batch differs.
func TestServing(t *testing.T) {
	t.Parallel()
	facts := search.Facts{Batching: true, BaseMaxBatchSize: 4, BaseInstances: 2, GPUs: 2, InstanceGroups: map[search.Value]int{"two groups": 5},
		Base: map[string]search.Value{search.KnobIntraOpThreads: "3"}}
	plain := search.Space{Facts: facts}
	check := func(name string, space search.Space, c search.Candidate, want search.Serving) {
		t.Helper()
		if diff := cmp.Diff(want, space.Serving(c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	const batch, delay, preferred = search.KnobMaxBatchSize, search.KnobMaxQueueDelay, search.KnobPreferredBatchSize
	serving := func(change func(*search.Serving)) search.Serving {
		s := search.Serving{MaxBatch: 4, Instances: 2, Devices: 1, Threads: 3}
		change(&s)
		return s
	}
	check("the default", plain, search.Candidate{}, serving(func(*search.Serving) {}))
	check("a size", plain, of(batch, "8"), serving(func(s *search.Serving) { s.MaxBatch, s.Dynamic = 8, true }))
	check("a delay", plain, of(delay, "100us"), serving(func(s *search.Serving) { s.Dynamic, s.Delay = true, 100*time.Microsecond }))
	check("no delay", plain, of(delay, "0us"), serving(func(*search.Serving) {}))
	check("no batches", plain, of(batch, "0"), serving(func(s *search.Serving) { s.MaxBatch = 0 }))
	check("threads", plain, of(search.KnobIntraOpThreads, "1"), serving(func(s *search.Serving) { s.Threads = 1 }))
	check("instances on each of two GPUs", plain, of(search.KnobInstanceCount, "3", search.KnobExecutionProvider, "cuda"),
		serving(func(s *search.Serving) { s.Instances, s.Devices = 6, 2 }))
	check("instance groups", plain, of(search.KnobInstanceGroup, "two groups", search.KnobExecutionProvider, "cuda"),
		serving(func(s *search.Serving) { s.Instances = 5 }))

	preferring := batching()
	one := search.Serving{MaxBatch: 4, Dynamic: true, Preferred: []int{4}, Instances: 1, Devices: 1}
	check("the default's preferred size", preferring, search.Candidate{}, one)
	one.MaxBatch, one.Preferred = 8, nil
	check("with another largest batch", preferring, of(batch, "8"), one)
	one.Preferred = []int{8, 2}
	check("its own preferred sizes", preferring, of(batch, "8", preferred, "[8,2]"), one)
}
