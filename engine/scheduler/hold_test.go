package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/engine/scheduler"
)

// Requests of one row arrive every x/2. The first three wait for each other; one that expires does so
// only then. Later requests are served at once.
func TestHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, scheduler.Settings{Dynamic: true, MaxBatch: 8, Hold: 3, DefaultPolicy: scheduler.Policy{Timeout: x / 4}})
		for _, name := range []string{"A", "B", "C", "D"} {
			b.enqueue(t, scheduler.Item[string]{Value: name})
			time.Sleep(x / 2)
		}
		// A and B are over their time when C, the third, arrives
		if d := gocmp.Diff([]string{"C 1.00-2.00"}, b.executions()[:1]); d != "" {
			t.Error(d)
		}
	})
}

// A scheduler that ends does not wait for more.
func TestHoldEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, scheduler.Settings{Dynamic: true, MaxBatch: 8, Hold: 3})
		b.enqueue(t, scheduler.Item[string]{Value: "A"})
		b.enqueue(t, scheduler.Item[string]{Value: "B"})
		time.Sleep(x)
		if d := gocmp.Diff([]string{"AB 1.00-2.00"}, b.executions()); d != "" {
			t.Error(d)
		}
	})
}

// Nor does one that gets no more requests.
func TestUnhold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, scheduler.Settings{Dynamic: true, MaxBatch: 8, Hold: 3})
		b.enqueue(t, scheduler.Item[string]{Value: "A"})
		time.Sleep(x)
		b.s.Unhold()
		time.Sleep(x)
		b.enqueue(t, scheduler.Item[string]{Value: "B"}) // it was on its way
		time.Sleep(2 * x)
		if d := gocmp.Diff([]string{"A 1.00-2.00", "B 2.00-3.00"}, b.executions()); d != "" {
			t.Error(d)
		}
	})
}
