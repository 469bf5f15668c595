// Package verdict makes the one decision of a campaign. It says which configuration is recommended
// at which load, and which constraints hold with which probability. It also names the choice that
// narrowly misses a limit, and the certainty of the decision. Every output that names a best
// configuration reads it: the search's progress, the terminal, every report, the deployed
// configuration, and the exports.
//
// In the data flow it follows package posterior, which supplies the beliefs, and precedes
// everything that presents them. It measures nothing. Two properties hold by construction, and
// tests check them. An answer never gets worse when a limit is loosened. No other measured
// configuration is better in the objective and as safe. docs/design/verdict.md has the rules and
// their reasons.
package verdict

import (
	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/standings"
)

// Confidence is the required probability that the limits hold, unless the user sets another.
const Confidence = 0.95

// Tie is the largest relative gain that does not count: within it the simpler configuration and the
// lower load win. Deployments on two machines of one type differ by more.
const Tie = 0.01

// Confirmed is the number of fresh launches after which figures of a configuration count as
// confirmed. One launch does not show the spread between launches.
const Confirmed = 2

// Likely is the probability from which on a limit is more likely kept than not. A choice is at the
// edge if it keeps all limits with this probability but below the required confidence.
const Likely = 0.5

// worthMore is the possible gain of other choices above which a campaign is unfinished. Users stop
// asking for more at about this value. With 5 % most campaigns of three minutes on a noisy machine
// would be unfinished. With 20 % the answer may miss a knob.
const worthMore = 0.10

// Beliefs are the distributions of metrics at cells. Its methods do not block.
type Beliefs interface {
	// Measured lists the cells with trials, in the order of the first trials.
	Measured() []posterior.Measured
	// Joint is the joint distribution of a metric at several cells; false if nothing is known about
	// the metric. A cell without a distribution has the mean NaN.
	Joint(cells []posterior.Cell, metric measure.Metric) (posterior.Joint, bool)
	// IsPredicted reports whether a model predicts a metric at a cell, beyond the cell's trials.
	IsPredicted(c posterior.Cell, metric measure.Metric) bool
}

// Options select the question.
type Options struct {
	Space      search.Space
	Goal       search.Goal
	Confidence float64       // 0: Confidence
	At         *measure.Load // compare at this load, for any client batch; nil: each at its best
	Rivals     []Rival       // unmeasured candidates that may be better
	// Until is the relative gain for which the user would not wait (search.Settings.Until); 0 if
	// the user set none.
	Until float64
	// IsOpen means that candidates without any prediction may be better: engines without service
	// times.
	IsOpen bool
	// IsRunning means that the campaign continues. The choices then have no mean latency unless the goal
	// names it: only reports show it, it decides nothing, and to learn it takes a third of the time.
	IsRunning bool
	// MustConfirm means that an answer stays unfinished until it was measured on a fresh launch.
	MustConfirm bool
}

// Rival is an unmeasured configuration at a load, with its predictions.
type Rival struct {
	Candidate search.Candidate
	Load      measure.Load
	Score     posterior.Normal // of the goal, on log scale
	Holds     float64          // probability that it keeps all limits
	// IsPool means that the candidate stands for the best of an engine process that was not
	// started.
	IsPool bool
}

// State is the state of an answer in a few words.
type State string

// The states of an answer, in the order in which they are checked.
const (
	Unmeasured State = "nothing measured"  // no trial gave a figure
	Nothing    State = "nothing satisfies" // no choice is likely to keep the limits
	// Unfinished: another choice may be much better, or may keep limits that none keeps so far, or
	// the answer was not confirmed
	Unfinished State = "unfinished"
	Close      State = "close to the limit" // no choice keeps the limits with the required confidence
	NoGain     State = "no gain shown"      // no choice is shown to be better than the default
	Proven     State = "proven"             // recommended, and shown to be better than the default
)

// Limit is a constraint at a configuration's load.
type Limit struct {
	Constraint  search.Constraint
	Probability float64 // that the constraint holds
	// Needs is the number of further independent requests that make the percentile measurable
	// without a model. It is 0 if enough were measured, and for other metrics.
	Needs int
	// IsModelled means that the queue simulation completes the percentile of too few requests.
	IsModelled bool
}

// IsUnknown reports whether too few requests were measured and no model predicts the percentile.
func (l Limit) IsUnknown() bool { return l.Needs > 0 && !l.IsModelled }

