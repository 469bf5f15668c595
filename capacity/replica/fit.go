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
	// checkRequests are those of a simulation whose figures are shown. At 200 requests/s they take 100 s, in which the
	// machine's speed changes a hundred times. Doubled, the p99 is known to a factor of 0.7 of its error
	checkRequests = 20000
	fitRounds     = 3 // of scaling the times
	// saturation is the number of requests in flight for each inference that can be in instances,
	// with which a closed loop shows the capacity
	saturation        = 4
	saturatedRequests = 3000
	// sharedWakes is the number of requests in flight for each path's time that waking a thread takes:
	// among so many, it takes a fiftieth of the path
	sharedWakes = 50
	mostClients = 2000 // for that: no wake takes forty times the path
	// mostScale bounds the correction of the times. A larger one says that the curve is of another
	// server.
	mostScale = 3.0
	// spreadRounds is how often the steps between the tried spreads are halved: from a factor of 2 to one of 1.2. Half
	// of that is 3 % of the 99th percentile of a spread of 0.15, and 12 % with none.
	spreadRounds = 2
)

// usageLoads are the rates of Replica.Usage as shares of the capacity.
func usageLoads() []float64 { return []float64{0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 0.97} }

// spreads are the deviations of a batch's time that are tried. queuesim has none below 0.01, and a
// server above 0.6 has two kinds of batches. A request on the path waits for threads that the kernel wakes
// and moves, which varies more.
func spreads(hasPath bool) []float64 {
	list := []float64{0.02, 0.05, 0.1, 0.2, 0.35, 0.6}
	if hasPath {
		list = append(list, 0.8, 1)
	}
	return list
}

// fitter scales a replica until its simulation is like the measured loads.
type fitter struct {
	*Replica
	points    []result.Point
	seed      uint64
	simulator queuesim.Simulator
	measured  queuesim.ServiceCurve // as the campaign has it

	// factors of its times

	alone, crowded, path float64
}

// fit gives the times of batches the shape that the server showed. It scales them until they are the server's, and the
// path until the mean latencies are. It takes the spread whose 99th percentiles are the nearest. Then it computes the capacity, and
// checks some of the points.
//
// All that is fitted are means over windows and percentiles of closed loops, in which requests wait for each other. They
// hardly change with how long the machine keeps its speed. So the speed is constant meanwhile, and is then taken off the spread.
func (x *Replica) fit(points, checks []result.Point, seed uint64) {
	x.Curve = shaped(x.Curve, points, x.Batcher)
	speed := x.Curve.Speed
	x.Curve.Speed = measure.Speed{}
	if x.Curve.Spread == 0 {
		x.Curve.Spread = spreads(false)[2]
	}
	x.setSpread(x.Curve.Spread)
	f := fitter{Replica: x, points: points, seed: seed, measured: x.Curve, alone: 1, crowded: 1, path: 1}
	f.rescale()
	x.setSpread(f.bestSpread())
	f.rescale()
	x.Capacity = f.saturated()
	x.Usage = f.usage()
	x.Curve.Speed = speed
	x.setSpread(math.Sqrt(max(x.Curve.Spread*x.Curve.Spread-speed.Deviation*speed.Deviation, spreads(false)[0]*spreads(false)[0])))
	for _, p := range checks {
		x.Checks = append(x.Checks, Check{Load: p.Load, Measured: p.Values[measure.LatencyP99].Value, Simulated: f.simulate(p, checkRequests).P99})
	}
}

// bestSpread returns the spread whose simulated 99th percentiles are the nearest to the measured ones: the best of
// a list, and then of its neighbours at ever smaller distances.
func (f *fitter) bestSpread() float64 {
	list := spreads(f.Curve.Path > 0)
	best, least := f.Curve.Spread, math.Inf(1)
	try := func(spread float64) {
		f.setSpread(spread)
		miss := 0.0
		for _, p := range f.points {
			if p99 := p.Values[measure.LatencyP99].Value; p99 > 0 {
				miss += math.Abs(math.Log(f.simulate(p, fitRequests).P99 / p99))
			}
		}
		if miss < least {
			best, least = spread, miss
		}
	}
	for _, spread := range list {
		try(spread)
	}
	step := 2.0
	for range spreadRounds {
		step = math.Sqrt(step)
		middle := best
		try(max(middle/step, list[0]))
		try(min(middle*step, list[len(list)-1]))
	}
	return best
}

// setSpread sets the spread of batches and of the path: the same kernel disturbs both.
func (x *Replica) setSpread(spread float64) {
	x.Curve.Spread = spread
	if x.Curve.Path > 0 {
		x.Curve.PathSpread = spread
	}
}

func (f *fitter) simulate(p result.Point, requests int) queuesim.Result {
	load := p.Load
	load.BatchSize = f.Rows
	return f.simulator.Simulate(f.Batcher, f.Curve, load, queuesim.Options{Requests: requests, Seed: f.seed})
}

