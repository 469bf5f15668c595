package scheduler_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/engine/scheduler"
)

const x = 60 * time.Millisecond // duration of one execution

// bench is a scheduler whose instances take x for each execution, of any size, and record it.
type bench struct {
	start time.Time
	s     *scheduler.Scheduler[string]

	mu  sync.Mutex
	ran []execution
}

type execution struct {
	names    string
	from, to time.Time
}

func newBench(instances int, set scheduler.Settings) *bench {
	b := &bench{start: time.Now()}
	var executors []scheduler.Executor[string]
	for range instances {
		executors = append(executors, executor{b})
	}
	b.s = scheduler.New(set, executors, scheduler.GoTimer)
	return b
}

type executor struct{ b *bench }

func (e executor) Execute(items []scheduler.Item[string]) {
	var names []string
	for _, it := range items {
		names = append(names, it.Value)
	}
	from := time.Now()
	time.Sleep(x)
	e.b.mu.Lock()
	defer e.b.mu.Unlock()
	e.b.ran = append(e.b.ran, execution{strings.Join(names, ""), from, time.Now()})
}

// executions closes the scheduler and lists the executions, by start, then name. Times are in x
// since b.start.
func (b *bench) executions() []string {
	b.s.Close()
	slices.SortFunc(b.ran, func(a, c execution) int { return cmp.Or(a.from.Compare(c.from), cmp.Compare(a.names, c.names)) })
	var out []string
	for _, e := range b.ran {
		out = append(out, fmt.Sprintf("%s %.2f-%.2f", e.names, b.inX(e.from), b.inX(e.to)))
	}
	return out
}

func (b *bench) inX(at time.Time) float64 { return float64(at.Sub(b.start)) / float64(x) }

// block occupies all instances from time -x to 0, so that requests enqueued at 0 are queued
// together. It returns at 0.
func (b *bench) block(t *testing.T, instances, rows int) {
	t.Helper()
	for range instances {
		b.enqueue(t, scheduler.Item[string]{Value: "-", Rows: rows, Shape: "block"})
		synctest.Wait()
	}
	b.start = time.Now().Add(x)
}

func (b *bench) enqueue(t *testing.T, item scheduler.Item[string]) *scheduler.Ticket[string] {
	t.Helper()
	ticket, err := b.s.Enqueue(item)
	if err != nil {
		t.Fatalf("enqueue %q: %v", item.Value, err)
	}
	return ticket
}

// The requests A..E have 4, 2, 2, 6, 2 rows. A and C arrive at 0, B at x/3, D and E at 2x/3. A
// batch has at most 8 rows. The expected executions are those of the event simulation in the design
// notes (units of x).
func TestTiming(t *testing.T) {
	t.Parallel()
	dynamic := scheduler.Settings{Dynamic: true, MaxBatch: 8}
	delayed := scheduler.Settings{Dynamic: true, MaxBatch: 8, Delay: x / 2}
	for _, tc := range []struct {
		name      string
		instances int
		settings  scheduler.Settings
		want      []string
	}{
		{"one instance, no batching", 1, scheduler.Settings{},
			[]string{"A 0.00-1.00", "C 1.00-2.00", "B 2.00-3.00", "D 3.00-4.00", "E 4.00-5.00"}},
		{"one instance, no delay", 1, dynamic,
			[]string{"AC 0.00-1.00", "BD 1.00-2.00", "E 2.00-3.00"}},
		{"one instance, delay x/2", 1, delayed,
			[]string{"ACB 0.33-1.33", "DE 1.33-2.33"}},
		{"two instances, no batching", 2, scheduler.Settings{},
			[]string{"A 0.00-1.00", "C 0.00-1.00", "B 1.00-2.00", "D 1.00-2.00", "E 2.00-3.00"}},
		{"two instances, no delay", 2, dynamic,
			[]string{"AC 0.00-1.00", "B 0.33-1.33", "DE 1.00-2.00"}},
		{"two instances, delay x/2", 2, delayed,
			[]string{"ACB 0.33-1.33", "DE 0.67-1.67"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(tc.instances, tc.settings)
				synctest.Wait()
				if tc.settings.Dynamic && tc.settings.Delay == 0 { // an idle instance would start A alone
					b.block(t, tc.instances, 8)
					time.Sleep(x - time.Nanosecond)
				}
				send := func(name string, rows int) {
					b.enqueue(t, scheduler.Item[string]{Value: name, Rows: rows})
				}
				send("A", 4)
				send("C", 2)
				time.Sleep(x/3 + time.Microsecond)
				send("B", 2)
				time.Sleep(x / 3)
				send("D", 6)
				send("E", 2)
				time.Sleep(10 * x)
				got := slices.DeleteFunc(b.executions(), func(s string) bool { return strings.HasPrefix(s, "-") })
				if d := gocmp.Diff(tc.want, got); d != "" {
					t.Errorf("executions (-want +got):\n%s", d)
				}
			})
		})
	}
}

