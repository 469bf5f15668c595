package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// whole runs a campaign from nothing, without an earlier run's trials and variants, and times it as
// a program.
func (b *bench) whole(ctx context.Context, c campaign) (answer, error) {
	if err := b.forget(c); err != nil {
		return answer{}, err
	}
	begin := b.now()
	a, err := b.tune(ctx, c)
	a.wall = b.now().Sub(begin)
	return a, err
}

// preparation returns the time of such a campaign beside its trials: to start, to make and compare
// the variants, to analyze. It measures a campaign that has time for only one trial.
func (b *bench) preparation(ctx context.Context, c campaign) (time.Duration, error) {
	c.Name, c.Budget = "preparation", time.Second
	if err := b.forget(c); err != nil {
		return 0, err
	}
	begin := b.now()
	result, err := b.carryOut(ctx, c)
	return b.now().Sub(begin) - result.Account.Elapsed, err
}

// forget removes a campaign, and the variants of campaigns.
func (b *bench) forget(c campaign) error {
	if err := errors.Join(os.RemoveAll(b.folder(c)), os.RemoveAll(b.cache())); err != nil {
		return fmt.Errorf("cannot remove an earlier campaign: %w", err)
	}
	return nil
}

// budgetWithin returns the budget of a campaign that must end, as a program, within a limit.
func budgetWithin(limit, preparation time.Duration) (time.Duration, error) {
	budget := (limit - preparation).Truncate(time.Second)
	if budget <= 0 {
		return 0, fmt.Errorf("cannot give a campaign a budget: it is to end within %v, and takes %v beside its trials", limit, preparation)
	}
	return budget, nil
}