// rescale scales the times until the simulated batches take as long as the measured ones, and the path until
// the mean latencies are the measured ones. A lone request shows the times of an instance beside idle ones,
// and the overhead with the wakings on the path. The higher loads show the rest.
func (f *fitter) rescale() {
	high, low := f.points, f.lone()
	if low != nil {
		high = high[1:]
	}
	for range fitRounds {
		crowded := f.ratio(high, f.ofBatches)
		alone := crowded
		switch {
		case len(f.measured.Crowded) == 0: // one curve for all loads
			alone = f.ratio(f.points, f.ofBatches)
		case low != nil && low.Load.Concurrency == 1:
			alone = f.ratio(f.points[:1], f.ofBatches)
		}
		f.alone, f.crowded = bounded(f.alone*alone), bounded(f.crowded*crowded)
		f.scaleTimes()
		f.path = bounded(f.path * f.ratio(high, f.ofLatencies))
		f.Curve.Path = f.path * f.measured.Path
		if low != nil {
			least, most := f.Curve.Path, mostScale*max(f.measured.Overhead, f.measured.Path)
			missing := low.Values[measure.LatencyAvg].Value - f.simulate(*low, fitRequests).Mean
			f.Curve.Overhead = max(least, min(f.Curve.Overhead+missing, most))
		}
	}
}

// bounded returns a factor within mostScale.
func bounded(factor float64) float64 { return min(max(factor, 1/mostScale), mostScale) }

// scaleTimes applies the factors to the times. A batch never takes longer beside idle instances than beside busy ones.
func (f *fitter) scaleTimes() {
	f.Curve.Alone, f.Curve.Crowded = scaled(f.measured.Alone, f.alone), scaled(f.measured.Crowded, f.crowded)
	for i, longest := range f.Curve.Crowded {
		f.Curve.Alone[i] = min(f.Curve.Alone[i], longest)
	}
}

// lone returns the lowest measured load if its requests hardly meet, and others do; nil otherwise.
func (f *fitter) lone() *result.Point {
	if f.measured.Overhead == 0 && f.measured.Path == 0 || len(f.points) < 2 {
		return nil
	}
	if n := f.points[0].Load.Concurrency; n < 1 || n > max(1, f.Curve.Cores) {
		return nil
	}
	return &f.points[0]
}

// ratio returns the mean ratio of something measured to its simulation, over some points; 1 without any.
func (f *fitter) ratio(points []result.Point, of func(result.Point, queuesim.Result) float64) float64 {
	sum, n := 0.0, 0.0
	for _, p := range points {
		if ratio := of(p, f.simulate(p, fitRequests)); ratio > 0 && !math.IsInf(ratio, 0) {
			sum, n = sum+math.Log(ratio), n+1
		}
	}
	return math.Exp(sum / max(n, 1))
}

// ofBatches returns the ratio of the measured time of batches to the simulated one, at equal sizes. Latencies
// show it only if the overhead and the path are right. They must do where nothing else is known.
func (f *fitter) ofBatches(p result.Point, r queuesim.Result) float64 {
	mean, seconds, _, ok := batchOf(p, f.Batcher)
	if !ok {
		return f.ofLatencies(p, r)
	}
	full := func(batch float64) float64 { return f.Curve.MeanTime(batch, f.Batcher.Instances, f.Batcher.Instances) }
	return seconds / full(mean) / (r.BatchTime() / full(r.MeanBatch))
}

// ofLatencies returns the ratio of the measured mean latency to the simulated one.
func (f *fitter) ofLatencies(p result.Point, r queuesim.Result) float64 {
	return p.Values[measure.LatencyAvg].Value / r.Mean
}

// saturated returns the requests/s of a closed loop with so many clients that all instances are busy, or
// that waking threads takes no more than a fiftieth of the path.
func (f *fitter) saturated() float64 {
	clients := max(1, saturation*f.Batcher.Instances*f.Batcher.MaxBatch/f.Rows)
	if f.Curve.Path > 0 {
		clients += int(math.Ceil(min(sharedWakes*f.Curve.Overhead/f.Curve.Path, mostClients)))
	}
	full := measure.Load{Concurrency: clients, BatchSize: f.Rows}
	return f.simulator.Simulate(f.Batcher, f.Curve, full, queuesim.Options{Requests: saturatedRequests, Seed: f.seed}).Throughput / float64(f.Rows)
}

// usage returns the processor time at rates of a service. A campaign measures it in closed loops, most of
// them near the capacity, where batches are large. At lower rates they are small, and a request takes more
// processor time. So it is that of the simulated busy instances and of the path, scaled to what was measured.
// nil: it was not measured.
func (f *fitter) usage() (list []Usage) {
	cores, worked := 0.0, 0.0
	for _, p := range f.points {
		if c := p.Values[measure.CPU].Value; c > 0 {
			cores += c
			worked += f.worked(f.simulate(p, fitRequests))
		}
	}
	if cores == 0 || worked == 0 {
		return nil
	}
	for _, share := range usageLoads() {
		rate := share * f.Capacity
		r := f.simulator.Simulate(f.Batcher, f.Curve, measure.Load{RequestRate: rate, BatchSize: f.Rows}, queuesim.Options{Requests: fitRequests, Seed: f.seed})
		list = append(list, Usage{rate, min(f.worked(r)*cores/worked, f.Cores)})
	}
	return list
}

// worked returns the mean number of busy instances, with the path as some more.
func (f *fitter) worked(r queuesim.Result) float64 {
	return r.Busy + r.Path*r.Throughput/float64(f.Rows)/float64(max(f.Curve.Threads, 1))
}

// scaled returns times that are longer by a factor; nil without any.
func scaled(times []float64, factor float64) []float64 {
	if times == nil {
		return nil
	}
	list := make([]float64, len(times))
	for i, t := range times {
		list[i] = factor * t
	}
	return list
}
