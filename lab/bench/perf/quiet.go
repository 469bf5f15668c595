package main

import (
	"context"

	"tuner/lab/bench/sidebyside"
)

// A measurement is repeated if others take more than this share of the machine's CPU time, up to
// this number of times.
const (
	mostForeign = 0.05
	repetitions = 4
)

// quietest repeats a measurement until others take little of the machine during it. The one with
// the least share counts. A failed measurement is tried again.
func quietest[T measured](ctx context.Context, b *bench, name string, measure func() (T, error)) (best T, err error) {
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
