package predict

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search/guided/pools"
)

// Path is the processor time in seconds that a request takes outside of the instances; 0 while it is unknown, or too little
// to tell.
func (x *Predictor) Path() float64 { return x.path }

// SetPath predicts everything again that a new path has a part in.
func (x *Predictor) SetPath(path float64) {
	if path == x.path {
		return
	}
	x.path = path
	for _, p := range x.pools.All() {
		if p.IsReady() {
			x.reset(p, x.opened[p])
		}
	}
}

// MeasuredPath estimates the path (queuesim.Curve) from what little disturbed trials with the highest request rates tell;
// false as long as none does.
func (x *Predictor) MeasuredPath() (float64, bool) {
	type sample struct{ rate, path float64 }
	var samples []sample
	most, n := 0.0, x.tuning.Path
	for _, p := range x.pools.All() {
		if !p.IsReady() {
			continue
		}
		for _, h := range p.Histories() {
			if rate, path, ok := x.pathOf(p, h.Measurement); ok {
				samples, most = append(samples, sample{rate, path}), max(most, rate)
			}
		}
	}
	var paths []float64
	for _, s := range samples {
		if s.rate >= n.Busy*most {
			paths = append(paths, s.path)
		}
	}
	if len(paths) == 0 {
		return 0, false
	}
	slices.Sort(paths)
	return math.Exp(n.Step * math.Round(math.Log(paths[len(paths)/n.Undisturbed])/n.Step)), true
}

// pathOf is the request rate of windows, and the processor time in seconds that a request takes outside of the instances of
// a pool: what engine and clients used less what the instances computed, by their service times, since beside others they
// take longer without computing more. It is false where that cannot be told, as of a server on another machine.
func (x *Predictor) pathOf(p *pools.Pool, m measure.Measurement) (rate, path float64, ok bool) {
	used, computed, duration, requests := 0.0, 0.0, 0.0, 0
	curve := x.opened[p].curve
	for _, w := range m.Windows {
		if w.EngineCPU == 0 || w.ClientCPU == 0 || w.Server.Executions == 0 {
			return 0, 0, false
		}
		used += (w.EngineCPU + w.ClientCPU).Seconds()
		batch := max(int(math.Round(w.Server.MeanBatch())), 1)
		computed += float64(p.Threads()*w.Server.Executions) * curve.Time(batch, 1, p.Instances())
		requests += w.Requests
		duration += w.Duration.Seconds()
	}
	if requests == 0 || used-computed < x.tuning.Path.LeastShare*used {
		return 0, 0, false
	}
	return float64(requests) / duration, (used - computed) / float64(requests), true
}

// passable is the most that can pass to the server, in inferences/s.
func (x *Predictor) passable() float64 {
	if x.path == 0 || x.cores == 0 {
		return math.Inf(1)
	}
	return float64(x.cores*x.pools.ClientBatch()) / x.path
}
