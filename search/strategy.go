package search

import (
	"slices"
	"time"

	"tuner/measure"
)

// Strategy chooses the trials of a campaign, one after the other. Ask returns the next action and changes nothing: asked
// twice, it answers the same. Tell reports the outcome of that action: of a block one event for each of its trials, in their order; where the block
// could not be measured in turns, or was interrupted, of the same trials measured alone (Trial.Alone), or of fewer. Both are deterministic and never
// block.
type Strategy interface {
	Ask() Action
	Tell(Event)
}

// Action is what to do next: run a trial, or a block of them, or stop.
type Action struct {
	Trial Trial
	Block []Trial // measured in turn (Settings.Block), the first of them is Trial; nil: Trial is measured alone
	Stop  bool
	// Why says in a few words why this trial is next, or why the search ends.
	Why string
}

// Trials are those of the action, none where it is to stop.
func (a Action) Trials() []Trial {
	switch {
	case a.Stop:
		return nil
	case a.Block != nil:
		return a.Block
	}
	return []Trial{a.Trial}
}

// Trial is a value that says all that one measurement needs: which configuration, under which load, for how long.
type Trial struct {
	Candidate Candidate     `json:"candidate"`
	Load      measure.Load  `json:"load"`
	Windows   int           `json:"windows"`         // number of windows, ≥ 1
	Window    time.Duration `json:"window"`          // length of each
	Fresh     bool          `json:"fresh,omitempty"` // on an engine process launched for this trial
	Phase     Phase         `json:"phase"`
	// Sizes are the client batches of a service trial's windows, one window for each, at the load's concurrency.
	Sizes []int `json:"sizes,omitempty"`
	// Longest is how long a batch of a service trial may take: the first size that is expected to take longer is left out, with all larger ones (EndsAfter).
	// 0: none is.
	Longest time.Duration `json:"longest,omitempty"`
	// Worth bounds what a window must show at measure.Look for the trial to go on: one that misses any of these can no longer matter, and is cut there. Of
	// metrics that the load itself tells; the bounds have room for what so little of a window may err by.
	Worth []Constraint `json:"worth,omitempty"`
	// Block is the ordinal of the block, from 1, that the trial is a seat of: it has one window in each round, in turn with the block's other trials. 0: it
	// is measured alone.
	Block int `json:"block,omitempty"`
	// IsApart says that the trial was to be a seat of a block that could not be measured in turns.
	IsApart bool `json:"apart,omitempty"`
}

// IsFutile reports whether a window misses, by what it shows so far, what it must show for the trial to go on.
func (t Trial) IsFutile(soFar measure.Window) bool {
	m := measure.Measurement{Windows: []measure.Window{soFar}}
	return slices.ContainsFunc(t.Worth, func(c Constraint) bool {
		x, ok := m.Value(c.Metric)
		return ok && c.Violation(x) > 0
	})
}

// EndsAfter reports whether a service trial ends when batches of its first sizes took so long: the next size is expected to take longer than it may. What
// is expected goes on as the line of the last two sizes, and no larger batch is expected to take shorter.
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
	PhaseDefault Phase = "default" // the default configuration, always first
	PhaseSearch  Phase = "search"
	PhaseService Phase = "service" // within the search: what a batch of each size takes in a pool's process
	PhaseFinal   Phase = "final"   // what the decision depends on, on fresh launches
	PhaseCurve   Phase = "curve"   // further loads of the default, the first stage and the best, for the charts
)

// Event is the outcome of a trial.
type Event struct {
	Trial       Trial               `json:"trial"`
	Measurement measure.Measurement `json:"measurement"`
	Elapsed     time.Duration       `json:"elapsed"` // since the campaign's start, pauses between resumed runs left out
}

// Budget bounds a campaign. Zero fields do not bound. No trial is begun that is expected to end after the time; one that takes longer is
// finished, and one that hangs ends when its own time is over: minutes for a load of the model or a first answer, then seconds without one.
type Budget struct {
	Time   time.Duration
	Trials int
}

// Settings is all that a strategy depends on.
type Settings struct {
	Space  Space
	Goal   Goal
	Budget Budget
	Seed   uint64
	// Confidence is the probability with which what is recommended keeps the constraints; 0: verdict.Confidence.
	Confidence float64
	Window     time.Duration // length of one window in the search phase
	// Earlier is what campaigns before this one measured, the newest first; strategies that cannot learn from them pass over it.
	Earlier []Earlier
	// Elsewhere says that the final trials are measured on another server than the others: their figures do not compare.
	Elsewhere bool
	// Until is the relative gain beyond which anything else must still be likely to be better for the campaign to go on:
	// 0.02 ends it when nothing else is better by more than 2 %, with Confidence. 0: it goes on while anything is worth a trial.
	Until float64
	// Turns says that the server can be measured in blocks of turns.
	Turns bool
}
