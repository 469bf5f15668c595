package search

import "tuner/measure"

// Prediction is what a strategy knows of a configuration at a load, by all events that it was told.
type Prediction struct {
	Values  []Predicted
	Service ServiceTimes // of the configuration's engine process
}

// Predicted is what was expected of a metric, in its base unit.
type Predicted struct {
	Metric    measure.Metric
	Simulated *float64          // by the queue simulation alone, from service times; nil where it does not tell
	Believed  *measure.Estimate // corrected by all windows that were told, with a 95 % interval; nil of a metric that the goal has not
}

// ServiceTimes is what batches take in an engine process.
type ServiceTimes struct {
	Sizes    []int     // ascending
	Alone    []float64 // s, a batch of each size while all other instances are idle
	Crowded  []float64 // s, while all instances are busy; empty where there is one
	Overhead float64   // s per request, outside of instance and queue
}
