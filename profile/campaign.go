// Package profile runs a campaign: it asks the strategy for the next trial, has the runner measure it, appends the outcome to
// the journal, tells the strategy, and goes on until the strategy stops, the budget is used up, or the user interrupts. It
// owns the loop and nothing else: what to measure is package search's business, how is package runner's, and what it means
// is package analyze's.
package profile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tuner/measure"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/search"
	"tuner/search/verdict"
)

// Planner is the strategy of a campaign, which also says how the search stands.
type Planner interface {
	search.Strategy
	SoFar() verdict.Verdict   // the decision by all events that it was told; it does not block
	Remaining() time.Duration // expected wall time until it stops
	Statement() []string      // what it claims of what it found, in sentences; none when it claims nothing
}

// Trialer measures one trial. An engine that does not start, crashes or hangs is a Measurement with a Failure; an error means
// that the campaign itself cannot go on. A cancelled context ends the trial soon, with the context's error.
type Trialer interface {
	Measure(ctx context.Context, trial search.Trial) (measure.Measurement, error)
	// MeasureBlock measures the trials of a block in turn. A *runner.CrowdedError says that they cannot be measured so here, and nothing was measured.
	MeasureBlock(ctx context.Context, block []search.Trial) ([]measure.Measurement, error)
}

// Recorder keeps the campaign's events. Append returns when the event is durable.
type Recorder interface {
	Append(kind string, value any) error
}

// Observer follows a campaign, on the goroutine that runs it.
type Observer interface {
	Begun(action search.Action)
	BlockRefused(reason string) // its trials are measured one after the other instead
	TrialEnded(event search.Event, status Status)
}

// Status is how a campaign stands after a trial.
type Status struct {
	Trials    int             // measured so far, failures included
	Failed    int             // of these, without figures
	Elapsed   time.Duration   // wall time so far, earlier runs included
	Remaining time.Duration   // expected wall time until the end
	Verdict   verdict.Verdict // the decision so far, which reports tell, too
}

// Answer is what would be deployed now: nil while nothing is likely to keep the constraints.
func (s Status) Answer() *verdict.Choice {
	if !s.Verdict.Satisfies() {
		return nil
	}
	return s.Verdict.Answer()
}

// Outcome is how a campaign ended, and how it stood then.
type Outcome struct {
	End    journal.End
	Status Status
	Before int // of the trials, those of earlier runs
}

// Campaign is one search of one model's configurations, ready to run.
type Campaign struct {
	Strategy Planner
	Trialer  Trialer
	Recorder Recorder
	Observer Observer
	Now      func() time.Time
	Past     []search.Event // events of earlier runs, in order; the strategy has not been told them
}

// Run carries the campaign on to its end and returns how it ended. A cancelled context ends it cleanly: the trial or block under way
// is dropped, all earlier ones count, and End.Interrupted is set. An error means that it could not go on; the journal then
// still holds all events before.
func (c *Campaign) Run(ctx context.Context) (Outcome, error) {
	r := &run{Campaign: c, state: c.replay(), start: c.Now()}
	r.base = r.state.Elapsed
	for {
		action := c.Strategy.Ask()
		if action.Stop {
			return c.finish(r.state, journal.End{Reason: action.Why})
		}
		if ctx.Err() != nil {
			return c.interrupted(r.state)
		}
		c.Observer.Begun(action)
		switch err := r.carryOut(ctx, action); {
		case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return c.interrupted(r.state)
		case err != nil:
			return Outcome{}, err
		}
	}
}

// run is a campaign under way.
type run struct {
	*Campaign
	state *state
	start time.Time
	base  time.Duration // that earlier runs used
}

// elapsed is the campaign time until now.
func (r *run) elapsed() time.Duration { return r.base + r.Now().Sub(r.start) }

// carryOut measures an action's trials, and has everybody know what came out.
func (r *run) carryOut(ctx context.Context, action search.Action) error {
	if action.Block == nil {
		return r.alone(ctx, action.Trial)
	}
	begin := r.elapsed()
	measured, err := r.Trialer.MeasureBlock(ctx, action.Block)
	var crowded *runner.CrowdedError
	switch {
	case errors.As(err, &crowded):
		r.Observer.BlockRefused(crowded.Reason)
		for _, t := range action.Block {
			if err := r.alone(ctx, t.Alone()); err != nil {
				return err
			}
		}
		return nil
	case err != nil:
		return fmt.Errorf("cannot measure %s at %s and others in turn: %w", action.Trial.Candidate, action.Trial.Load, err)
	}
	for i, elapsed := range shares(begin, r.elapsed(), measured) {
		if err := r.record(search.Event{Trial: action.Block[i], Measurement: measured[i], Elapsed: elapsed}); err != nil {
			return err
		}
	}
	return nil
}

// shares are the instants at which the trials of a block would have ended one after the other, so that the time between two of them is what one took. The
// last ended when the block did.
func shares(begin, end time.Duration, measured []measure.Measurement) []time.Duration {
	ends := make([]time.Duration, len(measured))
	for i, m := range measured {
		begin = min(begin+m.Times.Total(), end)
		ends[i] = begin
	}
	ends[len(ends)-1] = end
	return ends
}

// alone measures a trial by itself.
func (r *run) alone(ctx context.Context, trial search.Trial) error {
	m, err := r.Trialer.Measure(ctx, trial)
	if err != nil {
		return fmt.Errorf("cannot measure %s at %s: %w", trial.Candidate, trial.Load, err)
	}
	return r.record(search.Event{Trial: trial, Measurement: m, Elapsed: r.elapsed()})
}

// record writes an event down before the strategy learns of it.
func (r *run) record(event search.Event) error {
	if err := r.Recorder.Append(journal.KindTrial, event); err != nil {
		return err
	}
	r.Strategy.Tell(event)
	r.state.add(event)
	r.Observer.TrialEnded(event, r.status(r.state))
	return nil
}

// replay tells the strategy what earlier runs measured.
func (c *Campaign) replay() *state {
	s := &state{}
	for _, e := range c.Past {
		c.Strategy.Tell(e)
		s.add(e)
	}
	return s
}

func (c *Campaign) interrupted(s *state) (Outcome, error) {
	return c.finish(s, journal.End{Reason: "interrupted by the user", Interrupted: true})
}

// finish records the end of this run: why, and where the wall time went. What is not launch, reconfiguration, warm-up or
// window is the campaign's own work: decisions and the journal. The time ends with the last trial, so that a run that has
// nothing more to measure changes no figure.
func (c *Campaign) finish(s *state, end journal.End) (Outcome, error) {
	end.Elapsed = s.Elapsed
	end.Windows, end.Launches, end.Reconfigurations, end.WarmUps = s.times.Windows, s.times.Launch, s.times.Reconfigure, s.times.WarmUp
	end.Decisions = max(0, end.Elapsed-s.times.Total())
	end.Statement = c.Strategy.Statement()
	return Outcome{end, c.status(s), len(c.Past)}, c.Recorder.Append(journal.KindEnd, end)
}

// status summarises the state for observers.
func (c *Campaign) status(s *state) Status {
	status := s.Status
	status.Remaining = c.Strategy.Remaining()
	status.Verdict = c.Strategy.SoFar()
	return status
}

// state accumulates what the campaign has seen.
type state struct {
	Status
	times measure.Times
}

func (s *state) add(e search.Event) {
	s.Trials++
	s.Elapsed = e.Elapsed
	s.times = s.times.Add(e.Measurement.Times)
	if e.Measurement.Failure != nil {
		s.Failed++
	}
}
