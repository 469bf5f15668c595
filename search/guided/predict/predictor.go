// Package predict predicts the results of loads on pools before any measurement under them.
//
// Its inputs are the service curves of opened pools from package pools. Its outputs are small
// values: the simulation of a cell's queue, bounds of sets of cells, and forecasts of unopened
// engines and pools. It does not correct by trials under load, which package belief does.
package predict

import (
	"math"
	"slices"

	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/guided/tuning"
	"tuner/search/queuesim"
)

// Predictor predicts for the pools of a space. Its owner reports changes of service times.
type Predictor struct {
	space     search.Space
	load      search.LoadAxis
	cores     int
	seed      uint64
	within    []float64 // s, limits of the goal's goodputs
	ranks     []float64 // of the arrivals of a trace (ranksOf)
	pools     *pools.Pools
	tuning    tuning.Tuning
	simulator queuesim.Simulator

	// path: s of processor time that a request takes outside the instances; 0 unknown, or too
	// little to measure
	path       float64
	foreign    []observation
	forecasts  []Forecast // by engine; nil until an engine was opened
	contention map[*pools.Pool]Contention
	opened     map[*pools.Pool]*opened
}

// opened holds the predictions of a pool with known service times.
type opened struct {
	curve   queuesim.ServiceCurve
	kinds   []queuesim.ServiceCurve                // of the measured kinds; nil for requests of one shape
	padded  map[search.Value]queuesim.ServiceCurve // by padding
	outline Outline
	results map[pools.Setting]queuesim.Result
}

// ranksOf returns the ranks of a trace's requests (queuesim.Options); nil if it has no kinds.
func ranksOf(f search.Facts) []float64 {
	if f.Trace == nil || f.Trace.Kinds == nil {
		return nil
	}
	middles, before := make([]float64, len(f.Mix)), 0.0
	for i, k := range f.Mix {
		middles[i] = before + k.Share/2
		before += k.Share
	}
	ranks := make([]float64, len(f.Trace.Kinds))
	for i, kind := range f.Trace.Kinds {
		ranks[i] = middles[kind]
	}
	return ranks
}

// New returns a predictor without service times.
func New(s search.Settings, p *pools.Pools, n tuning.Tuning) *Predictor {
	return &Predictor{
		space: s.Space, load: s.Space.Load, cores: s.Space.Facts.Cores, seed: s.Seed, within: s.Goal.Within(), ranks: ranksOf(s.Space.Facts), pools: p, tuning: n,
		contention: map[*pools.Pool]Contention{}, opened: map[*pools.Pool]*opened{},
	}
}

// open predicts a pool from new or changed service times.
func (x *Predictor) open(p *pools.Pool) {
	curve := p.Engine().Alone().Curve()
	if p.Instances() > 1 {
		alone := curve
		curve = p.Together().Curve()
		curve.Overhead, curve.Spread = alone.Overhead, alone.Spread
		curve.Crowded = curve.Alone
		curve.Alone = make([]float64, len(curve.Sizes))
		for i, size := range curve.Sizes {
			curve.Alone[i] = alone.Time(size, 1, 1)
		}
	}
	o := &opened{curve: curve, kinds: x.kindCurves(p, curve.Sizes)}
	o.curve.Kinds = x.kinds(p, o.kinds, curve.Sizes, x.space.Facts.Mix)
	x.opened[p] = o
	x.reset(p, o)
}

// kindCurves returns the times of the measured kinds' batches of the given sizes.
func (x *Predictor) kindCurves(p *pools.Pool, sizes []int) []queuesim.ServiceCurve {
	alone, together := p.Engine().Alone().Kinds(), p.Together().Kinds()
	curves := make([]queuesim.ServiceCurve, len(alone))
	for i, of := range alone {
		curves[i].Sizes = sizes
		for _, size := range sizes {
			curves[i].Alone = append(curves[i].Alone, of.Time(size, 1, 1))
			if p.Instances() > 1 {
				curves[i].Crowded = append(curves[i].Crowded, together[i].Time(size, 1, 1))
			}
		}
	}
	return curves
}

// kinds returns the times of all kinds of a mix, from those of the measured kinds. None is shorter
// than the smallest kind's.
func (x *Predictor) kinds(p *pools.Pool, measured []queuesim.ServiceCurve, sizes []int, mix []search.Kind) []queuesim.Kind {
	if len(measured) == 0 {
		return nil
	}
	anchors := p.Engine().Alone().Anchors()
	kinds := make([]queuesim.Kind, len(mix))
	for i, k := range mix {
		kinds[i].Share = k.Share
		coefficients := anchors.Coefficients(k.Elements)
		sum := func(times func(queuesim.ServiceCurve) []float64) []float64 {
			totals := make([]float64, len(sizes))
			for a, curve := range measured {
				for at, seconds := range times(curve) {
					totals[at] += coefficients[a] * seconds
				}
			}
			for at, least := range times(measured[0]) { // noise may make a line fall
				totals[at] = max(totals[at], least)
			}
			return totals
		}
		kinds[i].Alone = sum(func(c queuesim.ServiceCurve) []float64 { return c.Alone })
		if p.Instances() > 1 {
			kinds[i].Crowded = sum(func(c queuesim.ServiceCurve) []float64 { return c.Crowded })
		}
	}
	return kinds
}

