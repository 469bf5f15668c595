// Package verdict makes the one decision of a campaign: which configuration is recommended at which
// load, what holds with which probability, what is just out of reach, and how sure that is. Everything
// that names a best configuration reads it: the search's progress, the terminal, every report, the
// deployed configuration, and the exports.
//
// It stands behind package posterior, which says what is known, and before everything that says it to
// people. It measures nothing. Two properties hold by construction, and tests check them: an answer
// never gets worse when a limit is loosened, and no other configuration that was measured is better
// in the objective and as safe. docs/design/verdict.md has the rules and their reasons.
package verdict

import (
	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
)

// Confidence is the probability with which limits must hold, unless the user asks for another.
const Confidence = 0.95

// Tie is the relative gain that is none: within it the simpler configuration and the lower load win.
// Deployments on two machines of one type differ by more.
const Tie = 0.01

// Confirmed is how many fresh launches it takes before figures of a configuration are told: with one, the spread
// between launches is not seen.
const Confirmed = 2

// Likely is the probability from which on a limit is more likely kept than not. What keeps all limits
// with it, and not with the asked confidence, is at the edge.
const Likely = 0.5

// worthMore is the gain that something else may still have, beyond which a campaign is unfinished.
// Users stop asking for more at about so much; with 5 % most campaigns of three minutes on a noisy
// machine would be unfinished, with 20 % the answer may miss a knob.
const worthMore = 0.10

// Beliefs is what is known of cells. It does not block.
type Beliefs interface {
	// Measured lists the cells with trials, in the order of the first trials.
	Measured() []posterior.Measured
	// Joint is what is known of a metric at several cells; false where nothing is known of it. The mean of
	// a cell of which it is not known is not a number.
	Joint(cells []posterior.Cell, metric measure.Metric) (posterior.Joint, bool)
	// IsPredicted reports whether a model stands behind a metric at a cell beside the cell's trials.
	IsPredicted(c posterior.Cell, metric measure.Metric) bool
}

// Options say what is asked.
type Options struct {
	Space      search.Space
	Goal       search.Goal
	Confidence float64       // 0: Confidence
	At         *measure.Load // compare at this load, whatever the client batch; nil: each at its best
	Rivals     []Rival       // what was not measured and may be better
	// Until is the relative gain for which the user would not wait (search.Settings.Until), 0 where none was said.
	Until float64
	// IsOpen says that something may be better of which nothing is known: engines without service times.
	IsOpen bool
	// MustConfirm says that an answer counts as unfinished until it was measured on a fresh launch.
	MustConfirm bool
}

// Rival is a configuration at a load that was not measured, as far as it is predicted.
type Rival struct {
	Candidate search.Candidate
	Load      measure.Load
	Score     posterior.Normal // of the goal, on log scale
	Holds     float64          // probability that it keeps all limits
	// IsPool says that the candidate stands for the best of an engine process that was not started.
	IsPool bool
}

// State is the answer's in one word or two.
type State string

// The states of an answer, in the order in which they are checked.
const (
	Unmeasured State = "nothing measured"   // no trial told a figure
	Nothing    State = "nothing satisfies"  // nothing is likely to keep the limits
	Unfinished State = "unfinished"         // something may be much better, or keep limits that nothing keeps so far, or the answer was not confirmed
	Close      State = "close to the limit" // nothing keeps the limits with the asked confidence
	NoGain     State = "no gain shown"      // nothing is shown to be better than the default
	Proven     State = "proven"             // recommended, and shown to be better than the default
)

// Limit is a constraint at a configuration's load.
type Limit struct {
	Constraint  search.Constraint
	Probability float64 // that it holds
	// Needs is how many more independent requests bound the percentile by themselves; 0 where enough
	// were measured, and for other metrics.
	Needs int
	// IsModelled says that the queue simulation supplies what these requests do not tell.
	IsModelled bool
}

// IsUnknown reports whether too few requests were measured and nothing else tells the percentile.
func (l Limit) IsUnknown() bool { return l.Needs > 0 && !l.IsModelled }