// Each case queues its requests behind a blocker, so that the batcher sees them in order while no
// instance is idle.
func TestBatchFormation(t *testing.T) {
	t.Parallel()
	type item = scheduler.Item[string]
	for _, tc := range []struct {
		name     string
		settings scheduler.Settings
		items    []item
		want     []string
	}{
		{"grows to the maximum", scheduler.Settings{Dynamic: true, MaxBatch: 4},
			[]item{{Value: "A"}, {Value: "B"}, {Value: "C"}, {Value: "D"}, {Value: "E"}}, []string{"ABCD", "E"}},
		{"never splits a request", scheduler.Settings{Dynamic: true, MaxBatch: 4},
			[]item{{Value: "A", Rows: 3}, {Value: "B", Rows: 2}, {Value: "C", Rows: 2}}, []string{"A", "BC"}},
		// Without delay a batch is closed as soon as it has a preferred size: AB. C is the second
		// of the two batches that are prepared ahead. When AB is taken, it grows up to the largest
		// preferred size.
		{"preferred sizes, no delay", scheduler.Settings{Dynamic: true, MaxBatch: 8, Preferred: []int{2, 4}},
			[]item{{Value: "A"}, {Value: "B"}, {Value: "C"}, {Value: "D"}, {Value: "E"}, {Value: "F"}, {Value: "G"}, {Value: "H"}},
			[]string{"AB", "CDEF", "GH"}},
		// A waits as an open batch of 3. With B it is beyond the preferred size, and closed, so C
		// starts the next. D is seen together with E when AB is taken: C and D are 4 rows.
		{"beyond the preferred size", scheduler.Settings{Dynamic: true, MaxBatch: 8, Preferred: []int{4}},
			[]item{{Value: "A", Rows: 3}, {Value: "B", Rows: 3}, {Value: "C", Rows: 2}, {Value: "D", Rows: 2}, {Value: "E", Rows: 2}},
			[]string{"AB", "CD", "E"}},
		{"other shapes start a new batch", scheduler.Settings{Dynamic: true, MaxBatch: 8},
			[]item{{Value: "A", Shape: "1"}, {Value: "B", Shape: "1"}, {Value: "C", Shape: "2"}, {Value: "D", Shape: "1"}},
			[]string{"AB", "C", "D"}},
		// With priorities no batch is prepared ahead. The urgent request overtakes, and both levels
		// share a batch.
		{"priorities", scheduler.Settings{Dynamic: true, MaxBatch: 2, Levels: 2, DefaultLevel: 2},
			[]item{{Value: "A"}, {Value: "B"}, {Value: "C"}, {Value: "D", Priority: 1}}, []string{"DA", "BC"}},
		{"an unknown priority is the default", scheduler.Settings{Dynamic: true, MaxBatch: 1, Levels: 2, DefaultLevel: 2},
			[]item{{Value: "A", Priority: 9}, {Value: "B", Priority: 1}}, []string{"B", "A"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(1, tc.settings)
				synctest.Wait()
				b.block(t, 1, max(tc.settings.MaxBatch, 1))
				time.Sleep(x / 2)
				for _, it := range tc.items {
					b.enqueue(t, it)
				}
				time.Sleep(20 * x)
				var got []string
				for _, e := range b.executions()[1:] {
					got = append(got, strings.Fields(e)[0])
				}
				if d := gocmp.Diff(tc.want, got); d != "" {
					t.Errorf("batches (-want +got):\n%s", d)
				}
			})
		})
	}
}

