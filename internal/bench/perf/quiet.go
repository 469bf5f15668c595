package main

import (
	"context"
	"fmt"
)

// attempts is how often a measurement may be tried: on a busy machine perf_analyzer sometimes hangs, or sees nothing complete.
const attempts = 3

// Others may take so much of the machine's CPU time, else a measurement is repeated, so often at most.
const (
	mostForeign = 0.05
	repetitions = 4
)

// quietest repeats a measurement until others took little of the machine meanwhile; the one with the least counts. Each
// may fail and is tried again.
func quietest[T interface{ foreign() float64 }](ctx context.Context, b *bench, name string, measure func() (T, error)) (best T, err error) {
	for i := range repetitions {
		m, err := retry(ctx, b, name, measure)
		if err != nil {
			return m, err
		}
		if i == 0 || m.foreign() < best.foreign() {
			best = m
		}
		if best.foreign() <= mostForeign {
			break
		}
	}
	return best, nil
}

// retry repeats a measurement that fails.
func retry[T any](ctx context.Context, b *bench, name string, measure func() (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		m, err := measure()
		if err == nil || ctx.Err() != nil || attempt == attempts {
			return m, err
		}
		fmt.Fprintf(b.messages, "%s, attempt %d: %v\n", name, attempt, err)
	}
}
