package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/scheduler"
	"tuner/engine/sequence"
)

const x = 10 * time.Millisecond // duration of one execution

// bench is a scheduler whose instances take x for each execution, and write down its rows.
type bench struct {
	s     *sequence.Scheduler[string]
	start time.Time

	mu    sync.Mutex
	lines []string
}

type executor struct {
	b        *bench
	instance int
}

// Execute writes a line such as "1@0.5: 0=a1 1=- 2=b1": the instance, its start in x, and the request
// in each slot. A vacant slot has -.
func (e executor) Execute(rows []sequence.Row[string]) {
	var words []string
	for _, r := range rows {
		word := r.Value
		if r.Vacant {
			word = "-"
		}
		words = append(words, fmt.Sprintf("%d=%s", r.Slot, word))
	}
	at := float64(time.Since(e.b.start)) / float64(x)
	e.b.mu.Lock()
	e.b.lines = append(e.b.lines, fmt.Sprintf("%d@%.1f: %s", e.instance, at, strings.Join(words, " ")))
	e.b.mu.Unlock()
	time.Sleep(x)
}

func newBench(instances int, set sequence.Settings) *bench {
	b := &bench{start: time.Now()}
	set.Timer = scheduler.GoTimer
	if set.Idle == 0 {
		set.Idle = time.Minute
	}
	var executors []sequence.Executor[string]
	for i := range instances {
		executors = append(executors, executor{b, i})
	}
	b.s = sequence.New(set, executors)
	return b
}

// send enqueues requests such as "a1" of sequence a: with < it is the first, with > the last one. The
// rest after : is its shape. It lets the instances take what they can.
func (b *bench) send(t *testing.T, requests ...string) []*sequence.Ticket[string] {
	t.Helper()
	var tickets []*sequence.Ticket[string]
	for _, text := range requests {
		ticket, err := b.s.Enqueue(parse(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		tickets = append(tickets, ticket)
		synctest.Wait()
	}
	return tickets
}

func parse(text string) sequence.Item[string] {
	name, shape, _ := strings.Cut(text, ":")
	item := sequence.Item[string]{Shape: shape}
	name, item.Start = strings.CutPrefix(name, "<")
	name, item.End = strings.CutSuffix(name, ">")
	item.Value, item.ID.Text = name, name[:1]
	return item
}

// ran returns the executions so far.
func (b *bench) ran() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.lines)
}

// end closes the scheduler and returns the executions.
func (b *bench) end() []string {
	b.s.Close()
	return b.lines
}

// run calls f with a fake clock.
func run(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func check(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// Slots of the lowest number are given first, over all instances. A slot whose sequence has no request
// is vacant in a batch with requests in later slots.
func TestDirectKeepsSlots(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T) {
		b := newBench(2, sequence.Settings{Slots: 3, MaxBatch: 3})
		// a: instance 0, slot 0; b: instance 1, slot 0; c and d: the slots 1; e: instance 0, slot 2
		b.send(t, "<a1", "<b1", "<c1", "<d1", "<e1")
		time.Sleep(x) // the rest of a's instance follows in the batch after a1
		time.Sleep(x)
		b.send(t, "e2")
		time.Sleep(x)
		b.send(t, "c2>", "a2")
		time.Sleep(x)
		check(t, "executions", []string{
			"0@0.0: 0=a1", "1@0.0: 0=b1",
			"0@1.0: 0=- 1=c1 2=e1", "1@1.0: 0=- 1=d1",
			"0@2.0: 0=- 1=- 2=e2",
			"0@3.0: 0=- 1=c2", "0@4.0: 0=a2",
		}, sorted(b.end()))
	})
}

// sorted orders executions by their time, then by their instance.
func sorted(lines []string) []string {
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Compare(strings.SplitN(a, "@", 2)[1][:3]+a, strings.SplitN(b, "@", 2)[1][:3]+b)
	})
	return lines
}

// A sequence without a slot waits in the backlog with all of its requests. It gets the slot of the
// first sequence that ends, and its other requests follow one by one.
func TestBacklog(t *testing.T) {
	t.Parallel()
	for _, oldest := range []bool{false, true} {
		run(t, func(t *testing.T) {
			b := newBench(1, sequence.Settings{Oldest: oldest, Slots: 1, MaxBatch: 1})
			b.send(t, "<a1", "<b1", "b2", "<c1>", "b3>", "a2>")
			if got := b.s.Pending(); got != 5 {
				t.Errorf("%d requests wait, want 5", got)
			}
			time.Sleep(10 * x)
			check(t, "executions", []string{"0@0.0: 0=a1", "0@1.0: 0=a2", "0@2.0: 0=b1", "0@3.0: 0=b2", "0@4.0: 0=b3", "0@5.0: 0=c1"}, b.end())
		})
	}
}

