// Package predict says what pools do with loads before anything is measured under them.
//
// Service curves of opened pools come in from package pools. Out go, as small values: the simulation of a cell's queue,
// bounds that no cell surpasses, and forecasts of engines and pools that were not opened. It corrects nothing by what trials
// under load show: that is package belief's.
package predict

import (
	"math"
	"slices"

	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/guided/tuning"
	"tuner/search/queuesim"
)

// Predictor predicts for the pools of a space. Its owner tells it when service times have changed.
type Predictor struct {
	load      search.LoadAxis
	cores     int
	seed      uint64
	pools     *pools.Pools
	tuning    tuning.Tuning
	simulator queuesim.Simulator

	path       float64 // s of processor time that a request takes outside of the instances; 0 unknown, or too little to tell
	foreign    []observation
	forecasts  []Forecast // by engine; nil until an engine was opened
	contention map[*pools.Pool]Contention
	opened     map[*pools.Pool]*opened
}

// opened is what is predicted of a pool whose service times are known.
type opened struct {
	curve   queuesim.Curve
	outline Outline
	results map[pools.Setting]queuesim.Result
}

// New returns a predictor that knows no service times.
func New(s search.Settings, p *pools.Pools, n tuning.Tuning) *Predictor {
	return &Predictor{
		load: s.Space.Load, cores: s.Space.Facts.Cores, seed: s.Seed, pools: p, tuning: n,
		contention: map[*pools.Pool]Contention{}, opened: map[*pools.Pool]*opened{},
	}
}

// Open predicts a pool from service times that are known now, or that have changed.
func (x *Predictor) Open(p *pools.Pool) {
	curve := p.Engine().Alone().Curve(x.tuning.Service.LeastSpread)
	if p.Instances() > 1 {
		alone := curve
		curve = p.Together().Curve(x.tuning.Service.LeastSpread)
		curve.Overhead, curve.Spread = alone.Overhead, alone.Spread
		curve.Crowded = curve.Alone
		curve.Alone = make([]float64, len(curve.Sizes))
		for i, size := range curve.Sizes {
			curve.Alone[i] = alone.Time(size, 1, 1)
		}
	}
	o := &opened{curve: curve}
	x.opened[p] = o
	x.reset(p, o)
}

// reset forgets what was predicted of a pool with another path to the server, or other service times.
func (x *Predictor) reset(p *pools.Pool, o *opened) {
	o.curve.Path, o.curve.Cores, o.curve.Threads = x.path, x.cores, p.Threads()
	o.outline = x.measuredOutline(p, o.curve)
	o.results = map[pools.Setting]queuesim.Result{}
}

// Curve is the service curve of a pool that was opened.
func (x *Predictor) Curve(p *pools.Pool) queuesim.Curve { return x.opened[p].curve }

// Outline bounds the cells of a pool that was opened.
func (x *Predictor) Outline(p *pools.Pool) Outline { return x.opened[p].outline }

// Simulate predicts a cell of a pool that was opened, once.
func (x *Predictor) Simulate(c pools.Cell) queuesim.Result {
	o := x.opened[c.Pool]
	r, known := o.results[c.Setting]
	if !known {
		r = x.simulator.Simulate(c.Batcher().Queue, o.curve, x.load.At(c.Level), queuesim.Options{Seed: x.seed})
		o.results[c.Setting] = r
	}
	return r
}

// Demand is what a load asks of a pool: inferences in flight in a closed loop, or inferences/s.
func (x *Predictor) Demand(level float64) (inFlight, rate float64) {
	client := float64(x.pools.ClientBatch())
	if x.load.Rate {
		return math.Inf(1), level * client
	}
	return level * client, math.Inf(1)
}

// IsSaturated reports whether there are always enough requests waiting for a batch at a cell. Those on the path to the
// server do not wait: where it takes long, they may be most.
func (x *Predictor) IsSaturated(c pools.Cell) bool {
	inFlight, _ := x.Demand(c.Level)
	return x.path == 0 && !math.IsInf(inFlight, 1) && inFlight > float64(2*c.Batcher().Queue.MaxBatch*c.Pool.Instances())
}

// Extend predicts what engines do that were met since the last one was opened.
func (x *Predictor) Extend() {
	if x.forecasts != nil {
		x.ForecastEngines()
		x.ForecastContention()
	}
}

// ready are the pools of several instances that are ready.
func (x *Predictor) ready() []*pools.Pool {
	return slices.DeleteFunc(slices.Clone(x.pools.All()), func(p *pools.Pool) bool { return !p.IsReady() || p.Instances() == 1 })
}
