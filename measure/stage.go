package measure

import "time"

// Stage returns the statistics of a stage of a pipeline; false if the window has none of it.
func (w Window) Stage(model string) (ServerStats, bool) {
	for _, s := range w.Stages {
		if s.Model == model {
			return s.Server, true
		}
	}
	return ServerStats{}, false
}

// Compute is the time in instances, summed over requests.
func (s ServerStats) Compute() time.Duration {
	return s.ComputeInput + s.ComputeInfer + s.ComputeOutput
}
