package predict

import (
	"math"

	"tuner/search/guided/pools"
	"tuner/search/queuesim"
)

// Forecast is the prediction for an unopened engine.
type Forecast struct {
	Curve     queuesim.ServiceCurve
	Deviation float64 // standard deviation of its times' logarithm
	Last      int     // largest size of the curves behind it
}

// observation is a measured service curve.
type observation struct {
	engine  *pools.Engine
	curve   queuesim.ServiceCurve
	machine int // machine of the measurement: 0 this one, others from 1
}

// Observe adds a service curve of an engine that was measured on another machine. The first of
// these is 1.
func (x *Predictor) Observe(e *pools.Engine, c queuesim.ServiceCurve, machine int) {
	x.foreign = append(x.foreign, observation{e, c, machine})
}

// observations lists the service curves for forecasts, those of this machine first. The others
// carry no information without a curve of this machine for comparison.
func (x *Predictor) observations() []observation {
	var list []observation
	for _, e := range x.pools.Engines() {
		if e.IsOpen() {
			list = append(list, observation{engine: e, curve: e.Alone().Curve()})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return append(list, x.foreign...)
}

// engineCovariance returns the covariance of two engines' log service times. Each engine knob has
// its own effect, and each engine a rest.
func (x *Predictor) engineCovariance(a, b *pools.Engine) float64 {
	k := x.tuning.Engines.Common
	others := b.Values()
	for i, v := range a.Values() {
		if v == others[i] {
			k += x.tuning.Engines.Effect
		}
	}
	if a == b {
		k += x.tuning.Engines.Rest
	}
	return k
}

// covariance returns the covariance of two observations. Times on another machine are those of this
// one times three factors. There is a common one, one for each value of a knob, and one for each
// engine.
func (x *Predictor) covariance(a, b observation) float64 {
	k := x.engineCovariance(a.engine, b.engine)
	if a.machine != b.machine || a.machine == 0 {
		return k
	}
	n := x.tuning.Engines
	k += n.Common
	others := b.engine.Values()
	for i, v := range a.engine.Values() {
		if v == others[i] {
			k += n.Rest
		}
	}
	if a.engine == b.engine {
		k += n.Rest
	}
	return k
}

// ForecastEngines predicts the curves of all unopened engines from the known ones: for each size
// the best linear prediction of the logarithm.
func (x *Predictor) ForecastEngines() {
	known := x.observations()
	x.forecasts = make([]Forecast, len(x.pools.Engines()))
	if len(known) == 0 {
		return
	}
	factor := make([][]float64, len(known))
	for i, a := range known {
		factor[i] = make([]float64, i+1)
		for j := range factor[i] {
			factor[i][j] = x.covariance(a, known[j])
		}
	}
	cholesky(factor)
	for _, e := range x.pools.Engines() {
		if entry := e.EntryPool(); entry != nil && !e.IsOpen() {
			x.forecasts[e.Index()] = x.forecast(e, known, factor, x.pools.Sizes(entry))
		}
	}
}

// forecast returns the forecast of one engine. The common mean of known service times is taken from
// the first, with which the others are compared.
func (x *Predictor) forecast(e *pools.Engine, known []observation, factor [][]float64, sizes []int) Forecast {
	k := make([]float64, len(known))
	for i, o := range known {
		k[i] = x.covariance(o, observation{engine: e})
	}
	reduced := append([]float64(nil), k...)
	forward(factor, reduced)
	f := Forecast{Deviation: math.Sqrt(max(x.engineCovariance(e, e)-dot(reduced, reduced), 0))}
	weights := solve(factor, k)
	first := known[0].curve
	for _, o := range known {
		f.Last = max(f.Last, o.curve.Sizes[len(o.curve.Sizes)-1])
	}
	f.Curve = queuesim.ServiceCurve{Sizes: sizes, Alone: make([]float64, len(sizes)), Overhead: first.Overhead, Spread: first.Spread}
	for i, size := range sizes {
		base, sum := math.Log(first.Time(size, 1, 1)), 0.0
		for j, o := range known {
			if o.machine == 0 {
				f.Curve.Overhead = min(f.Curve.Overhead, o.curve.Overhead)
			}
			sum += weights[j] * (math.Log(o.curve.Time(size, 1, 1)) - base)
		}
		f.Curve.Alone[i] = math.Exp(base + sum)
	}
	return f
}

// Forecast returns the known, or else predicted, service times of an engine; false without any.
func (x *Predictor) Forecast(e *pools.Engine) (f Forecast, ok bool) {
	switch {
	case e.IsOpen():
		f.Curve, f.Last = e.Alone().Curve(), e.Alone().Largest()
	case x.forecasts != nil && e.EntryPool() != nil:
		f = x.forecasts[e.Index()]
	}
	return f, len(f.Curve.Sizes) > 0
}
