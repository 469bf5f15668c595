package colocation

import "time"

// Tuning holds the numbers of the search.
type Tuning struct {
	Deviations Deviations
	// Reading is the least standard deviation of the logarithm of a trial's latency. Of windows of 2 s with
	// some hundred requests in closed loops it is 3 % (docs/design/measurement.md).
	Reading float64
	// Overloaded is the logarithm of a latency over its limit from which on it carries no information but
	// that: an endless queue is as long as the trial.
	Overloaded float64
	// Best is the number of a model's options that are considered for each number of its cores.
	Best int
	// Simulated is the number of cells on shared cores, the most promising ones, that are simulated after
	// each trial. Others are predicted from each model alone.
	Simulated int
	// Contenders is the number of options of all models together that are considered on shared cores, where
	// every pair is predicted. 80 of two models make 3,200 pairs, which take 30 ms.
	Contenders int
	// Possible is the probability with which a cell on shared cores must exceed the leader to be simulated.
	Possible float64
	// Requests of each model that are counted in a simulation.
	Requests int
}

// Deviations are the standard deviations of the parts of a slowdown.
type Deviations struct {
	Model     float64 // of all cells of a model: the pace of the machine, and what every company costs
	Isolation float64 // of shared or of divided cores
	Cores     float64 // of some cores: interference with what the others do on the rest
	Pool      float64 // of an engine process: its service times
	Option    float64 // of a configuration: what the queue simulation gets wrong about it
	Site      float64 // of a configuration on some cores
	Company   float64 // of a configuration in one company
}

// Costs are the times of trials.
type Costs struct {
	Launch time.Duration // of engine processes, if any part or the division changes
	Change time.Duration // of a batcher
	Trial  time.Duration // warm-up and window
}

// Default returns the numbers with which the search was judged (docs/design/search.md).
func Default() Tuning {
	return Tuning{
		Deviations: Deviations{Model: 0.15, Isolation: 0.15, Cores: 0.1, Pool: 0.13, Option: 0.2, Site: 0.12, Company: 0.08},
		Reading:    0.03, Overloaded: 1, Best: 4, Simulated: 2, Contenders: 80, Possible: 0.05, Requests: 1000,
	}
}
