package driver

import (
	"context"
	"fmt"
	"time"

	"tuner/fleet/record"
	"tuner/fleet/results"
)

// judgeEvery is the time between two looks at what has been delivered: workers send twice a minute.
const judgeEvery = 30 * time.Second

// Ender creates the record that ends a campaign early. It blocks, and ends with its context.
type Ender interface {
	Create(ctx context.Context, m record.ConfigMap) (created bool, err error)
}

// endHopeless ends campaigns on types that cannot become the cheapest. It creates their result: the
// worker sees that there is one, and ends.
func (w *watch) endHopeless(ctx context.Context) error {
	first := w.Plan.Fleet.First
	if first == 0 || time.Since(w.judged) < judgeEvery || w.isOver() {
		return nil
	}
	w.judged = time.Now()
	deliveries, _, err := w.Deliveries(ctx) // damage is told when a result is collected
	if err != nil {
		return err
	}
	list, err := results.Standings(w.Plan, deliveries, w.Replay)
	if err != nil {
		return err
	}
	ended, why := results.Hopeless(list, first)
	for i, x := range ended {
		m, err := x.Part.End(w.Plan.Run, x.Model, x.Machine, x.Repeat, why[i])
		if err != nil {
			return err
		}
		if _, err := w.End.Create(ctx, m); err != nil {
			return fmt.Errorf("cannot end the campaign of %s on %s early: %w", x.Model, x.Machine, err)
		}
	}
	return nil
}
