// Package profile runs a campaign. It asks the strategy for the next trial, has the runner measure
// it, appends the outcome to the journal, and tells the strategy. It repeats this until the
// strategy stops, the budget is used up, or the user interrupts.
//
// It owns the loop only. Package search decides what to measure, package runner measures it, and
// package analyze interprets it.
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

// Planner is the strategy of a campaign. It also reports the state of the search.
type Planner interface {
	search.Strategy
	SoFar() verdict.Verdict   // the decision from all events so far; it does not block
	Remaining() time.Duration // expected time until it stops
	Statement() []string      // claims about its result, in sentences; empty if it has none
	Extend(by time.Duration)  // adds time to the budget, if it has one
	Confirm()                 // ends the search: what follows only confirms the answer
}

// Trialer measures one trial. If an engine does not start, crashes or hangs, the result is a
// Measurement with a Failure. An error means that the campaign cannot continue. If the context is
// cancelled, the trial ends soon with the context's error.
type Trialer interface {
	Measure(ctx context.Context, trial search.Trial) (measure.Measurement, error)
	// MeasureBlock measures the trials of a block in turns. A *runner.CrowdedError means that they
	// cannot be measured in turns here; nothing was measured then.
	MeasureBlock(ctx context.Context, block []search.Trial) ([]measure.Measurement, error)
}

// Recorder stores the campaign's events. Append returns when the event is durable.
type Recorder interface {
	Append(kind string, value any) error
}

// Observer follows a campaign, on the goroutine that runs it.
type Observer interface {
	Begun(action search.Action)
	BlockRefused(reason string) // the trials are measured one after the other instead
	TrialEnded(event search.Event, status Status)
}

// Status is the state of a campaign after a trial.
type Status struct {
	Trials    int             // number of trials, including failures
	Failed    int             // trials without figures
	Elapsed   time.Duration   // wall time so far, including earlier runs
	Remaining time.Duration   // expected wall time until the end
	Verdict   verdict.Verdict // the decision so far, as reports show it
}

// Answer returns the choice that would be deployed now. It is nil while none is likely to keep the
// constraints.
func (s Status) Answer() *verdict.Choice {
	if !s.Verdict.Satisfies() {
		return nil
	}
	return s.Verdict.Answer()
}

// Outcome tells how a campaign ended, with its last status.
type Outcome struct {
	End    journal.End
	Status Status
	Before int // number of the trials that earlier runs made
}

// Campaign is one search of one model's configurations, ready to run.
type Campaign struct {
	Strategy Planner
	Trialer  Trialer
	Recorder Recorder
	Observer Observer
	Now      func() time.Time
	// More returns the time that the user added to the budget since the last call. nil: none
	More func() time.Duration
	// IsEnough reports whether the user wants the answer so far confirmed, and no more search. nil: no
	IsEnough func() bool
	// Past: events of earlier runs, in order; the strategy does not know them yet
	Past []search.Event
}

// Run continues the campaign to its end and returns the outcome. A cancelled context ends it
// cleanly: the current trial or block is dropped, all earlier ones count, and End.Interrupted is
// set. An error means that the campaign could not continue. The journal then still has all earlier
// events.
func (c *Campaign) Run(ctx context.Context) (Outcome, error) {
	r := &run{Campaign: c, state: c.replay(), start: c.Now()}
	r.base = r.state.Elapsed
	for {
		if c.More != nil {
			c.Strategy.Extend(c.More())
		}
		if c.IsEnough != nil && c.IsEnough() {
			c.Strategy.Confirm()
		}
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

// run is a running campaign.
type run struct {
	*Campaign
	state *state
	start time.Time
	base  time.Duration // time of earlier runs
}

// elapsed returns the campaign time so far.
func (r *run) elapsed() time.Duration { return r.base + r.Now().Sub(r.start) }

// carryOut measures an action's trials, and reports the outcome to all parties.
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

// shares computes the instants at which the trials of a block would have ended if they had run one
// after the other. So the difference between two instants is the time of one trial. The last one
// ends with the block.
func shares(begin, end time.Duration, measured []measure.Measurement) []time.Duration {
	ends := make([]time.Duration, len(measured))
	for i, m := range measured {
		begin = min(begin+m.Times.Total(), end)
		ends[i] = begin
	}
	ends[len(ends)-1] = end
	return ends
}

// alone measures a single trial.
func (r *run) alone(ctx context.Context, trial search.Trial) error {
	m, err := r.Trialer.Measure(ctx, trial)
	if err != nil {
		return fmt.Errorf("cannot measure %s at %s: %w", trial.Candidate, trial.Load, err)
	}
	return r.record(search.Event{Trial: trial, Measurement: m, Elapsed: r.elapsed()})
}

// record writes an event to the journal before the strategy learns of it.
func (r *run) record(event search.Event) error {
	if err := r.Recorder.Append(journal.KindTrial, event); err != nil {
		return err
	}
	r.Strategy.Tell(event)
	r.state.addEvent(event)
	r.Observer.TrialEnded(event, r.status(r.state))
	return nil
}

// replay tells the strategy the events of earlier runs.
func (c *Campaign) replay() *state {
	s := &state{}
	for _, e := range c.Past {
		c.Strategy.Tell(e)
		s.addEvent(e)
	}
	return s
}

func (c *Campaign) interrupted(s *state) (Outcome, error) {
	return c.finish(s, journal.End{Reason: "interrupted by the user", Interrupted: true})
}

// finish records the end of this run: the reason, and how the wall time was spent. The time outside
// of launches, reconfigurations, warm-ups and windows is the campaign's own work: decisions and the
// journal. The time ends with the last trial, so that a run without new trials changes no figure.
func (c *Campaign) finish(s *state, end journal.End) (Outcome, error) {
	end.Elapsed = s.Elapsed
	end.Windows, end.Launches, end.Reconfigurations, end.WarmUps = s.times.Windows, s.times.Launch, s.times.Reconfigure, s.times.Outside()
	end.Decisions = max(0, end.Elapsed-s.times.Total())
	end.Statement = c.Strategy.Statement()
	return Outcome{end, c.status(s), len(c.Past)}, c.Recorder.Append(journal.KindEnd, end)
}

// status summarizes the state for observers.
func (c *Campaign) status(s *state) Status {
	status := s.Status
	status.Remaining = c.Strategy.Remaining()
	status.Verdict = c.Strategy.SoFar()
	return status
}

// state sums up the campaign's events so far.
type state struct {
	Status
	times measure.Times
}

func (s *state) addEvent(e search.Event) {
	s.Trials++
	s.Elapsed = e.Elapsed
	s.times = s.times.Add(e.Measurement.Times)
	if e.Measurement.Failure != nil {
		s.Failed++
	}
}
