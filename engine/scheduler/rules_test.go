package scheduler_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/engine/scheduler"
)

// behindBlocker queues the items while the only instance is busy, and returns the names of the
// executions that follow.
func behindBlocker(t *testing.T, set scheduler.Settings, items ...scheduler.Item[string]) []string {
	t.Helper()
	b := newBench(1, set)
	synctest.Wait()
	b.block(t, 1, max(set.MaxBatch, 1))
	for _, it := range items {
		b.enqueue(t, it)
		time.Sleep(x / 8)
	}
	time.Sleep(20 * x)
	var names []string
	for _, e := range b.executions()[1:] {
		names = append(names, strings.Fields(e)[0])
	}
	return names
}

func TestRulesOfBatches(t *testing.T) {
	t.Parallel()
	type item = scheduler.Item[string]
	for _, tc := range []struct {
		name     string
		settings scheduler.Settings
		items    []item
		want     []string
	}{
		// A is sent alone when it has waited x/16. With B it is beyond the preferred size, and
		// closed. C, also sent alone, has waited longer than the delay when AB is taken, and fits.
		// So they are merged.
		{"batches that have waited are merged when one is taken", scheduler.Settings{Dynamic: true, MaxBatch: 8, Preferred: []int{4}, Delay: x / 16},
			[]item{{Value: "A", Rows: 3}, {Value: "B", Rows: 3}, {Value: "C", Rows: 2}}, []string{"ABC"}},
		{"but not beyond the maximum", scheduler.Settings{Dynamic: true, MaxBatch: 7, Preferred: []int{4}, Delay: x / 16},
			[]item{{Value: "A", Rows: 3}, {Value: "B", Rows: 3}, {Value: "C", Rows: 2}}, []string{"AB", "C"}},
		{"nor batches of other shapes", scheduler.Settings{Dynamic: true, MaxBatch: 8, Delay: x / 16},
			[]item{{Value: "A", Shape: "1"}, {Value: "B", Shape: "2"}, {Value: "C", Shape: "2"}}, []string{"A", "BC"}},
		{"what waits for an instance still grows", scheduler.Settings{Dynamic: true, MaxBatch: 8},
			[]item{{Value: "A"}, {Value: "B"}, {Value: "C"}}, []string{"ABC"}},
		{"without dynamic batching requests are served as they come, whatever the policies", scheduler.Settings{
			Levels: 2, DefaultLevel: 2, DefaultPolicy: scheduler.Policy{Timeout: x / 8, MaxQueue: 1}},
			[]item{{Value: "A"}, {Value: "B"}, {Value: "C", Priority: 1}}, []string{"A", "B", "C"}},
		{"without levels the policies of levels are void", scheduler.Settings{Dynamic: true, MaxBatch: 1,
			PolicyOfLevel: map[uint64]scheduler.Policy{1: {Timeout: x / 8, MaxQueue: 1}}},
			[]item{{Value: "A"}, {Value: "B", Priority: 1}}, []string{"A", "B"}},
		{"postponed requests come behind all others of their level, ahead of the next level", scheduler.Settings{Dynamic: true, MaxBatch: 1,
			// A and B expire
			Levels: 2, DefaultLevel: 1, PolicyOfLevel: map[uint64]scheduler.Policy{1: {Timeout: 7 * x / 10, Postpone: true}}},
			[]item{{Value: "A"}, {Value: "L", Priority: 2}, {Value: "B"}, {Value: "C"}}, []string{"C", "A", "B", "L"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if d := gocmp.Diff(tc.want, behindBlocker(t, tc.settings, tc.items...)); d != "" {
					t.Errorf("executions (-want +got):\n%s", d)
				}
			})
		})
	}
}

