package analyze

import (
	"tuner/measure"
	"tuner/search"
)

// Explanation says why the best configuration is the best: what holds it back, which knob matters how much, how far the predictions
// were right, and why what was not measured cannot matter. It has no subjects where nothing was measured, and where the best is not among the
// configurations of the result (Result.Only).
type Explanation struct {
	// Subjects are the best configuration (or the nearest, where none satisfies the constraints), the second best, those that were
	// confirmed beside it, and the default, each at its best load, in the order of their ranks.
	Subjects []Subject
	// Knobs says how much each knob matters, the one that matters most first; empty where nothing satisfies the constraints.
	Knobs   []search.KnobEffect
	Barred  *Barred // the best of those that memory alone keeps out, where that is better than the best; else nil
	Untried Untried
	Dropped []measure.Metric // whose predictions turned out wrong, so that the search went on without them
}

// Subject is a configuration at its best load.
type Subject struct {
	Name       string
	Load       measure.Load
	Change     *measure.Estimate // of the objective against the first subject, relative: −0.12 is 12 % worse; nil for that, and unless both satisfy
	Bottleneck Bottleneck
	Breakdown  *Breakdown // nil without the server's statistics
	Higher     *Higher    // the next higher load that was measured; nil: none was
	IsHighest  bool       // the load is the highest of the profile
	// Predictions are what the search knew of the goal's metrics, throughput, mean latency and p99 before the first final, beside what was
	// measured by its own windows; nil where the strategy predicts nothing, or not this.
	Predictions []Prediction
	Curve       *ServiceCurve // of its engine process, as the predictions rest on; nil where they do
	// Latencies are those of all requests behind the figures.
	Latencies measure.Histogram
}

// Higher is a load above a configuration's best one.
type Higher struct {
	Load   measure.Load
	Change float64       // of the objective, relative
	Misses []search.Miss // constraints that are missed there
}

// Prediction is a metric as predicted and as measured, in its base unit.
type Prediction struct {
	Metric    measure.Metric
	Simulated *float64          // by the queue simulation alone, from service times; nil where it does not tell
	Believed  *measure.Estimate // corrected by all windows of the search; nil for a metric that the goal has not, and where Measured is of these windows
	Measured  measure.Estimate
}

// Holds reports whether a prediction and the measurement cannot be told apart: their intervals overlap. Without a belief it is false.
func (p Prediction) Holds() bool {
	return p.Believed != nil && p.Believed.Lo <= p.Measured.Hi && p.Measured.Lo <= p.Believed.Hi
}

// ServiceCurve is what a batch takes in an engine process.
type ServiceCurve struct {
	Sizes    []int     // of batches, ascending
	Alone    []float64 // s, by size, while the other instances are idle
	Crowded  []float64 // s, by size, while all instances are busy; nil with one instance
	Overhead float64   // s per request outside of queue and instance
}

// Barred is a configuration that would be better, but for a limit.
type Barred struct {
	Name   string
	Load   measure.Load
	Change float64 // of the objective against the best, relative
	Misses []search.Miss
}

// Untried counts the candidates of the space that were not measured. The counts add up to Candidates, unless some were measured in
// engine processes that count as skipped: those that failed later, and those without service times.
type Untried struct {
	Candidates int // of the space, the default not counted
	Measured   int // with a trial, failed ones included
	// Skipped are those of engine processes that do not serve, or were not started since they cannot matter, with the reasons.
	Skipped   []search.Fold
	Predicted int // by the service times of their engine processes, so that no window was spent on them
	Unreached int // the others: the campaign ended before them
	// Gain is by how much anything else may be better than the best, relative, at most with the verdict's confidence
	// (verdict.Verdict.More); nil where the strategy does not predict, where nothing bounds it, and where nothing satisfies the
	// constraints.
	Gain *float64
}
