package scheduler

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is an instance that does not end until it is told to.
type stuck chan struct{}

func (s stuck) Execute([]Item[int]) { <-s }

// behind queues n requests behind the present ones.
func behind(t *testing.T, s *Scheduler[int], n int, item func(i int) Item[int]) []*Ticket[int] {
	t.Helper()
	var out []*Ticket[int]
	for i := range n {
		ticket, err := s.Enqueue(item(i))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ticket)
	}
	return out
}

// Waiting requests can be executed, cancelled, postponed, or they expire. Close executes them.
func executed(*testing.T, []*Ticket[int]) {} // by Close

func cancelled(t *testing.T, tickets []*Ticket[int]) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ticket := range tickets {
		if err := ticket.Wait(gone); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want a cancellation", err)
		}
	}
}

func postponed(_ *testing.T, tickets []*Ticket[int]) {
	time.Sleep(time.Duration(len(tickets)) * time.Millisecond)
	synctest.Wait()
}

func expired(t *testing.T, tickets []*Ticket[int]) {
	postponed(t, tickets) // if they can be
	for _, ticket := range tickets {
		if err := ticket.Wait(t.Context()); !errors.Is(err, ErrExpired) {
			t.Fatalf("got %v, want an expiry", err)
		}
	}
}

// stepsPerRequest returns the elements that the scheduler reads for each of n waiting requests.
func stepsPerRequest(t *testing.T, n int, set Settings, item func(i int) Item[int], then func(*testing.T, []*Ticket[int])) (steps int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		instance := make(stuck)
		s := New(set, []Executor[int]{instance}, GoTimer)
		behind(t, s, 1, func(int) Item[int] { return Item[int]{} })
		synctest.Wait()
		then(t, behind(t, s, n, item))
		close(instance)
		s.Close()
		steps = s.queue.steps / n
	})
	return steps
}

// The elements read per request do not grow with the queue or with the number of levels.
func TestStepsPerRequest(t *testing.T) {
	t.Parallel()
	plain := Settings{Dynamic: true, MaxBatch: 8}
	timed := plain
	timed.DefaultPolicy = Policy{Timeout: time.Hour, AllowOverride: true}
	postponing := timed
	postponing.DefaultPolicy.Postpone = true
	large := timed
	large.MaxBatch, large.Delay = 1<<20, 10*time.Hour
	levels := plain
	levels.Levels, levels.DefaultLevel = 1<<16, 1<<16
	one := func(int) Item[int] { return Item[int]{} }
	shaped := func(int) Item[int] { return Item[int]{Shape: "1"} }
	expiring := func(i int) Item[int] { return Item[int]{Timeout: time.Duration(i+1) * time.Millisecond} }
	leveled := func(i int) Item[int] { return Item[int]{Priority: uint64(i*7919)%(1<<16) + 1} }
	for _, tc := range []struct {
		name     string
		settings Settings
		item     func(i int) Item[int]
		then     func(t *testing.T, tickets []*Ticket[int])
	}{
		{"executed", plain, one, executed},
		{"executed by level", levels, leveled, executed},
		{"executed with timeouts", timed, one, executed},
		{"waiting for company", large, one, executed},
		{"waiting for company of their shape", large, shaped, executed},
		{"cancelled", plain, one, cancelled},
		{"cancelled by level", levels, leveled, cancelled},
		{"cancelled with timeouts", timed, one, cancelled},
		{"expired", timed, expiring, expired},
		{"postponed", postponing, expiring, postponed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			// The depth of the deadlines' heap may add to a constant. Ten times as many requests
			// are four levels more, with two comparisons each on the way in and out.
			few, many := stepsPerRequest(t, 300, tc.settings, tc.item, tc.then), stepsPerRequest(t, 3000, tc.settings, tc.item, tc.then)
			if many > few+16 || many > 80 {
				t.Errorf("%d steps for each of 3,000 requests, %d for each of 300", many, few)
			}
		})
	}
}
