package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"tuner/search/landscape"
)

// series is the campaigns of one strategy on one landscape under one limit, by seed.
type series struct {
	landscape *landscape.Landscape
	limit     landscape.Limit
	strategy  string
	outcomes  []landscape.Outcome
}

// campaigns runs all of them on all cores. The outcome of each depends on its seed alone.
func campaigns(ctx context.Context, o options, all []*landscape.Landscape, messages io.Writer) ([]series, error) {
	var list []series
	for _, l := range all {
		for _, limit := range l.Limits() {
			for _, name := range o.strategies {
				list = append(list, series{l, limit, name, make([]landscape.Outcome, o.seeds)})
			}
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				s := &list[i/o.seeds]
				if err := s.run(i%o.seeds, o.budget); err != nil {
					cancel(err)
				}
			}
		})
	}
	begin := time.Now()
	for i := 0; i < len(list)*o.seeds && ctx.Err() == nil; i++ {
		if i%o.seeds == 0 {
			s := list[i/o.seeds]
			fmt.Fprintf(messages, "%v: %s, %s, %s\n", time.Since(begin).Round(time.Second), s.landscape.Name, s.limit.Name, s.strategy)
		}
		next <- i
	}
	close(next)
	workers.Wait()
	return list, context.Cause(ctx)
}

// run is the campaign with one seed. All strategies have the same weather under the same seed.
func (s *series) run(seed int, budget time.Duration) error {
	settings := s.landscape.Settings(s.limit, budget, uint64(seed)+1)
	strategy, err := newStrategy(s.strategy, settings)
	if err != nil {
		return err
	}
	s.outcomes[seed] = s.landscape.Run(strategy, s.limit, uint64(seed)+1)
	return nil
}
