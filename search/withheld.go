package search

import (
	"cmp"

	"tuner/measure"
	"tuner/ort/provider"
)

// Withheld returns the CPU time that others took from a candidate in a measurement
// (measure.Withheld). `instances` is the number of instances that may compute at once. A neighbour
// on cores that few threads leave idle takes nothing.
func (s Space) Withheld(c Candidate, instances int, m measure.Measurement) float64 {
	return m.WithheldOf(s.Facts.Cores, s.usable(c, instances, m))
}

// usable returns the number of cores whose CPU time instances and clients can use at once. A thread
// of an instance uses one core at most, and clients use the time they used. 0: all, if the number
// of threads is not set, or GPUs compute.
func (s Space) usable(c Candidate, instances int, m measure.Measurement) float64 {
	threads, err := s.Value(c, KnobIntraOpThreads).Int()
	if err != nil || threads <= 0 || cmp.Or(s.Value(c, KnobExecutionProvider), provider.CPU) != provider.CPU {
		return 0
	}
	clients, seconds := 0.0, 0.0
	for _, w := range m.Windows {
		clients, seconds = clients+w.ClientCPU.Seconds(), seconds+w.Duration.Seconds()
	}
	if seconds > 0 {
		clients /= seconds
	}
	return float64(threads*max(1, instances)) + clients
}
