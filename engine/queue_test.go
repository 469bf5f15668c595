package engine_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/engine/statistics"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// unbatched is a model without a batch dimension: its max_batch_size stays 0.
func unbatched() modelconfig.ModelIO {
	one := func(name string) []modelconfig.Tensor {
		return []modelconfig.Tensor{{Name: name, DataType: configpb.DataType_TYPE_INT32, Dims: []int64{16}}}
	}
	return modelconfig.ModelIO{Inputs: one("X"), Outputs: one("Y")}
}

// The queue of a model that does not batch also has limits, timeouts and priorities. A request that
// times out in it counts as rejected. One that finds it full counts nowhere.
func TestQueueOfUnbatchedModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &enginetest.Backend{IO: unbatched(), ServiceTime: func(int, int) time.Duration { return time.Second }}
		s, _ := open(t, b, `instance_group { count: 1 kind: KIND_CPU }
			dynamic_batching { priority_levels: 2 default_priority_level: 2
				default_queue_policy { max_queue_size: 2 default_timeout_microseconds: 1500000 } }`)
		type outcome struct {
			After time.Duration
			Error string
		}
		var clients sync.WaitGroup
		var mu sync.Mutex
		got, begin := map[string]outcome{}, time.Now()
		send := func(id string, priority uint64) {
			clients.Go(func() {
				response, err := s.Infer(t.Context(), &engine.Request{Model: "m", ID: id, Priority: priority, Inputs: []engine.Tensor{tensor("X", 16)}})
				o := outcome{After: time.Since(begin)}
				if err != nil {
					o.Error = err.Error()
				} else {
					response.Release()
				}
				mu.Lock()
				defer mu.Unlock()
				got[id] = o
			})
			synctest.Wait() // it is executed, queued or refused
		}
		send("running", 0)
		send("first", 0)
		send("second", 0)
		send("third", 0)
		send("urgent", 1) // in its own queue, ahead of the others
		clients.Wait()
		expired := outcome{1500 * time.Millisecond, "Request timeout expired"}
		want := map[string]outcome{
			"running": {After: time.Second}, "urgent": {After: 2 * time.Second}, "first": expired, "second": expired,
			"third": {Error: "[request id: third] Exceeds maximum queue size"},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("outcomes (-want +got):\n%s", d)
		}
		m := s.Metrics()[0]
		if n := m.Statistics.InferenceStats; n.Success.Count != 2 || n.Fail.Count != 2 {
			t.Errorf("%d succeeded and %d failed, want 2 and the 2 that timed out", n.Success.Count, n.Fail.Count)
		}
		if d := cmp.Diff(map[statistics.Failure]uint64{statistics.FailureRejected: 2}, m.Failures); d != "" {
			t.Errorf("failures by reason (-want +got):\n%s", d)
		}
	})
}