// With a delay, an idle instance waits for further requests, counted from the oldest one, and no
// longer.
func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, scheduler.Settings{Dynamic: true, MaxBatch: 8, Delay: x / 2})
		synctest.Wait()
		b.enqueue(t, scheduler.Item[string]{Value: "A"})
		time.Sleep(x / 4)
		b.enqueue(t, scheduler.Item[string]{Value: "B"})
		time.Sleep(5 * x)
		if d := gocmp.Diff([]string{"AB 0.50-1.50"}, b.executions()); d != "" {
			t.Errorf("executions (-want +got):\n%s", d)
		}
	})
}

func TestQueuePolicies(t *testing.T) {
	t.Parallel()
	type item = scheduler.Item[string]
	wait := func(ticket *scheduler.Ticket[string]) error { return ticket.Wait(context.Background()) }

	run := func(name string, p scheduler.Policy, f func(t *testing.T, b *bench)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(1, scheduler.Settings{Dynamic: true, MaxBatch: 1, DefaultPolicy: p})
				synctest.Wait()
				b.block(t, 1, 1)
				defer b.s.Close()
				f(t, b)
			})
		})
	}
	run("full queue", scheduler.Policy{MaxQueue: 2}, func(t *testing.T, b *bench) {
		b.enqueue(t, item{Value: "A"})
		b.enqueue(t, item{Value: "B"})
		if _, err := b.s.Enqueue(item{Value: "C"}); !errors.Is(err, scheduler.ErrQueueFull) {
			t.Errorf("third request: got %v, want ErrQueueFull", err)
		}
		if got := b.s.Pending(); got != 2 {
			t.Errorf("pending: got %d, want 2", got)
		}
	})
	run("expired requests are rejected at once", scheduler.Policy{Timeout: x / 2}, func(t *testing.T, b *bench) {
		a := b.enqueue(t, item{Value: "A"})
		if err := wait(a); !errors.Is(err, scheduler.ErrExpired) {
			t.Errorf("got %v, want ErrExpired", err)
		}
		if got := time.Since(b.start); got != -x/2 { // the blocker ends at 0
			t.Errorf("rejected at %v, want %v", got, -x/2)
		}
	})
	run("or served last", scheduler.Policy{Timeout: x / 2, Postpone: true}, func(t *testing.T, b *bench) {
		a := b.enqueue(t, item{Value: "A"})
		time.Sleep(3 * x / 4)
		c := b.enqueue(t, item{Value: "C"})
		if err := errors.Join(wait(a), wait(c)); err != nil {
			t.Fatal(err)
		}
		if d := gocmp.Diff([]string{"- -1.00-0.00", "C 0.00-1.00", "A 1.00-2.00"}, b.executions()); d != "" {
			t.Errorf("executions (-want +got):\n%s", d)
		}
	})
	run("a request can only shorten its timeout", scheduler.Policy{Timeout: x / 2, AllowOverride: true}, func(t *testing.T, b *bench) {
		long := b.enqueue(t, item{Value: "A", Timeout: 9 * x})
		short := b.enqueue(t, item{Value: "B", Timeout: x / 4})
		if err := wait(short); !errors.Is(err, scheduler.ErrExpired) || time.Since(b.start) != -3*x/4 {
			t.Errorf("short: %v at %v, want ErrExpired at %v", err, time.Since(b.start), -3*x/4)
		}
		if err := wait(long); !errors.Is(err, scheduler.ErrExpired) || time.Since(b.start) != -x/2 {
			t.Errorf("long: %v at %v, want ErrExpired at %v", err, time.Since(b.start), -x/2)
		}
	})
	run("not without permission", scheduler.Policy{Timeout: 9 * x}, func(t *testing.T, b *bench) {
		if err := wait(b.enqueue(t, item{Value: "A", Timeout: 1})); err != nil {
			t.Errorf("got %v, want it served", err)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for _, dynamic := range []bool{false, true} {
		t.Run(fmt.Sprintf("dynamic %v", dynamic), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(1, scheduler.Settings{Dynamic: dynamic, MaxBatch: 1})
				synctest.Wait()
				b.block(t, 1, 1)
				a := b.enqueue(t, scheduler.Item[string]{Value: "A"})
				c := b.enqueue(t, scheduler.Item[string]{Value: "C"})
				ctx, cancel := context.WithTimeout(t.Context(), x/2)
				defer cancel()
				if err := a.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("cancelled request: got %v, want deadline exceeded", err)
				}
				if err := c.Wait(t.Context()); err != nil {
					t.Errorf("the other request: %v", err)
				}
				if d := gocmp.Diff([]string{"- -1.00-0.00", "C 0.00-1.00"}, b.executions()); d != "" {
					t.Errorf("executions (-want +got):\n%s", d)
				}
			})
		})
	}
}

