package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/engine/scheduler"
)

// longest is the longest time for which a batch is left to grow: a 20th of a run.
const longest = x / 20

// stay is an execution, and the time for which it was left although an instance was idle.
type stay struct {
	instance int
	rows     int
	oldest   time.Time // arrival of its first request
	from, to time.Time
	held     time.Duration
	at       time.Duration // from, since the begin of the trial
}

// trial is a scheduler whose instances take x for each execution, of any size.
type trial struct {
	instances int
	s         *scheduler.Scheduler[int]
	begin     time.Time

	mu  sync.Mutex
	ran []stay
}

// noting is an instance of a trial.
type noting struct {
	*trial
	instance int
}

func (n noting) Execute(items []scheduler.Item[int]) {
	e := stay{instance: n.instance, oldest: items[0].Enqueued, from: time.Now()}
	for _, it := range items {
		e.rows += it.Rows
	}
	time.Sleep(x)
	e.to = time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ran = append(n.ran, e)
}

// newTrial starts a scheduler, and ends it with the test.
func newTrial(t *testing.T, instances int, set scheduler.Settings) *trial {
	t.Helper()
	b := &trial{instances: instances, begin: time.Now()}
	var executors []scheduler.Executor[int]
	for i := range instances {
		executors = append(executors, noting{b, i})
	}
	b.s = scheduler.New(set, executors, scheduler.GoTimer)
	t.Cleanup(b.s.Close)
	synctest.Wait()
	return b
}

func (b *trial) enqueue(t *testing.T, rows int) *scheduler.Ticket[int] {
	t.Helper()
	ticket, err := b.s.Enqueue(scheduler.Item[int]{Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// loop has clients send one request after the other. The first ones come x/50 apart. back is how long
// after an answer a client sends its next request.
func (b *trial) loop(t *testing.T, clients, requests int, back func(client, request int) time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			time.Sleep(time.Duration(c) * x / 50)
			for i := range requests {
				ticket, err := b.s.Enqueue(scheduler.Item[int]{Rows: 1})
				if err != nil {
					t.Error(err)
					return
				}
				if err := ticket.Wait(context.Background()); err != nil {
					t.Error(err)
				}
				time.Sleep(back(c, i))
			}
		})
	}
	all.Wait()
}

// soon is the time of clients who come back within a window, one after the other.
func soon(client, _ int) time.Duration { return x/200 + time.Duration(client)*x/600 }

// poisson sends requests at a rate, in requests per x, and waits for all answers.
func (b *trial) poisson(t *testing.T, random *rand.Rand, rate float64, requests int) {
	t.Helper()
	var tickets []*scheduler.Ticket[int]
	for range requests {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(x) / rate))
		tickets = append(tickets, b.enqueue(t, 1))
		synctest.Wait()
	}
	for _, ticket := range tickets {
		if err := ticket.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// executions lists them by their begin, with the time for which each was held.
func (b *trial) executions() []stay {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortStableFunc(b.ran, func(a, c stay) int { return a.from.Compare(c.from) })
	last := make([]time.Time, b.instances) // end of the last execution of each instance
	for i := range b.ran {
		e := &b.ran[i]
		since := e.from
		for _, end := range last {
			if !end.After(e.from) && end.Before(since) {
				since = end
			}
		}
		if e.oldest.After(since) {
			since = e.oldest
		}
		e.held, e.at = e.from.Sub(since), e.from.Sub(b.begin)
		last[e.instance] = e.to
	}
	return slices.Clone(b.ran)
}

// meanRows returns the mean rows of executions.
func meanRows(executions []stay) float64 {
	sum := 0
	for _, e := range executions {
		sum += e.rows
	}
	return float64(sum) / float64(len(executions))
}

// middle returns the executions without the first quarter, in which the rule learns, and the last half,
// in which the first clients have gone: those that come back sooner are served more often.
func middle(executions []stay) []stay { return executions[len(executions)/4 : len(executions)/2] }

// Of eight clients on two instances, three are in each run, and two wait meanwhile. At the end of a run
// the first of its clients joins them. Without the rule, the two run alone.
func TestClosedLoopGathers(t *testing.T) {
	t.Parallel()
	for _, gather := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newTrial(t, 2, scheduler.Settings{Dynamic: true, MaxBatch: 16, Gather: gather})
			b.loop(t, 8, 100, soon)
			if mean := meanRows(middle(b.executions())); gather != (mean > 2.9) {
				t.Errorf("gather %v: a mean batch of %.2f rows", gather, mean)
			}
		})
	}
}

