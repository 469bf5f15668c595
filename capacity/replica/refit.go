package replica

import (
	"tuner/measure"
	"tuner/report/result"
	"tuner/search/queuesim"
)

// Shown has the latencies that clients of a closed loop saw of a server.
type Shown struct {
	Load measure.Load
	Mean float64 // s, of the latency
	P99  float64 // s

	// of the executed batches; 0: unknown

	MeanBatch float64 // mean size
	BatchTime float64 // s, mean time in an instance
	Batches   []measure.BatchTime
}

// Refit returns the replica as a server on another machine has shown it, under loads that ascend. It is fitted to them
// as the plan's replica is to the campaign's. So a simulation of it differs from that server as much as one of the
// plan's replica does from its own. cores are the machine's, and threads those that an instance computes on.
func (x Replica) Refit(shown []Shown, cores, threads int, seed uint64) Replica {
	x.Cores, x.Curve.Cores, x.Curve.Threads, x.Checks = float64(cores), cores, threads, nil
	points := make([]result.Point, len(shown))
	for i, s := range shown {
		values := map[measure.Metric]result.Estimate{measure.LatencyAvg: {Value: s.Mean}, measure.LatencyP99: {Value: s.P99}}
		points[i] = result.Point{Load: s.Load, Sample: result.Sample{Values: values, MeanBatch: s.MeanBatch, BatchTime: s.BatchTime, Batches: s.Batches}}
	}
	f := fitter{Replica: &x, points: points, seed: seed}
	x.Curve = slowed(x.Curve, f.ratio(points, f.ofLatencies)) // the fit corrects what machines of one speed differ in
	x.fit(points, points, seed)
	return x
}

// slowed returns a curve all of whose times are longer by a factor.
func slowed(c queuesim.ServiceCurve, factor float64) queuesim.ServiceCurve {
	c.Alone, c.Crowded = scaled(c.Alone, factor), scaled(c.Crowded, factor)
	c.Overhead, c.Path = factor*c.Overhead, factor*c.Path
	return c
}