// The oldest strategy makes batches of requests of different sequences, and never of one.
func TestOldestBatches(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T) {
		b := newBench(1, sequence.Settings{Oldest: true, Slots: 8, MaxBatch: 2, Preferred: []int{2}, Delay: x / 2})
		b.send(t, "<a1", "a2", "a3")
		time.Sleep(18 * x / 10) // a1 waits for a partner from 0 to 0.5, a2 from its turn at 1.5
		b.send(t, "<b1", "b2")
		time.Sleep(10 * x)
		check(t, "executions", []string{"0@0.5: 0=a1", "0@1.8: 0=a2 1=b1", "0@2.8: 0=a3 1=b2"}, b.end())
	})
}

// A batch has one shape: that of the first slot with a request. Others are vacant, and follow.
func TestShapes(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T) {
		b := newBench(1, sequence.Settings{Slots: 4, MaxBatch: 4})
		b.send(t, "<z1", "<a1:1", "<b1:2", "<c1:1")
		time.Sleep(5 * x)
		check(t, "executions", []string{"0@0.0: 0=z1", "0@1.0: 0=- 1=a1 2=- 3=c1", "0@2.0: 0=- 1=- 2=b1"}, b.end())
	})
}

// The direct strategy waits for requests in half of the slots, but at most the delay.
func TestUtilization(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T) {
		b := newBench(1, sequence.Settings{Slots: 4, MaxBatch: 4, Delay: 2 * x, Utilization: 0.5})
		b.send(t, "<a1")
		time.Sleep(x)
		b.send(t, "<b1") // two of four
		time.Sleep(2 * x)
		b.send(t, "<c1") // one: goes at 3 + 2
		time.Sleep(5 * x)
		check(t, "executions", []string{"0@1.0: 0=a1 1=b1", "0@5.0: 0=- 1=- 2=c1"}, b.end())
	})
}

func TestHold(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T) {
		b := newBench(2, sequence.Settings{Slots: 1, MaxBatch: 1, Hold: 3, HoldBacklog: 1})
		b.send(t, "<a1", "<b1", "a2")
		time.Sleep(x)
		b.send(t, "<c1>")
		time.Sleep(5 * x)
		check(t, "executions", []string{"0@1.0: 0=a1", "1@1.0: 0=b1", "0@2.0: 0=a2"}, sorted(b.ran()))
		check(t, "after the end", []string{"0@1.0: 0=a1", "1@1.0: 0=b1", "0@2.0: 0=a2", "0@6.0: 0=c1"}, sorted(b.end())[:4])
	})
}

// A scheduler whose requests go elsewhere from now on ends its open sequences where one waits for a slot. So those in
// the backlog are served without the idle time, and requests that still arrive keep no slot.
func TestRetire(t *testing.T) {
	t.Parallel()
	for _, oldest := range []bool{false, true} {
		run(t, func(t *testing.T) {
			b := newBench(1, sequence.Settings{Oldest: oldest, Slots: 1, MaxBatch: 1})
			b.send(t, "<a1", "<b1", "b2", "<c1")
			time.Sleep(x)
			b.s.Retire()
			synctest.Wait()
			if _, err := b.s.Enqueue(parse("a2")); !errors.Is(err, sequence.ErrNotStarted) {
				t.Errorf("a2: %v", err)
			}
			b.send(t, "<d1", "<e1")
			time.Sleep(10 * x)
			b.send(t, "<f1")
			time.Sleep(x)
			b.send(t, "f2") // nobody waits for its slot
			time.Sleep(x)
			b.send(t, "<g1")
			time.Sleep(x)
			check(t, "executions", []string{
				"0@0.0: 0=a1", "0@1.0: 0=b1", "0@2.0: 0=b2", "0@3.0: 0=c1", "0@4.0: 0=d1", "0@5.0: 0=e1", "0@11.0: 0=f1", "0@12.0: 0=f2", "0@13.0: 0=g1",
			}, b.ran())
			if free, backlog := b.s.Load(); free != 1 || backlog != 0 || b.s.Open() != 0 {
				t.Errorf("%d slots are free, %d requests in the backlog, %d sequences open; want a free slot alone", free, backlog, b.s.Open())
			}
			b.end()
		})
	}
}

// What is held is not held any longer.
func TestRetireEndsHold(t *testing.T) {
	t.Parallel()
	for _, oldest := range []bool{false, true} {
		run(t, func(t *testing.T) {
			b := newBench(1, sequence.Settings{Oldest: oldest, Slots: 1, MaxBatch: 1, Hold: 3})
			b.send(t, "<a1")
			time.Sleep(x)
			b.s.Retire()
			time.Sleep(2 * x)
			check(t, "executions", []string{"0@1.0: 0=a1"}, b.ran())
			b.end()
		})
	}
}