// As many clients as there are instances, or one more, are never waited for: each has a batch of its own.
func TestFewClientsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, load := range []struct{ instances, clients int }{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {2, 3}} {
		synctest.Test(t, func(t *testing.T) {
			b := newTrial(t, load.instances, scheduler.Settings{Dynamic: true, MaxBatch: 16, Gather: true})
			b.loop(t, load.clients, 200, soon)
			for _, e := range b.executions() {
				if e.held != 0 {
					t.Fatalf("%+v: %v after the begin, a batch of %d is held for %v", load, e.at, e.rows, e.held)
				}
			}
		})
	}
}

// Requests that do not depend on answers are never waited for.
func TestOpenLoopIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, instances := range []int{1, 2, 4} {
		for _, rate := range []float64{0.3, 1, 3, 10} { // per run, and instance
			synctest.Test(t, func(t *testing.T) {
				b := newTrial(t, instances, scheduler.Settings{Dynamic: true, MaxBatch: 16, Gather: true})
				b.poisson(t, rand.New(rand.NewPCG(uint64(instances), 7)), rate*float64(instances), 3000)
				for _, e := range b.executions() {
					if e.held != 0 {
						t.Fatalf("%d instances, rate %v: %v after the begin, a batch is held for %v", instances, rate, e.at, e.held)
					}
				}
			})
		}
	}
}

// Clients come back, then requests come by themselves, then clients come back. With two instances a
// ratio above 0.55 is enough. It falls from 1 to there in 64·ln(1/0.55) = 38 rows of nobody's return,
// and rises from 0 in 64·ln(1/0.45) = 51. A few come by chance.
func TestTrafficChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTrial(t, 2, scheduler.Settings{Dynamic: true, MaxBatch: 16, Gather: true})
		b.loop(t, 8, 40, soon)
		before := len(b.executions())
		b.poisson(t, rand.New(rand.NewPCG(1, 1)), 4, 400)
		open := b.executions()[before:]
		b.loop(t, 8, 40, soon)
		again := b.executions()[before+len(open):]

		answered := 0
		for _, e := range open {
			if e.held != 0 && answered > 64 {
				t.Errorf("a batch is held for %v after %d rows of an open loop", e.held, answered)
			}
			answered += e.rows
		}
		if mean := meanRows(middle(again)); mean < 2.9 {
			t.Errorf("after an open loop, eight clients have a mean batch of %.2f rows", mean)
		}
	})
}

// Of clients that come back at any time, many within a window, some batches are held, and none for
// longer than a 20th of a run.
func TestNoWaitIsLonger(t *testing.T) {
	t.Parallel()
	held := 0
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			set := scheduler.Settings{Dynamic: true, MaxBatch: 2 + random.IntN(15), Gather: true}
			if random.IntN(3) == 0 {
				set.Preferred = []int{1 + random.IntN(set.MaxBatch)}
			}
			instances, clients := 1+random.IntN(3), 2+random.IntN(20)
			late := random.Float64() / 2 // the share of the returns after the window
			backs := make([]time.Duration, clients*40)
			for i := range backs {
				backs[i] = time.Duration(random.Float64() * float64(longest))
				if random.Float64() < late {
					backs[i] += time.Duration(random.Float64() * float64(x))
				}
			}
			b := newTrial(t, instances, set)
			b.loop(t, clients, 40, func(client, request int) time.Duration { return backs[client*40+request] })
			for _, e := range b.executions() {
				if e.held > longest {
					t.Errorf("seed %d: a batch is held for %v, at most %v are allowed", seed, e.held, longest)
				}
				if e.held > 0 {
					held++
				}
			}
		})
	}
	if held < 100 {
		t.Errorf("%d batches were held: the test shows nothing", held)
	}
}

