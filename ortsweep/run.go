package ortsweep

import (
	"context"
	"time"

	"tuner/measure"
	"tuner/ortsweep/race"
)

// Measurer measures trials. Measure blocks until the figure is known or the context ends. An error
// ends the sweep.
type Measurer interface {
	Measure(ctx context.Context, t race.Trial) (Figure, error)
}

// Observer receives the progress, on the sweep's goroutine.
type Observer interface {
	Measured(t race.Trial, f Figure, elapsed time.Duration)
}

// Outcome is the outcome of a sweep.
type Outcome struct {
	Elapsed     time.Duration
	Interrupted bool // the context ended before the race
	Windows     int
	Flagged     map[measure.Flag]int // number of windows by flag
	Others      measure.Others       // CPU time that others took
	Memory      map[string]int64     // highest peak in bytes, by candidate's key; 0 unknown
}

// Run races until there is an answer, the budget is used or the context ends. All finished
// measurements count. now is the clock. An error means that the sweep itself failed.
func Run(ctx context.Context, r *race.Race, m Measurer, now func() time.Time, o Observer) (Outcome, error) {
	begin := now()
	out := Outcome{Flagged: map[measure.Flag]int{}, Memory: map[string]int64{}}
	for {
		action := r.Ask()
		if action.Stop {
			return out, nil
		}
		figure, err := m.Measure(ctx, action.Trial)
		out.Elapsed = now().Sub(begin)
		if ctx.Err() != nil {
			out.Interrupted = true
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out.Windows++
		for _, f := range figure.Flags {
			out.Flagged[f]++
		}
		key := action.Trial.Candidate.Key()
		out.Memory[key] = max(out.Memory[key], figure.Memory)
		if figure.Failure == "" {
			out.Others = out.Others.With(figure.Window, figure.Withheld)
		}
		r.Tell(race.Outcome{Value: figure.Value, Failure: figure.Failure, Withheld: figure.Withheld, Elapsed: out.Elapsed})
		o.Measured(action.Trial, figure, out.Elapsed)
	}
}