// A request that is being executed is waited for even if its client has gone, since the execution
// uses its memory.
func TestCancelDuringExecution(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, scheduler.Settings{})
		defer b.s.Close()
		a := b.enqueue(t, scheduler.Item[string]{Value: "A"})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Wait(ctx); err != nil || time.Since(b.start) != x {
			t.Errorf("got %v after %v, want it executed after %v", err, time.Since(b.start), x)
		}
	})
}

func TestPreserveOrdering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(2, scheduler.Settings{Dynamic: true, MaxBatch: 2, PreserveOrdering: true, Delay: x / 4})
		defer b.s.Close()
		// A waits x/4 for others and runs until 5x/4 on one instance. B and C are a full batch and
		// would end at x on the other.
		first := b.enqueue(t, scheduler.Item[string]{Value: "A", Shape: "1"})
		time.Sleep(x / 4)
		synctest.Wait()
		second := b.enqueue(t, scheduler.Item[string]{Value: "B", Rows: 2, Shape: "2"})
		var order []string
		var mu sync.Mutex
		var wg sync.WaitGroup
		for name, ticket := range map[string]*scheduler.Ticket[string]{"A": first, "B": second} {
			wg.Go(func() {
				_ = ticket.Wait(t.Context())
				mu.Lock()
				defer mu.Unlock()
				order = append(order, fmt.Sprintf("%s at %v", name, time.Since(b.start)))
			})
		}
		wg.Wait()
		slices.Sort(order)
		want := []string{fmt.Sprintf("A at %v", x/4+x), fmt.Sprintf("B at %v", x/4+x)}
		if d := gocmp.Diff(want, order); d != "" {
			t.Errorf("answers (-want +got):\n%s", d)
		}
	})
}

// With preserved order, a cancelled request delays neither those behind it nor its own end.
func TestCancelWithPreservedOrdering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(2, scheduler.Settings{Dynamic: true, MaxBatch: 2, PreserveOrdering: true, Delay: 10 * x})
		defer b.s.Close()
		first := b.enqueue(t, scheduler.Item[string]{Value: "A"}) // waits for others in vain
		ctx, cancel := context.WithTimeout(t.Context(), x)
		defer cancel()
		if err := first.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(b.start) != x {
			t.Errorf("first: %v after %v, want deadline exceeded after %v", err, time.Since(b.start), x)
		}
		second := b.enqueue(t, scheduler.Item[string]{Value: "B", Rows: 2})
		if err := second.Wait(t.Context()); err != nil || time.Since(b.start) != 2*x {
			t.Errorf("second: %v after %v, want it executed after %v", err, time.Since(b.start), 2*x)
		}
	})
}

func TestReconfigureKeepsTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, scheduler.Settings{Dynamic: true, MaxBatch: 1})
		synctest.Wait()
		b.block(t, 1, 1)
		for _, name := range []string{"A", "B", "C", "D"} { // A and B are formed ahead; C and D are still queued
			b.enqueue(t, scheduler.Item[string]{Value: name})
		}
		b.s.Reconfigure(scheduler.Settings{Dynamic: true, MaxBatch: 4})
		time.Sleep(10 * x)
		if d := gocmp.Diff([]string{"- -1.00-0.00", "A 0.00-1.00", "B 1.00-2.00", "CD 2.00-3.00"}, b.executions()); d != "" {
			t.Errorf("executions (-want +got):\n%s", d)
		}
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1, scheduler.Settings{Dynamic: true, MaxBatch: 8, Delay: time.Hour})
		a := b.enqueue(t, scheduler.Item[string]{Value: "A"})
		synctest.Wait()
		b.s.Close() // does not wait for the delay
		if err := a.Wait(t.Context()); err != nil || time.Since(b.start) != x {
			t.Errorf("got %v after %v, want it executed after %v", err, time.Since(b.start), x)
		}
		if _, err := b.s.Enqueue(scheduler.Item[string]{Value: "B"}); !errors.Is(err, scheduler.ErrClosed) {
			t.Errorf("after Close: got %v, want ErrClosed", err)
		}
		b.s.Close()
	})
}
