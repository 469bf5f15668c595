package scheduler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"tuner/engine/scheduler"
)

type nothing struct{}

func (nothing) Execute([]scheduler.Item[int]) {}

// BenchmarkRequest measures the scheduler's own cost of a request: closed-loop clients on an
// instance that takes no time.
func BenchmarkRequest(b *testing.B) {
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s := scheduler.New(scheduler.Settings{Dynamic: true, MaxBatch: 16}, []scheduler.Executor[int]{nothing{}}, scheduler.GoTimer)
			defer s.Close()
			b.ReportAllocs()
			var all sync.WaitGroup
			for range clients {
				all.Go(func() {
					for range b.N / clients {
						t, err := s.Enqueue(scheduler.Item[int]{Rows: 1})
						if err != nil {
							b.Error(err)
							return
						}
						if err := t.Wait(context.Background()); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// held is an instance that reports its executions, and ends them on request.
type held struct{ begun, end chan struct{} }

func (h held) Execute([]scheduler.Item[int]) {
	select {
	case h.begun <- struct{}{}:
	default:
	}
	<-h.end
}

// BenchmarkBacklog measures the cost of a request, in and out, among many behind a busy instance.
// It is cancelled, or executed in turn with its own level.
func BenchmarkBacklog(b *testing.B) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, n := range []int{1000, 10000, 50000} {
		b.Run(fmt.Sprintf("cancelled/queued=%d", n), func(b *testing.B) {
			backlog(b, scheduler.Settings{Dynamic: true, MaxBatch: 16}, n, func(instance held, tickets []*scheduler.Ticket[int]) {
				for _, i := range rand.Perm(n) {
					_ = tickets[i].Wait(gone) // it is cancelled
				}
				close(instance.end)
			})
		})
	}
	for _, levels := range []uint64{1, 1000, 1 << 16} {
		b.Run(fmt.Sprintf("executed/levels=%d", levels), func(b *testing.B) {
			backlog(b, scheduler.Settings{Dynamic: true, MaxBatch: 16, Levels: levels}, 2000, func(instance held, tickets []*scheduler.Ticket[int]) {
				close(instance.end)
				for _, t := range tickets {
					_ = t.Wait(context.Background()) // it has no effect
				}
			})
		})
	}
}

func backlog(b *testing.B, set scheduler.Settings, n int, then func(held, []*scheduler.Ticket[int])) {
	for range b.N {
		instance := held{make(chan struct{}, 1), make(chan struct{})}
		s := scheduler.New(set, []scheduler.Executor[int]{instance}, scheduler.GoTimer)
		first, err := s.Enqueue(scheduler.Item[int]{})
		if err != nil {
			b.Fatal(err)
		}
		<-instance.begun
		var tickets []*scheduler.Ticket[int]
		for i := range n {
			t, err := s.Enqueue(scheduler.Item[int]{Rows: 1, Priority: uint64(i)%max(set.Levels, 1) + 1})
			if err != nil {
				b.Fatal(err)
			}
			tickets = append(tickets, t)
		}
		then(instance, tickets)
		_ = first.Wait(context.Background()) // it has no effect
		s.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/request")
}
