package search

import (
	"cmp"

	"tuner/measure"
	"tuner/ort/provider"
)

// Withheld is what others took of the CPU time that a candidate could have used in a measurement (measure.Withheld), with so
// many instances that may compute at once. A neighbour on the cores that few threads leave idle takes nothing from it.
func (s Space) Withheld(c Candidate, instances int, m measure.Measurement) float64 {
	return m.WithheldOf(s.Facts.Cores, s.usable(c, instances, m))
}

// usable is how many cores' worth of CPU time instances and clients can use at once: a thread of an instance takes one core
// at most, and clients take what they took. 0: all, as where the number of threads is not set, or GPUs compute.
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
