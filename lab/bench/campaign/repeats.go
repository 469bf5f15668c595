package main

import (
	"context"
	"fmt"
	"time"
)

// repeats compares short campaigns with an exhaustive one. The latter is the grid over the whole
// space, and its finals confirm its best.
func (b *bench) repeats(ctx context.Context) error {
	budget := b.budgetOr(5 * time.Minute)
	best, err := b.tune(ctx, campaign{Model: minilm(), Name: "exhaustive", Strategy: "grid", Seed: 1, Limit: usualLimit})
	if err != nil {
		return err
	}
	var rows []string
	for i := range b.repetitions {
		a, err := b.tune(ctx, campaign{Model: minilm(), Name: fmt.Sprintf("guided-%d", i+1), Strategy: "guided", Budget: budget, Seed: i + 1, Limit: usualLimit})
		if err != nil {
			return err
		}
		own, other, err := b.pairs(ctx, b.onTuner, a, best)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			rows = append(rows, row(best, other, other, ""))
		}
		rows = append(rows, row(a, own, other, "≥ 0.97, p99 ≤ 30 ms"))
	}
	return table(b.out, fmt.Sprintf("MiniLM, p99 within 30 ms: campaigns of %v beside an exhaustive one", budget), best.by, rows)
}
