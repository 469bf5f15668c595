package scheduler

import (
	"testing"
	"time"
)

// Delays, priorities and policies say how long requests wait, and nothing else does then.
func TestWhatGathers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		set  Settings
		want bool
	}{
		{"a dynamic batcher", Settings{Gather: true, Dynamic: true, MaxBatch: 8}, true},
		{"with preferred sizes", Settings{Gather: true, Dynamic: true, MaxBatch: 8, Preferred: []int{1, 4}}, true},
		{"not asked for", Settings{Dynamic: true, MaxBatch: 8}, false},
		{"no batching", Settings{Gather: true, MaxBatch: 8}, false},
		{"batches of one", Settings{Gather: true, Dynamic: true, MaxBatch: 1}, false},
		{"one is preferred", Settings{Gather: true, Dynamic: true, MaxBatch: 8, Preferred: []int{1}}, false},
		{"a delay", Settings{Gather: true, Dynamic: true, MaxBatch: 8, Delay: time.Microsecond}, false},
		{"priorities", Settings{Gather: true, Dynamic: true, MaxBatch: 8, Levels: 2}, false},
		{"a timeout", Settings{Gather: true, Dynamic: true, MaxBatch: 8, DefaultPolicy: Policy{Timeout: time.Second}}, false},
		{"a timeout of requests", Settings{Gather: true, Dynamic: true, MaxBatch: 8, DefaultPolicy: Policy{AllowOverride: true}}, false},
		{"a bound of the queue", Settings{Gather: true, Dynamic: true, MaxBatch: 8, DefaultPolicy: Policy{MaxQueue: 8}}, false},
	} {
		if got := tc.set.normalised().gathers; got != tc.want {
			t.Errorf("%s: it gathers: %v", tc.name, got)
		}
	}
}
