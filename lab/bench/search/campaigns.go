package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"tuner/lab/landscape"
	"tuner/measure"
	"tuner/search"
)

// series holds the campaigns of one strategy on one landscape under one limit, by seed.
type series struct {
	landscape *landscape.Landscape
	limit     landscape.Limit
	strategy  string
	outcomes  []landscape.Outcome
}

// campaigns runs all of them on all cores. The outcome of each depends only on its seed.
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
				var follow landscape.Follower
				if o.trace && i%o.seeds == 0 {
					follow = s.tracer(messages)
				}
				if err := s.run(i%o.seeds, o.budget, follow); err != nil {
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

// run runs the campaign with one seed. All strategies have the same weather under the same seed.
func (s *series) run(seed int, budget time.Duration, follow landscape.Follower) error {
	settings := s.landscape.Settings(s.limit, budget, uint64(seed)+1)
	strategy, err := newStrategy(s.strategy, s.landscape, s.limit, settings)
	if err != nil {
		return err
	}
	s.outcomes[seed] = s.landscape.Run(strategy, s.limit, uint64(seed)+1, follow)
	return nil
}

// tracer prints the trials of a campaign as they happen.
func (s *series) tracer(out io.Writer) landscape.Follower {
	fmt.Fprintf(out, "\n%s, %s, %s\n", s.landscape.Name, limitText(s.limit), s.strategy)
	return func(e search.Event, why string, regret float64) {
		figures := ""
		for _, m := range []measure.Metric{measure.Throughput, measure.LatencyP99} {
			if x, ok := e.Measurement.Estimate(m); ok {
				figures += "  " + m.Format(x.Value)
			}
		}
		if f := e.Measurement.Failure; f != nil {
			figures = "  " + f.Reason
		}
		fmt.Fprintf(out, "%6.1f s  regret %.3f  %-7s  %s at %s%s  (%s)\n", e.Elapsed.Seconds(), regret, e.Trial.Phase, e.Trial.Candidate.Describe(), e.Trial.Load, figures, why)
	}
}
