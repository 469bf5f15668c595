package stagewise

// Tuning holds the numbers of the search.
type Tuning struct {
	Deviations Deviations
	// Reading is the standard deviation of a trial's logarithm. Windows of a second differ by 3 %
	// (docs/design/measurement.md).
	Reading float64
	// Worth is the least expected gain of a trial, relative. Halved, a search has a third more trials.
	Worth float64
	// Impossible is the probability to keep the limits below which a configuration is not measured while
	// nothing keeps them.
	Impossible float64
	// Beginnings is the number of combinations with the highest bounds from which the climb begins.
	Beginnings int
	// Options is the largest number of a stage's options that are considered: those with the highest
	// throughput, and those that take the least of the cores.
	Options int
	// Combined is the largest number of combinations whose bounds are computed.
	Combined int
	// Requests are counted in a simulation: with 600, a throughput has an error of 2 %.
	Requests int
	// Executions of a size from which its time counts where no service trial has it.
	Executions int
}

// Deviations are the standard deviations of the logarithm of a figure from its prediction.
type Deviations struct {
	All    float64 // of all configurations: the machine, client and wire
	Engine float64 // of a stage's engine process
	Option float64 // of a stage's configuration
	Whole  float64 // of one combination
	Tail   float64 // factor of all of them for a latency
}

// Default returns the numbers of the search.
func Default() Tuning {
	return Tuning{
		Deviations: Deviations{All: 0.2, Engine: 0.07, Option: 0.07, Whole: 0.07, Tail: 1.5},
		Reading:    0.03, Worth: 0.003, Impossible: 0.02, Beginnings: 12, Options: 40, Combined: 60_000, Requests: 600, Executions: 30,
	}
}