// Choice is a configuration at a load, with its figures.
type Choice struct {
	posterior.Measured
	Score  posterior.Normal // of the goal's objective, on log scale
	Values map[measure.Metric]measure.Estimate
	Holds  float64 // probability that all limits are kept
	Limits []Limit // in the goal's order
	Misses []search.Miss
	// Gain is the ratio of the objective to the default's at the default's best load. It is nil
	// unless both are likely to keep the limits.
	Gain *measure.Estimate
	// Better is the probability that the choice is better than the default at all; 0 if Gain is
	// nil.
	Better float64
	// Against is the relative change of the objective from the answer to this choice: −0.12 is 12 %
	// worse.
	Against measure.Estimate
	// IsOutside means that it was measured for load curves alone and lies outside the space: nobody
	// asked to deploy it.
	IsOutside bool
	// IsDisplaced means that a simpler configuration, or a lower load, displaces it: it is never
	// recommended.
	IsDisplaced bool
	Tied        bool // not distinguishable from the answer, and within a tie of it
}

// MayLead reports whether the choice may be named as best. A choice outside the space may not. A
// configuration that failed on a fresh process cannot be deployed.
func (c Choice) MayLead() bool { return !c.IsOutside && !c.IsBroken }

// IsUnknown reports whether a limit is unknown.
func (c Choice) IsUnknown() bool {
	for _, l := range c.Limits {
		if l.IsUnknown() {
			return true
		}
	}
	return false
}

// Keeps reports whether it keeps all limits with a confidence. An unknown limit never counts as
// kept.
func (c Choice) Keeps(confidence float64) bool { return c.Holds >= confidence && !c.IsUnknown() }

// Step is the recommended choice from a limit up to the limit of the next step.
type Step struct {
	Limit  float64 // in the metric's base unit
	Choice int     // in Verdict.Choices
}

// LimitCurve is the answer as a function of one limit, with all others as the goal has them. The
// tightest limit comes first. Below the first step nothing is recommended.
type LimitCurve struct {
	Metric  measure.Metric
	IsLeast bool // the limit is a minimum: steps go down
	Steps   []Step
}

// Verdict is the decision. It is immutable.
type Verdict struct {
	State      State
	Confidence float64
	// Recommended keeps all limits with at least Confidence; nil if no choice does.
	Recommended *Choice
	// Edge is better than Recommended and likely to keep the limits, but with less than Confidence.
	// nil without one.
	Edge    *Choice
	Default *Choice // at its best load; nil if the default was not measured
	// Unseen are the loads at which the default may keep the limits, if it is not likely to at any
	// measured one. nil otherwise, and if no load is left.
	Unseen *Span
	// Nearest misses the limits least; nil if a measured choice is likely to keep them.
	Nearest *Choice
	// Chance is set together with Nearest, else 0. It is the highest probability that any
	// configuration keeps the limits, measured or not. It is 1 if one without any prediction may
	// keep them.
	Chance  float64
	Configs []Choice // every configuration at its load, the answer first
	Choices []Choice // every configuration at every load that was measured
	// More is an upper bound, with probability Confidence, of the relative gain of any other choice
	// over the answer. It is +Inf if a choice of which nothing is known may be better.
	More float64
	// IsUnconfirmed means that the state is Unfinished for one reason alone: the answer was not measured on a fresh launch.
	IsUnconfirmed bool
	Reach         Reach
	LimitCurves   []LimitCurve
	Tradeoffs     standings.Tradeoffs
}

// Answer returns the choice to deploy: Recommended, else Edge, else Nearest. nil if nothing was
// measured.
func (v Verdict) Answer() *Choice {
	for _, c := range []*Choice{v.Recommended, v.Edge, v.Nearest} {
		if c != nil {
			return c
		}
	}
	return nil
}

// Satisfies reports whether a choice is likely to keep all limits.
func (v Verdict) Satisfies() bool { return v.Recommended != nil || v.Edge != nil }

// gain converts a difference of scores to a relative change of the objective with a 95 % interval, if the
// objective has an error.
func gain(o search.Objective, d posterior.Normal) measure.Estimate {
	lo, hi := d.Interval()
	if o.IsScale() {
		lo, hi = d.Mean, d.Mean
	}
	return measure.Estimate{Value: o.Gain(0, d.Mean), Lo: o.Gain(0, lo), Hi: o.Gain(0, hi)}
}
