package analyze

import (
	"tuner/analyze/bottleneck"
	"tuner/measure"
	"tuner/search"
)

// Explanation explains why the best configuration is the best:
//
//   - what limits it,
//   - how much each knob matters,
//   - how accurate the predictions were,
//   - why the configurations that were not measured cannot be much better.
//
// It has no subjects if nothing was measured, or if the result does not contain the best
// configuration (Result.Only).
type Explanation struct {
	// Subjects are the best configuration (the nearest, if none satisfies the constraints), the
	// second best, the confirmed ones, and the default. Each is at its best load. They are in the
	// order of their ranks.
	Subjects []Subject
	// Knobs are the effects of each knob, largest first. It is empty if nothing satisfies the
	// constraints.
	Knobs []search.KnobEffect
	// Barred: the best configuration that only the memory limit excludes, if it is better than the
	// best; else nil
	Barred  *Barred
	Untried Untried
	// Dropped: metrics whose predictions turned out wrong, so that the search continued without
	// them
	Dropped []measure.Metric
}

// Subject is a configuration at its best load.
type Subject struct {
	Name string
	Load measure.Load
	// Change: relative change of the objective against the first subject: −0.12 is 12 % worse; nil
	// for the first subject, and unless both satisfy the constraints
	Change     *measure.Estimate
	Bottleneck bottleneck.Kind
	Breakdown  *bottleneck.Breakdown // nil without the server's statistics
	Stages     []bottleneck.Stage    // of a pipeline, in the profile's order; empty without their statistics
	Higher     *Higher               // the next higher measured load; nil at the highest one
	IsHighest  bool                  // the load is the profile's highest
	// Predictions compare what the search predicted before the first final with the configuration's
	// own windows. Metrics: the goal's, throughput, mean latency and p99. Nil if the strategy
	// predicts nothing, or not this configuration.
	Predictions []Prediction
	Curve       *ServiceCurve // of its engine process, on which the predictions rest; nil without predictions
	// Latencies are the latencies of all requests in the figures.
	Latencies measure.Histogram
}

// Higher is a measured load above a configuration's best load.
type Higher struct {
	Load   measure.Load
	Change float64       // relative, of the objective
	Misses []search.Miss // the constraints that it misses
}

// Prediction is a metric's predicted and measured value, in its base unit.
type Prediction struct {
	Metric measure.Metric
	// Simulated: from the queue simulation and service times alone; nil if it does not predict the
	// metric
	Simulated *float64
	// Believed: corrected by all windows of the search; nil for metrics outside the goal, and if
	// Measured comes from these windows
	Believed *measure.Estimate
	Measured measure.Estimate
}

// Holds reports whether the intervals of prediction and measurement overlap. It returns false
// without a belief.
func (p Prediction) Holds() bool {
	return p.Believed != nil && p.Believed.Lo <= p.Measured.Hi && p.Measured.Lo <= p.Believed.Hi
}

// ServiceCurve is the time that a batch of each size takes in an engine process.
type ServiceCurve struct {
	Sizes    []int     // batch sizes, ascending
	Alone    []float64 // s, by size, while the other instances are idle
	Crowded  []float64 // s, by size, while all instances are busy; nil for one instance
	Overhead float64   // s per request outside queue and instance
	Path     float64   // s of processor time of the overhead, under load; 0: unknown
}

// Barred is a configuration that is better than the best but exceeds a limit.
type Barred struct {
	Name   string
	Load   measure.Load
	Change float64 // relative, of the objective against the best
	Misses []search.Miss
}

// Untried counts the candidates of the space that were not measured.
//
// The counts add up to Candidates, with one exception. Engine processes that failed later, or that
// have no service times, count as skipped although some of their candidates were measured.
type Untried struct {
	Candidates int // of the space, without the default
	Measured   int // with a trial, also a failed one
	// Skipped are the candidates of engine processes that do not serve, or that were not started
	// because they cannot matter. Each fold has its reason.
	Skipped []search.Fold
	// Predicted: excluded by the service times of their engine processes, without a window of their
	// own
	Predicted int
	Unreached int // the rest: the campaign ended before them
	// Gain is the relative amount by which any other configuration may be better than the best,
	// with the verdict's confidence (verdict.Verdict.More). Nil if the strategy does not predict,
	// if there is no bound, or if nothing satisfies the constraints.
	Gain *float64
}
