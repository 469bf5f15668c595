package search

import "tuner/measure"

// Prediction is a strategy's estimate for a configuration at a load, from all events so far.
type Prediction struct {
	Values  []Predicted
	Service ServiceTimes // of the configuration's engine process
}

// Predicted is the prediction of a metric, in its base unit.
type Predicted struct {
	Metric    measure.Metric
	Simulated *float64 // by the queue simulation alone, from service times; nil if it has no such metric
	// Believed: corrected by all windows so far, with a 95 % interval; nil for metrics outside the
	// goal
	Believed *measure.Estimate
}

// ServiceTimes are the batch times in an engine process.
type ServiceTimes struct {
	Sizes    []int     // ascending
	Alone    []float64 // s, a batch of each size while all other instances are idle
	Crowded  []float64 // s, while all instances are busy; empty for one instance
	Overhead float64   // s per request, outside instance and queue
	Path     float64   // s of processor time of the overhead, under load; 0: unknown
}
