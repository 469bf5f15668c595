package replica

import (
	"math"

	"tuner/measure"
	"tuner/report/result"
	"tuner/search/queuesim"
)

// Constants of the fit.
const (
	fitRequests = 1500 // of each simulation; the 99th percentile then has 15 above it
	fitRounds   = 3    // of scaling the times
	// saturation is the number of requests in flight for each inference that can be in instances,
	// with which a closed loop shows the capacity
	saturation        = 4
	saturatedRequests = 3000
	// mostScale bounds the correction of the times. A larger one says that the curve is of another
	// server.
	mostScale = 3.0
)

// usageLoads are the rates of Replica.Usage as shares of the capacity.
func usageLoads() []float64 { return []float64{0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 0.97} }

// spreads are the deviations of a batch's time that are tried. queuesim has none below 0.01, and a
// server above 0.6 has two kinds of batches.
func spreads() []float64 { return []float64{0.02, 0.05, 0.1, 0.2, 0.35, 0.6} }

// fit scales the times of batches until the simulated mean latencies are the measured ones, and takes
// the spread whose 99th percentiles are the nearest. Then it computes the capacity.
func (x *Replica) fit(points []result.Point, seed uint64) {
	var s queuesim.Simulator
	if x.Curve.Spread == 0 {
		x.Curve.Spread = spreads()[2]
	}
	measured := x.Curve
	scale := 1.0
	simulate := func(p result.Point) queuesim.Result {
		load := p.Load
		load.BatchSize = x.Rows
		return s.Simulate(x.Batcher, x.Curve, load, queuesim.Options{Requests: fitRequests, Seed: seed})
	}
	rescale := func() {
		for range fitRounds {
			sum, weight := 0.0, 0.0
			for _, p := range points {
				simulated := simulate(p).Mean
				if simulated > 0 {
					sum += math.Log(p.Values[measure.LatencyAvg].Value / simulated)
					weight++
				}
			}
			if weight == 0 {
				return
			}
			scale = min(max(scale*math.Exp(sum/weight), 1/mostScale), mostScale)
			x.Curve.Alone, x.Curve.Crowded = scaled(measured.Alone, scale), scaled(measured.Crowded, scale)
		}
	}
	rescale()
	best, least := x.Curve.Spread, math.Inf(1)
	for _, spread := range spreads() {
		x.Curve.Spread = spread
		miss := 0.0
		for _, p := range points {
			if p99 := p.Values[measure.LatencyP99].Value; p99 > 0 {
				miss += math.Abs(math.Log(simulate(p).P99 / p99))
			}
		}
		if miss < least {
			best, least = spread, miss
		}
	}
	x.Curve.Spread = best
	rescale()
	for _, p := range points {
		x.Checks = append(x.Checks, Check{Load: p.Load, Measured: p.Values[measure.LatencyP99].Value, Simulated: simulate(p).P99})
	}
	full := measure.Load{Concurrency: max(1, saturation*x.Batcher.Instances*x.Batcher.MaxBatch/x.Rows), BatchSize: x.Rows}
	x.Capacity = s.Simulate(x.Batcher, x.Curve, full, queuesim.Options{Requests: saturatedRequests, Seed: seed}).Throughput / float64(x.Rows)
	x.Usage = x.usage(points, seed)
}

// usage returns the processor time at rates of a service. A campaign measures it in closed loops, most of
// them near the capacity, where batches are large. At lower rates they are small, and a request takes more
// processor time. So it is that of the simulated busy instances, scaled to what was measured. nil: it was not
// measured.
func (x *Replica) usage(points []result.Point, seed uint64) (list []Usage) {
	var s queuesim.Simulator
	cores, busy := 0.0, 0.0
	for _, p := range points {
		if c := p.Values[measure.CPU].Value; c > 0 {
			load := p.Load
			load.BatchSize = x.Rows
			cores += c
			busy += s.Simulate(x.Batcher, x.Curve, load, queuesim.Options{Requests: fitRequests, Seed: seed}).Busy
		}
	}
	if cores == 0 || busy == 0 {
		return nil
	}
	for _, share := range usageLoads() {
		rate := share * x.Capacity
		r := s.Simulate(x.Batcher, x.Curve, measure.Load{RequestRate: rate, BatchSize: x.Rows}, queuesim.Options{Requests: fitRequests, Seed: seed})
		list = append(list, Usage{rate, min(r.Busy*cores/busy, x.Cores)})
	}
	return list
}

func scaled(times []float64, factor float64) []float64 {
	list := make([]float64, len(times))
	for i, t := range times {
		list[i] = factor * t
	}
	return list
}
