package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"tuner/engine/scheduler"
)

type nothing struct{}

func (nothing) Execute([]scheduler.Item[int]) {}

// The scheduler's own cost of a request: closed-loop clients on an instance that takes no time.
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