// Choice is a configuration at a load, and what is known of it.
type Choice struct {
	posterior.Measured
	Score  posterior.Normal // of the goal's objective, on log scale
	Values map[measure.Metric]measure.Estimate
	Holds  float64 // probability that all limits are kept
	Limits []Limit // in the goal's order
	Misses []search.Miss
	// Gain is the factor by which the objective is better than the default's at the default's best load.
	// Nil unless both are likely to keep the limits.
	Gain *measure.Estimate
	// Better is the probability that it is better than the default at all; 0 where Gain is nil.
	Better float64
	// Against is the relative change of the objective from the answer to this one: −0.12 is 12 % worse.
	Against measure.Estimate
	// IsOutside says that it was measured for load curves alone, and that the space does not have it: nobody asked
	// to deploy it.
	IsOutside bool
	// IsDisplaced says that a simpler configuration, or a lower load, stands for it: it is never recommended.
	IsDisplaced bool
	Tied        bool // it cannot be told from the answer, and differs by no more than a tie
}

// MayLead reports whether it may be named as best at all. What lies outside of the space may not, and what failed
// on a fresh process cannot be deployed.
func (c Choice) MayLead() bool { return !c.IsOutside && !c.IsBroken }

// IsUnknown reports whether a limit is.
func (c Choice) IsUnknown() bool {
	for _, l := range c.Limits {
		if l.IsUnknown() {
			return true
		}
	}
	return false
}

// Keeps reports whether it keeps all limits with a confidence. A limit that is unknown is not kept, whatever its
// probability.
func (c Choice) Keeps(confidence float64) bool { return c.Holds >= confidence && !c.IsUnknown() }

// Step is what is recommended from a limit on, up to the next step's.
type Step struct {
	Limit  float64 // in the metric's base unit
	Choice int     // in Verdict.Choices
}

// Curve is the answer as a function of one limit, all others as asked: the tightest limit first. Below
// the first step nothing is recommended.
type Curve struct {
	Metric  measure.Metric
	IsLeast bool // the limit is a minimum: steps go down
	Steps   []Step
}

// Verdict is the decision. It is immutable.
type Verdict struct {
	State      State
	Confidence float64
	// Recommended keeps all limits with at least Confidence; nil where nothing does.
	Recommended *Choice
	// Edge is better than Recommended and keeps the limits likely, but not with Confidence. Nil where
	// there is none.
	Edge    *Choice
	Default *Choice // at its best load; nil where the default was not measured
	// Nearest misses the limits least; nil unless nothing that was measured is likely to keep them.
	Nearest *Choice
	// Chance is, beside Nearest, the highest probability that something keeps the limits, measured or not; 1 where nothing
	// is known of something that may. 0 otherwise.
	Chance  float64
	Configs []Choice // every configuration at its load, the answer first
	Choices []Choice // every configuration at every load that was measured
	// More is by how much something else may be better than the answer, relative, at most with
	// probability Confidence; +Inf where nothing is known of something that may be.
	More      float64
	Curves    []Curve
	Tradeoffs search.Tradeoffs
}

// Answer is what is deployed: the recommended, else what is at the edge, else what misses the limits
// least. It is nil where nothing was measured.
func (v Verdict) Answer() *Choice {
	for _, c := range []*Choice{v.Recommended, v.Edge, v.Nearest} {
		if c != nil {
			return c
		}
	}
	return nil
}

// Satisfies reports whether something is likely to keep all limits.
func (v Verdict) Satisfies() bool { return v.Recommended != nil || v.Edge != nil }

// gain is a difference of scores as a relative change of the objective with a 95 % interval.
func gain(o search.Objective, d posterior.Normal) measure.Estimate {
	lo, hi := d.Interval()
	return measure.Estimate{Value: o.Gain(0, d.Mean), Lo: o.Gain(0, lo), Hi: o.Gain(0, hi)}
}
