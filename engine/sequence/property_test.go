package sequence_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tuner/engine/scheduler"
	"tuner/engine/sequence"
)

// step is a request of a random run: the sequence's life, and the number in it.
type step struct {
	id    sequence.ID
	life  int // of the identity: a new one begins with each start that finds no sequence
	n     int
	start bool
}

// judge is an executor that checks what each batch has.
type judge struct {
	set    sequence.Settings
	random *rand.Rand
	busy   bool
	slots  []step // the last request of each slot

	t   *testing.T
	mu  *sync.Mutex
	ran map[step]int
}

func (j *judge) Execute(rows []sequence.Row[step]) {
	j.mu.Lock()
	if j.busy {
		j.t.Error("two batches of an instance at once")
	}
	j.busy = true
	if len(rows) > j.set.MaxBatch && j.set.Oldest || len(rows) > j.set.Slots || len(rows) == 0 {
		j.t.Errorf("a batch of %d rows", len(rows))
	}
	shape, served := "", 0
	seen := map[int]bool{}
	for i, r := range rows {
		switch {
		case seen[r.Slot]:
			j.t.Errorf("slot %d is twice in a batch", r.Slot)
		case !j.set.Oldest && r.Slot != i:
			j.t.Errorf("row %d has slot %d", i, r.Slot)
		}
		seen[r.Slot] = true
		if r.Vacant {
			continue
		}
		if served > 0 && r.Shape != shape {
			j.t.Errorf("a batch of the shapes %q and %q", shape, r.Shape)
		}
		shape = r.Shape
		served++
		j.ran[r.Value]++
		last := j.slots[r.Slot]
		if !r.Start && (last.id != r.Value.id || last.life != r.Value.life || last.n >= r.Value.n) {
			j.t.Errorf("slot %d runs %+v after %+v", r.Slot, r.Value, last)
		}
		j.slots[r.Slot] = r.Value
	}
	if served == 0 {
		j.t.Errorf("a batch without need: %+v", rows)
	}
	pause := time.Duration(j.random.IntN(3)) * x
	j.mu.Unlock()
	time.Sleep(pause)
	j.mu.Lock()
	j.busy = false
	j.mu.Unlock()
}

// Whatever clients send, cancel and leave: the requests of a sequence run in order and in one slot,
// each request is answered once, and no slot is lost.
func TestProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { play(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func play(t *testing.T, random *rand.Rand) {
	set := sequence.Settings{
		Oldest: random.IntN(2) == 0, Slots: 1 + random.IntN(4), MaxBatch: 1 + random.IntN(4), Idle: time.Duration(2+random.IntN(30)) * x,
		Delay: time.Duration(random.IntN(3)) * x, Utilization: float64(random.IntN(3)) / 2, PreserveOrdering: random.IntN(2) == 0,
		Timer: scheduler.GoTimer,
	}
	retires, retired := random.IntN(3) == 0, time.Time{}
	if retires {
		set.Idle = 1e6 * x // longer than all executions together
	}
	if !set.Oldest {
		set.MaxBatch = set.Slots // as in Triton
	}
	var mu sync.Mutex
	ran := map[step]int{}
	var executors []sequence.Executor[step]
	instances := 1 + random.IntN(3)
	for range instances {
		executors = append(executors, &judge{set: set, random: rand.New(rand.NewPCG(random.Uint64(), 2)), slots: make([]step, set.Slots), t: t, mu: &mu, ran: ran})
	}
	s := sequence.New(set, executors)
	var waiting sync.WaitGroup
	answered, accepted, executed := 0, 0, 0
	lives := map[sequence.ID]int{}
	for n := range 400 {
		if retires && n == 300 {
			s.Retire()
			retired = time.Now()
		}
		id := sequence.ID{Number: 1 + random.Uint64N(12)}
		if random.IntN(2) == 0 {
			id = sequence.ID{Text: fmt.Sprint(id.Number)} // another sequence
		}
		item := sequence.Item[step]{ID: id, Start: random.IntN(4) == 0, End: random.IntN(6) == 0, Shape: [...]string{"", "", "a"}[random.IntN(3)]}
		if random.IntN(8) == 0 {
			item.Timeout = time.Duration(1+random.IntN(5)) * x
		}
		if item.Start {
			lives[id]++
		}
		item.Value = step{id, lives[id], n, item.Start}
		ticket, err := s.Enqueue(item)
		if err == nil {
			accepted++
			ctx, cancel := context.WithCancel(t.Context())
			if random.IntN(10) == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), time.Duration(random.IntN(4))*x)
			}
			waiting.Go(func() {
				defer cancel()
				err := ticket.Wait(ctx)
				mu.Lock()
				defer mu.Unlock()
				answered++
				want := 0
				if err == nil {
					want = 1
					executed++
				}
				if ran[item.Value] != want {
					t.Errorf("%+v ended with %v and was executed %d times", item.Value, err, ran[item.Value])
				}
			})
		}
		if random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.IntN(3)) * x)
		}
	}
	waiting.Wait()
	if answered != accepted || executed == 0 || len(ran) != executed {
		t.Errorf("%d accepted, %d answered, %d of them executed, %d executions", accepted, answered, executed, len(ran))
	}
	if retires && time.Since(retired) >= set.Idle {
		t.Error("a request waited for the idle time of another sequence")
	}
	if got := s.Pending(); got != 0 {
		t.Errorf("%d requests wait at the end", got)
	}
	// no slot is lost: when all have been idle, as many new sequences as there are slots run at once
	time.Sleep(2*set.Idle + 10*x) // a sequence from the backlog keeps its slot for 5x
	for i := range instances * set.Slots {
		if _, err := s.Enqueue(sequence.Item[step]{ID: sequence.ID{Number: uint64(1000 + i)}, Start: true, Value: step{n: 1000 + i}}); err != nil {
			t.Error(err)
		}
	}
	if free, backlog := s.Load(); free != 0 || backlog != 0 {
		t.Errorf("%d slots are free and %d requests in the backlog with one sequence for each slot", free, backlog)
	}
	s.Close()
}

// Open sequences without a slot cost what their requests cost, and none when they have none. Each
// request takes as many steps with 100,000 others as without.
func TestManyOpenSequences(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 100_000
		b := newBench(1, sequence.Settings{Slots: 1, MaxBatch: 1, Idle: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		var tickets []*sequence.Ticket[string]
		for i := range n {
			ticket, err := b.s.Enqueue(sequence.Item[string]{ID: sequence.ID{Number: uint64(i + 1)}, Start: true, Timeout: time.Duration(i+1) * time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			tickets = append(tickets, ticket)
		}
		synctest.Wait()
		if open := b.s.Open(); open != n {
			t.Errorf("%d sequences are open, want %d", open, n)
		}
		cancel()
		for _, ticket := range tickets[1:] {
			if err := ticket.Wait(ctx); err == nil {
				t.Fatal("a cancelled request was executed")
			}
		}
		if open := b.s.Open(); open != 1 {
			t.Errorf("%d sequences are open, want the one that has the slot", open)
		}
		b.end()
	})
}