// holding brings one instance to hold a batch of one row, since the clients of the two rows that were
// answered just now are expected. It returns that row.
func holding(t *testing.T, set scheduler.Settings) (*trial, *scheduler.Ticket[int]) {
	t.Helper()
	set.Dynamic, set.Gather = true, true
	b := newTrial(t, 1, set)
	b.loop(t, 3, 60, soon)
	time.Sleep(x)
	b.enqueue(t, 1) // it runs at once
	time.Sleep(x / 2)
	b.enqueue(t, 1)
	b.enqueue(t, 1)
	time.Sleep(x)
	held := b.enqueue(t, 1)
	time.Sleep(x / 2)
	b.begin = time.Now()
	synctest.Wait()
	return b, held
}

// last returns the rows of the last execution and its begin since the answers.
func (b *trial) last() string {
	all := b.executions()
	e := all[len(all)-1]
	return fmt.Sprintf("%v %d", e.at, e.rows)
}

// What ends a wait.
func TestEndOfAWait(t *testing.T) {
	t.Parallel()
	const early = longest / 3
	for _, tc := range []struct {
		name string
		then func(t *testing.T, b *trial, held *scheduler.Ticket[int])
		want string
	}{
		{"nobody comes", func(*testing.T, *trial, *scheduler.Ticket[int]) {}, "3ms 1"},
		// Of four rows, each of two batches has two.
		{"the share is there", func(t *testing.T, b *trial, _ *scheduler.Ticket[int]) { b.enqueue(t, 1) }, "1ms 2"},
		{"a request with another shape", func(t *testing.T, b *trial, held *scheduler.Ticket[int]) {
			other, err := b.s.Enqueue(scheduler.Item[int]{Shape: "other", Rows: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := held.Wait(t.Context()); err != nil { // it runs first
				t.Error(err)
			}
			if err := other.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}, "61ms 1"}, // the other one
		{"the configuration changes", func(_ *testing.T, b *trial, _ *scheduler.Ticket[int]) {
			b.s.Reconfigure(scheduler.Settings{Dynamic: true, MaxBatch: 4, Gather: true})
		}, "1ms 1"},
		{"the scheduler ends", func(_ *testing.T, b *trial, _ *scheduler.Ticket[int]) { b.s.Close() }, "1ms 1"},
		{"its request is cancelled", func(t *testing.T, b *trial, held *scheduler.Ticket[int]) {
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if err := held.Wait(gone); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want a cancellation", err)
			}
			b.enqueue(t, 3) // all that are expected
		}, "1ms 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, held := holding(t, scheduler.Settings{MaxBatch: 8})
				time.Sleep(early)
				tc.then(t, b, held)
				time.Sleep(3 * x)
				if d := gocmp.Diff(tc.want, b.last()); d != "" {
					t.Errorf("the last execution (-want +got):\n%s", d)
				}
			})
		})
	}
}

// A preferred size is taken at once, and so is a full batch.
func TestPreferredSizeEndsAWait(t *testing.T) {
	t.Parallel()
	for _, set := range []scheduler.Settings{{MaxBatch: 8, Preferred: []int{2}}, {MaxBatch: 2}} {
		synctest.Test(t, func(t *testing.T) {
			b, _ := holding(t, set)
			time.Sleep(longest / 3)
			b.enqueue(t, 1)
			time.Sleep(3 * x)
			if d := gocmp.Diff("1ms 2", b.last()); d != "" {
				t.Errorf("%+v: the last execution (-want +got):\n%s", set, d)
			}
		})
	}
}