// reset discards the predictions of a pool after a change of the path or of its service times.
func (x *Predictor) reset(p *pools.Pool, o *opened) {
	o.curve.Path, o.curve.Cores, o.curve.Threads = x.path, x.cores, p.Threads()
	o.outline = x.measuredOutline(p, o.curve)
	o.results, o.padded = map[pools.Setting]queuesim.Result{}, map[search.Value]queuesim.ServiceCurve{}
}

// curveOf returns the service curve of a cell of an opened pool: that of its padded requests.
func (x *Predictor) curveOf(c pools.Cell) queuesim.ServiceCurve {
	o, padding := x.opened[c.Pool], c.Batcher().Padding
	mix, isPadded := x.space.Facts.Padded[padding]
	if !isPadded || len(o.kinds) == 0 {
		return o.curve
	}
	curve, known := o.padded[padding]
	if !known {
		curve = o.curve
		curve.Kinds = x.kinds(c.Pool, o.kinds, curve.Sizes, mix)
		mean := func(times func(queuesim.Kind) []float64) []float64 {
			means := make([]float64, len(curve.Sizes))
			for _, k := range curve.Kinds {
				for i, seconds := range times(k) {
					means[i] += k.Share * seconds
				}
			}
			return means
		}
		curve.Alone = mean(func(k queuesim.Kind) []float64 { return k.Alone })
		if c.Pool.Instances() > 1 {
			curve.Crowded = mean(func(k queuesim.Kind) []float64 { return k.Crowded })
		}
		o.padded[padding] = curve
	}
	return curve
}

// Curve returns the service curve of an opened pool.
func (x *Predictor) Curve(p *pools.Pool) queuesim.ServiceCurve { return x.opened[p].curve }

// Outline returns the bounds of an opened pool's cells.
func (x *Predictor) Outline(p *pools.Pool) Outline { return x.opened[p].outline }

// Simulate predicts a cell of an opened pool, once.
func (x *Predictor) Simulate(c pools.Cell) queuesim.Result {
	o := x.opened[c.Pool]
	r, known := o.results[c.Setting]
	if !known {
		r = x.simulator.Simulate(c.Batcher().Queue, x.curveOf(c), x.load.At(c.Level), x.extent(c.Level))
		o.results[c.Setting] = r
	}
	return r
}

// mostSimulated bounds the requests of a simulation whose arrivals are not Poisson. More take too
// long for thousands of cells.
const mostSimulated = 20_000

// extent returns the options of a simulation at a level. Arrivals with a period are simulated for
// whole periods.
func (x *Predictor) extent(level float64) queuesim.Options {
	o := queuesim.Options{Seed: x.seed, Within: x.within}
	if !x.load.Rate || x.load.Arrivals.IsPoisson() {
		return o
	}
	// an error means that there is no schedule, so that nothing is measured either
	if schedule, requests, err := x.load.Arrivals.Course(level, x.seed, mostSimulated); err == nil {
		o.Arrivals, o.Requests, o.Ranks = schedule, requests, x.ranks
	}
	return o
}

// Demand returns a load's demand: inferences in flight in a closed loop, or inferences/s.
func (x *Predictor) Demand(level float64) (inFlight, rate float64) {
	client := float64(x.pools.ClientBatch())
	if x.load.Rate {
		return math.Inf(1), level * client
	}
	return level * client, math.Inf(1)
}

// IsSaturated reports whether enough requests for a batch always wait at a cell. Requests on the
// path to the server do not wait; on a long path they may be the majority.
func (x *Predictor) IsSaturated(c pools.Cell) bool {
	inFlight, _ := x.Demand(c.Level)
	return x.path == 0 && !math.IsInf(inFlight, 1) && inFlight > float64(2*c.Batcher().Queue.MaxBatch*c.Pool.Instances())
}

// Learn adds a service trial to a pool, and updates the predictions that depend on it.
func (x *Predictor) Learn(p *pools.Pool, e search.Event) {
	p.RecordService(e, x.pools.ClientBatch())
	if e.Trial.Load.Concurrency != 1 {
		x.Refresh(p)
	} else {
		for _, q := range p.Engine().Pools() {
			x.Refresh(q)
		}
		x.ForecastEngines()
	}
	x.ForecastContention()
}

// Refresh makes a pool ready when its service times are known, and updates its prediction when they
// have changed.
func (x *Predictor) Refresh(p *pools.Pool) {
	if x.pools.Open(p) {
		x.open(p)
	}
}

// Extend predicts the engines that were added since the last one was opened.
func (x *Predictor) Extend() {
	if x.forecasts != nil {
		x.ForecastEngines()
		x.ForecastContention()
	}
}

// ready returns the ready pools of several instances.
func (x *Predictor) ready() []*pools.Pool {
	return slices.DeleteFunc(slices.Clone(x.pools.All()), func(p *pools.Pool) bool { return !p.IsReady() || p.Instances() == 1 })
}
