// Package withheld says how much CPU time others took from a configuration in a measurement, by its
// threads and its patience. It stands above package search, and the posterior and reports read it.
package withheld

import (
	"cmp"
	"math"

	"tuner/measure"
	"tuner/ort/provider"
	"tuner/search"
)

// Withheld is the CPU time that others took from a candidate in a measurement.
type Withheld struct {
	// Log is −ln of the share that its threads and clients had left (measure.Withheld).
	Log float64
	// Patience is the share of the requests' time, 0..1, in which they waited in the queue although
	// an instance was free: for more requests, as the batcher's delay says. Others do not prolong
	// it.
	Patience float64
}

// Taken returns the logarithm of the factor by which the throughput fell, as a positive number.
func (w Withheld) Taken() float64 { return w.Beside(w.Log) }

// Beside is Taken for another amount: log is −ln of the share that busy threads have left. If
// requests are patient for the share p of their time, and the share l of the CPU time is left, the
// share p + (1 − p)·l of the throughput is left.
func (w Withheld) Beside(log float64) float64 {
	return -math.Log1p((1 - w.Patience) * math.Expm1(-log))
}

// Of returns the CPU time that others took from a candidate in a measurement. `instances` is
// the number of instances that may compute at once. A neighbour on cores that few threads leave
// idle takes nothing.
func Of(s search.Space, c search.Candidate, instances int, m measure.Measurement) Withheld {
	if s.IsSeveral() { // who waits for whom is each model's own matter
		return Withheld{Log: m.Whole().Withheld(s.Facts.Cores)}
	}
	return Withheld{m.WithheldOf(s.Facts.Cores, usable(s, c, instances, m)), patience(instances, m)}
}

// patience returns Withheld.Patience. The mean time of a request is by Little's law. patience is 0
// if the server has no statistics.
func patience(instances int, m measure.Measurement) float64 {
	var queue, inFlight, busy, seconds float64
	var queued, completed int
	for i := range m.Windows {
		w := &m.Windows[i]
		queue, queued = queue+w.Server.Queue.Seconds(), queued+w.Server.Requests
		inFlight, completed = inFlight+w.InFlight*w.Duration.Seconds(), completed+w.Requests
		busy += w.Server.InstanceTime().Seconds()
		seconds += w.Duration.Seconds()
	}
	if queued == 0 || completed == 0 || inFlight <= 0 || seconds <= 0 {
		return 0
	}
	free := max(0, 1-busy/(seconds*float64(max(1, instances))))
	return min(1, free*queue/float64(queued)/(inFlight/float64(completed)))
}

// usable returns the number of cores whose CPU time instances and clients can use at once. A thread
// of an instance uses one core at most, and clients use the time they used. No more instances
// compute than requests are in flight. 0: all, if the number of threads is not set, or GPUs
// compute.
func usable(s search.Space, c search.Candidate, instances int, m measure.Measurement) float64 {
	threads, err := s.Value(c, search.KnobIntraOpThreads).Int()
	if err != nil || threads <= 0 || cmp.Or(s.Value(c, search.KnobExecutionProvider), provider.CPU) != provider.CPU {
		return 0
	}
	clients, inFlight, seconds := 0.0, 0.0, 0.0
	for _, w := range m.Windows {
		clients, seconds = clients+w.ClientCPU.Seconds(), seconds+w.Duration.Seconds()
		inFlight += w.InFlight * w.Duration.Seconds()
	}
	if seconds > 0 {
		clients, inFlight = clients/seconds, inFlight/seconds
	}
	computing := float64(max(1, instances))
	if inFlight > 0 { // otherwise unknown
		computing = min(computing, max(1, inFlight))
	}
	return float64(threads)*computing + clients
}