// Each level has its own queue and limit. Postponed requests count.
func TestQueueLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, scheduler.Settings{Dynamic: true, MaxBatch: 1, Levels: 2, DefaultLevel: 2,
			DefaultPolicy: scheduler.Policy{MaxQueue: 1},
			PolicyOfLevel: map[uint64]scheduler.Policy{1: {MaxQueue: 2, Timeout: x / 8, Postpone: true}}})
		defer b.s.Close()
		synctest.Wait()
		b.block(t, 1, 1)
		offer := func(priority uint64, want error) {
			t.Helper()
			if _, err := b.s.Enqueue(scheduler.Item[string]{Value: "A", Priority: priority}); !errors.Is(err, want) {
				t.Errorf("level %d: got %v, want %v", priority, err, want)
			}
		}
		offer(2, nil)
		offer(2, scheduler.ErrQueueFull)
		offer(1, nil)
		time.Sleep(x / 4) // it is postponed
		offer(1, nil)
		offer(1, scheduler.ErrQueueFull)
	})
}

// The preserved order is that in which requests join batches. An urgent request does not wait for
// those that it has overtaken.
func TestPreservedOrderIsThatOfBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, scheduler.Settings{Dynamic: true, MaxBatch: 1, PreserveOrdering: true, Levels: 2, DefaultLevel: 2})
		defer b.s.Close()
		synctest.Wait()
		b.block(t, 1, 1)
		late := b.enqueue(t, scheduler.Item[string]{Value: "A"})
		urgent := b.enqueue(t, scheduler.Item[string]{Value: "B", Priority: 1})
		if err := urgent.Wait(t.Context()); err != nil || time.Since(b.start) != x {
			t.Errorf("urgent: %v at %v, want it at %v", err, time.Since(b.start), x)
		}
		if err := late.Wait(t.Context()); err != nil || time.Since(b.start) != 2*x {
			t.Errorf("late: %v at %v, want it at %v", err, time.Since(b.start), 2*x)
		}
	})
}

// A batch from which one request was cancelled is executed with the others.
func TestCancelInFormedBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, scheduler.Settings{Dynamic: true, MaxBatch: 4})
		synctest.Wait()
		b.block(t, 1, 4)
		var tickets []*scheduler.Ticket[string]
		for _, name := range []string{"A", "B", "C"} {
			tickets = append(tickets, b.enqueue(t, scheduler.Item[string]{Value: name}))
		}
		var waiting sync.WaitGroup
		for i, ticket := range tickets {
			patience := 10 * x
			if i == 1 {
				patience = x / 2
			}
			waiting.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if err := ticket.Wait(ctx); (err != nil) != (i == 1) {
					t.Errorf("request %d: %v", i, err)
				}
			})
		}
		waiting.Wait()
		if d := gocmp.Diff([]string{"- -1.00-0.00", "AC 0.00-1.00"}, b.executions()); d != "" {
			t.Errorf("executions (-want +got):\n%s", d)
		}
	})
}

// After all waiting requests were cancelled, a new request waits no longer than the delay.
func TestArrivalAfterCancelledWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, scheduler.Settings{Dynamic: true, MaxBatch: 8, Delay: x})
		synctest.Wait()
		a := b.enqueue(t, scheduler.Item[string]{Value: "A"})
		ctx, cancel := context.WithTimeout(t.Context(), x/2)
		defer cancel()
		if err := a.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled request: got %v, want deadline exceeded", err)
		}
		c := b.enqueue(t, scheduler.Item[string]{Value: "C"})
		if err := c.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if d := gocmp.Diff([]string{"C 1.50-2.50"}, b.executions()); d != "" {
			t.Errorf("executions (-want +got):\n%s", d)
		}
	})
}

// bound records the order of its calls.
type bound struct {
	mu    *sync.Mutex
	calls *[]string
}

func (b bound) note(call string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*b.calls = append(*b.calls, call)
}

func (b bound) Bind() { b.note("bind") }

func (b bound) Execute([]scheduler.Item[int]) { b.note("execute") }

func TestBind(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var calls []string
	s := scheduler.New(scheduler.Settings{}, []scheduler.Executor[int]{bound{&mu, &calls}}, scheduler.GoTimer)
	for range 2 {
		ticket, err := s.Enqueue(scheduler.Item[int]{})
		if err != nil {
			t.Fatal(err)
		}
		if err := ticket.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	if d := gocmp.Diff([]string{"bind", "execute", "execute"}, calls); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}
