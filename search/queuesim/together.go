package queuesim

import "tuner/measure"

// Model is one of several that are served on the same cores.
type Model struct {
	Batcher Batcher
	// Curve has the times of its batches while no other model computes. Its Threads are the cores
	// that each instance asks for. Its Cores are not read.
	Curve ServiceCurve
	Load  measure.Load // the zero load: it receives no requests, and takes no part
	// Options are those of its own requests. Each model needs another seed: with the same one, two
	// models would get their requests at the same instants.
	Options Options
}

// mostTogether bounds a simulation of several models, in multiples of the requests that they count
// and leave out. A model with few requests would otherwise let the others send without end, and so
// would one whose load is beyond the server's capacity. With 64, two models that count 2,000
// requests each send 320,000 at most, in about 0.1 s. The rarer one counts all of its own as long as
// the other has at most 127 times its rate.
const mostTogether = 64

// Together predicts the results of several models that are served on the same cores, each under its
// own load. Each has its own batcher and instances. They meet in the cores alone: while they ask for
// more cores than there are, all have the same share of what they ask for. What a model's instances
// do to each other is in its curve, and is not counted twice.
//
// All are counted between the same instants, from the end of the last warm-up until each has counted
// Options.Requests. If that takes too many requests of the others, a model counts fewer. It is zero
// where nothing was counted. A model alone has the results of Simulate on as many cores. The results
// are in the order of the models.
func Together(models []Model, cores int) []Result { return new(Simulator).Together(models, cores) }

// Together is the function of that name with reused memory.
func (s *Simulator) Together(models []Model, cores int) []Result {
	results := make([]Result, len(models))
	served := make([]int, 0, len(models)) // indices of the models that answer requests
	for i, m := range models {
		if (m.Load.Concurrency > 0 || m.Load.RequestRate > 0) && !m.Batcher.refuses(m.Load.BatchSize) {
			served = append(served, i)
		}
	}
	s.lanes, s.sent = s.lanes[:0], 0
	for _, i := range served {
		m := models[i]
		m.Curve.Cores = cores
		l := s.vacant()
		l.begin(m.Batcher, m.Curve, m.Load, m.Options, len(served) > 1)
		l.tally.held = len(served) > 1
		s.lanes = append(s.lanes, l)
	}
	s.run()
	for k, i := range served {
		results[i] = s.lanes[k].tally.result(s.lanes[k].now, models[i].Options.Within)
	}
	return results
}

// vacant returns a lane that this simulation does not use yet.
func (s *Simulator) vacant() *lane {
	n := len(s.lanes)
	if n == 0 {
		return &s.lane
	}
	if n > len(s.more) {
		s.more = append(s.more, new(lane))
	}
	return s.more[n-1]
}

// most returns the number of requests that all lanes send at most.
func (s *Simulator) most() int {
	sum := 0
	for _, l := range s.lanes {
		sum += l.tally.skip + l.tally.want
	}
	return mostTogether * sum
}
