package search

import (
	"slices"
	"time"

	"tuner/measure"
)

// Strategy chooses the trials of a campaign, one after the other. Ask returns the next action and
// changes nothing, so a second call returns the same. Tell reports the outcome of that action. A
// block gives one event for each of its trials, in their order. If the block could not be measured
// in turns, the events are of the same trials measured alone (Trial.Alone). An interrupted block
// may give fewer. Both methods are deterministic and never block.
type Strategy interface {
	Ask() Action
	Tell(Event)
}

// Action is the next thing to do: run a trial or a block of trials, or stop.
type Action struct {
	Trial Trial
	Block []Trial // measured in turn (Settings.Block), Trial is the first of them; nil: Trial is measured alone
	Stop  bool
	// Why gives in a few words the reason for this trial, or for the end of the search.
	Why string
}

// Trials returns the action's trials; none if it is to stop.
func (a Action) Trials() []Trial {
	switch {
	case a.Stop:
		return nil
	case a.Block != nil:
		return a.Block
	}
	return []Trial{a.Trial}
}

// Trial is a value that determines one measurement: the configuration, the load, and the duration.
type Trial struct {
	Candidate Candidate     `json:"candidate"`       // the knobs that differ from the default configuration
	Load      measure.Load  `json:"load"`            // the load
	Windows   int           `json:"windows"`         // number of windows, ≥ 1
	Window    time.Duration `json:"window"`          // length of each window
	Fresh     bool          `json:"fresh,omitempty"` // measured on an engine process that was launched for this trial
	Phase     Phase         `json:"phase"`           // why it was measured
	// Model is the one of several models that a service trial sends requests to. The candidate's process
	// serves all of them, and the others are idle.
	Model string `json:"model,omitempty"`
	// Sizes are the client batches of a service trial's windows, one window for each, at the load's
	// concurrency.
	Sizes []int `json:"sizes,omitempty"`
	// Kinds are the measured kinds of requests, of a service trial of a mix: each size then has a window
	// for each of them, in this order.
	Kinds []int `json:"kinds,omitempty"`
	// Longest is the longest expected time of a batch in a service trial. The first size that is
	// expected to take longer is omitted, with all larger ones. 0: no limit.
	Longest time.Duration `json:"longest,omitempty"`
	// Worth are constraints on the first part of a window. A window that violates one
	// can no longer matter, and is cut there. They apply only to metrics that the load generator
	// measures. The bounds include a margin for the error of such a short window.
	Worth []Constraint `json:"worth,omitempty"`
	// Block is the ordinal of the trial's block, from 1. The trial has one window in each round, in
	// turn with the block's other trials. 0: it is measured alone.
	Block int `json:"block,omitempty"`
	// IsApart means that the trial belongs to a block that could not be measured in turns.
	IsApart bool `json:"apart,omitempty"`
}

// IsFutile reports whether the part of a window so far violates a constraint in Worth.
func (t Trial) IsFutile(soFar measure.Window) bool {
	m := measure.Measurement{Windows: []measure.Window{soFar}}
	return slices.ContainsFunc(t.Worth, func(c Constraint) bool {
		x, ok := m.Value(c.Metric)
		return ok && c.Violation(x) > 0
	})
}

// EndsAfter reports whether a service trial ends after batches of its first sizes took these times,
// since the next size is expected to exceed Longest. The expectation continues the line of the last
// two sizes. A larger batch is never expected to be faster.
func (t Trial) EndsAfter(times []time.Duration) bool {
	n := len(times)
	if t.Longest == 0 || n == 0 || n >= len(t.Sizes) {
		return false
	}
	next := times[n-1].Seconds()
	if n > 1 {
		slope := (times[n-1] - times[n-2]).Seconds() / float64(t.Sizes[n-1]-t.Sizes[n-2])
		next += max(0, slope*float64(t.Sizes[n]-t.Sizes[n-1]))
	}
	return next > t.Longest.Seconds()
}

// Phase is the part of a campaign that a trial belongs to.
type Phase string

// The phases of a campaign, in their order.
const (
	PhaseDefault   Phase = "default" // the default configuration, always first
	PhaseSearch    Phase = "search"
	PhaseService   Phase = "service" // within the search: the time of a batch of each size in a pool's process
	PhaseFinal     Phase = "final"   // measurements for the decision, on fresh launches
	PhaseLoadCurve Phase = "curve"   // further loads of the default, the first stage and the best, for the charts
)

// Event is the outcome of a trial.
type Event struct {
	Trial       Trial               `json:"trial"`       // what was asked
	Measurement measure.Measurement `json:"measurement"` // what was measured, or why nothing was
	Elapsed     time.Duration       `json:"elapsed"`     // since the campaign's start, without pauses between resumed runs
}

// Budget bounds a campaign. Zero fields do not bound. No trial begins if it is expected to end
// after the time. A longer trial is finished. A hanging one ends by its own limits: minutes for a
// load of the model or a first answer, then seconds without an answer.
type Budget struct {
	Time   time.Duration
	Trials int
}

// Settings holds all inputs of a strategy.
type Settings struct {
	Space  Space
	Goal   Goal
	Budget Budget
	Seed   uint64
	// Confidence is the probability with which the recommended configuration keeps the constraints;
	// 0: verdict.Confidence.
	Confidence float64
	Window     time.Duration // length of one window in the search phase
	// Earlier holds the measurements of earlier campaigns, newest first. Strategies that cannot
	// learn from them ignore it.
	Earlier []Earlier
	// Elsewhere means that the final trials are measured on another server, so their figures cannot
	// be compared with the others.
	Elsewhere bool
	// Until is the relative gain at which a campaign ends. At 0.02 it ends if, with Confidence, no
	// other configuration is better by more than 2 %. 0: it continues while any trial is worth its
	// time.
	Until float64
	// Turns means that the server supports measuring blocks in turns.
	Turns bool
}

// Trial returns a trial with one window of a candidate at a level of the load axis.
func (s Settings) Trial(c Candidate, level float64, phase Phase) Trial {
	return Trial{Candidate: c, Load: s.Space.Load.At(level), Windows: 1, Window: s.Space.Load.Whole(s.Window, level), Phase: phase}
}
