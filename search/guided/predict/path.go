package predict

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search/guided/pools"
	"tuner/search/queuesim"
)

// Path returns the processor time in seconds that a request takes outside the instances; 0 if it is
// unknown, or too little to measure.
func (x *Predictor) Path() float64 { return x.path }

// SetPath sets the path and computes all predictions again that depend on it.
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

// MeasuredPath estimates the path (queuesim.ServiceCurve) from the least disturbed trials with the
// highest request rates: 0 if it is too little to measure in them. It returns false without any.
func (x *Predictor) MeasuredPath() (float64, bool) {
	type sample struct{ rate, path float64 }
	var samples []sample
	most, n := 0.0, x.tuning.Path
	for _, p := range x.pools.All() {
		if !p.IsReady() {
			continue
		}
		for _, h := range p.Histories() {
			if rate, path, ok := x.pathOf(p, x.historyCurve(p, h), h.Measurement); ok {
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
	path := paths[len(paths)/n.Undisturbed]
	if path == 0 {
		return 0, true
	}
	return math.Exp(n.Step * math.Round(math.Log(path)/n.Step)), true
}

// historyCurve returns the service curve of the requests of a history.
func (x *Predictor) historyCurve(p *pools.Pool, h *pools.History) queuesim.ServiceCurve {
	if cell, ok := p.Cell(h); ok {
		return x.curveOf(cell)
	}
	return x.opened[p].curve
}

// pathOf returns the request rate of windows, and the processor time in seconds that a request
// takes outside a pool's instances: 0 if it is too little to measure. It subtracts the computing time
// of the instances from that of engine and clients. The former comes from their service times, since
// a batch under load also waits for cores on which requests pass the path. It returns false if the
// path is unknown, as for a server on another machine.
func (x *Predictor) pathOf(p *pools.Pool, curve queuesim.ServiceCurve, m measure.Measurement) (rate, path float64, ok bool) {
	used, computed, duration, requests := 0.0, 0.0, 0.0, 0
	for _, w := range m.Windows {
		if w.EngineCPU == 0 || w.ClientCPU == 0 || w.Server.Executions == 0 {
			return 0, 0, false
		}
		used += (w.EngineCPU + w.ClientCPU).Seconds()
		executions := float64(w.Server.Executions)
		computed += executions * curve.Computed(w.Server.MeanBatch(), executions/w.Duration.Seconds(), p.Instances())
		requests += w.Requests
		duration += w.Duration.Seconds()
	}
	path, _ = queuesim.PathOf(used, computed, float64(requests))
	return float64(requests) / duration, path, requests > 0
}

// passable returns the highest throughput that the path allows, in inferences/s.
func (x *Predictor) passable() float64 {
	if x.path == 0 || x.cores == 0 {
		return math.Inf(1)
	}
	return float64(x.cores*x.pools.ClientBatch()) / x.path
}