// A sequence that has no request for the idle time loses its slot, also while others wait for one. It
// must start again.
func TestIdle(t *testing.T) {
	t.Parallel()
	for _, oldest := range []bool{false, true} {
		run(t, func(t *testing.T) {
			b := newBench(1, sequence.Settings{Oldest: oldest, Slots: 1, MaxBatch: 1, Idle: 10 * x})
			b.send(t, "<a1")
			time.Sleep(5 * x)
			b.send(t, "a2", "<b1", "b2") // idle from 5 to 15
			time.Sleep(12 * x)
			check(t, "executions", []string{"0@0.0: 0=a1", "0@5.0: 0=a2", "0@15.0: 0=b1", "0@16.0: 0=b2"}, b.ran())
			if _, err := b.s.Enqueue(parse("a3")); !errors.Is(err, sequence.ErrNotStarted) {
				t.Errorf("after the idle time: %v", err)
			}
			b.send(t, "b3") // it has its slot since 15, so that it is idle at 20 at the earliest
			b.end()
		})
	}
}

// A request's timeout bounds the time of its whole sequence in the backlog.
func TestTimeout(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T) {
		b := newBench(1, sequence.Settings{Slots: 1, MaxBatch: 1})
		b.send(t, "<a1")
		first := b.send(t, "<b1")[0]
		item := parse("b2")
		item.Timeout = 3 * x
		second, err := b.s.Enqueue(item)
		if err != nil {
			t.Fatal(err)
		}
		other := b.send(t, "<c1>")[0]
		begin := time.Now()
		for _, ticket := range []*sequence.Ticket[string]{first, second} {
			if err := ticket.Wait(t.Context()); !errors.Is(err, sequence.ErrExpired) || time.Since(begin) != 3*x {
				t.Errorf("%v after %v, want that it has expired after 3x", err, time.Since(begin))
			}
		}
		if _, err := b.s.Enqueue(parse("b3")); !errors.Is(err, sequence.ErrNotStarted) {
			t.Errorf("after the timeout: %v", err)
		}
		b.send(t, "a2>")
		if err := other.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		b.end()
	})
}

// A second start continues in the same slot. A sequence that has ended may start again while its last
// requests wait.
func TestStartAgain(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T) {
		b := newBench(1, sequence.Settings{Slots: 2, MaxBatch: 2})
		b.send(t, "<a1", "<a2", "a3>", "<a4>")
		time.Sleep(6 * x)
		check(t, "executions", []string{"0@0.0: 0=a1", "0@1.0: 0=a2 1=a4", "0@2.0: 0=a3"}, b.end())
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T) {
		b := newBench(1, sequence.Settings{Slots: 1, MaxBatch: 1})
		b.send(t, "<a1>")
		for _, tc := range []struct {
			item sequence.Item[string]
			want error
		}{
			{sequence.Item[string]{Start: true}, sequence.ErrNoID},
			{parse("b1"), sequence.ErrNotStarted},
			{parse("a2"), sequence.ErrNotStarted}, // it has ended
		} {
			if _, err := b.s.Enqueue(tc.item); !errors.Is(err, tc.want) {
				t.Errorf("%+v: %v, want %v", tc.item, err, tc.want)
			}
		}
		b.s.Close()
		b.s.Close()
		if _, err := b.s.Enqueue(parse("<c1")); !errors.Is(err, sequence.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// A cancelled request takes those behind it along, and its slot is free for the next sequence. Those
// before it are served.
func TestCancel(t *testing.T) {
	t.Parallel()
	errGone := errors.New("gone")
	for _, oldest := range []bool{false, true} {
		run(t, func(t *testing.T) {
			b := newBench(1, sequence.Settings{Oldest: oldest, Slots: 1, MaxBatch: 1})
			tickets := b.send(t, "<a1", "a2", "a3", "a4", "<b1>")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errGone)
			if err := tickets[2].Wait(ctx); !errors.Is(err, errGone) {
				t.Errorf("a3: %v", err)
			}
			if err := tickets[3].Wait(t.Context()); !errors.Is(err, sequence.ErrBroken) {
				t.Errorf("a4: %v", err)
			}
			if _, err := b.s.Enqueue(parse("a5")); !errors.Is(err, sequence.ErrNotStarted) {
				t.Errorf("a5: %v", err)
			}
			if err := tickets[0].Wait(ctx); err != nil {
				t.Errorf("a1 was running when it was cancelled: %v", err)
			}
			for _, i := range []int{1, 4} {
				if err := tickets[i].Wait(t.Context()); err != nil {
					t.Error(err)
				}
			}
			check(t, "executions", []string{"0@0.0: 0=a1", "0@1.0: 0=a2", "0@2.0: 0=b1"}, b.end())
		})
	}
}

// The same for a request that has left its slot for the batcher.
func TestCancelInBatcher(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T) {
		b := newBench(1, sequence.Settings{Oldest: true, Slots: 1, MaxBatch: 2, Preferred: []int{2}, Delay: time.Hour})
		tickets := b.send(t, "<a1", "a2", "<b1>")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := tickets[0].Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a1: %v", err)
		}
		if err := tickets[1].Wait(t.Context()); !errors.Is(err, sequence.ErrBroken) {
			t.Errorf("a2: %v", err)
		}
		if err := tickets[2].Wait(t.Context()); err != nil {
			t.Error(err)
		}
		check(t, "rows", []string{"0@360000.0: 0=b1"}, b.end())
	})
}
