package main

import (
	"context"

	"tuner/lab/bench/sidebyside"
)

// Others may take so much of the machine's CPU time, else a measurement is repeated, so often at
// most.
const (
	mostForeign = 0.05
	repetitions = 4
)

// quietest repeats a measurement until others took little of the machine meanwhile; the one with
// the least counts. Each may fail and is tried again.
func quietest[T interface{ foreign() float64 }](ctx context.Context, b *bench, name string, measure func() (T, error)) (best T, err error) {
	for i := range repetitions {
		m, err := sidebyside.Retry(ctx, b.messages, name, measure)
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
