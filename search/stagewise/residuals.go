package stagewise

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
)

// The error of a prediction, the logarithm of a figure over its simulation, is a Gaussian process with mean
// 0. Cells share its parts as far as they have these in common: the machine, the engine process of each
// stage, its option, and the whole configuration.

// trial has the measurements of a cell.
type trial struct {
	candidate   search.Candidate
	load        measure.Load
	measurement measure.Measurement
}

// residuals are the trials so far.
type residuals struct {
	deviations Deviations
	trials     []trial
	solved     map[measure.Metric]*solved // since the last trial
}

// solved are the errors of a metric, with the factor of their covariance.
type solved struct {
	cells   []errorAt
	factor  mat.Cholesky
	weights []float64 // the covariance's inverse times the errors
}

// errorAt is a cell with the error there.
type errorAt struct {
	c     combination
	level float64
	log   float64
}

func newResiduals(d Deviations) residuals { return residuals{deviations: d} }

func (r *residuals) add(t trial) {
	r.trials, r.solved = append(r.trials, t), nil
}

// at returns the expected error of a metric at a cell, and its variance.
func (r *residuals) at(x *Stagewise, c combination, level float64, m measure.Metric) (mean, variance float64) {
	scale := r.scale(m)
	variance = scale * scale * r.prior(c)
	s := r.solve(x, m)
	if len(s.cells) == 0 {
		return 0, variance
	}
	k := mat.NewVecDense(len(s.cells), nil)
	for i, e := range s.cells {
		k.SetVec(i, scale*scale*r.covariance(c, level, e.c, e.level))
		mean += k.AtVec(i) * s.weights[i]
	}
	var solution mat.VecDense
	if s.factor.SolveVecTo(&solution, k) == nil {
		variance -= mat.Dot(k, &solution)
	}
	const least = 1e-4
	return mean, max(variance, least)
}

// scale returns the factor of the deviations for a metric: a goodput depends on the tail of the latencies too.
func (r *residuals) scale(m measure.Metric) float64 {
	if info, _ := m.Info(); info.Unit == measure.Seconds || m.IsGoodput() {
		return r.deviations.Tail
	}
	return 1
}

// prior is the variance of an error before any trial. Times that are only expected add theirs, by their
// share of all times.
func (r *residuals) prior(c combination) float64 {
	d := r.deviations
	v := d.All*d.All + d.Whole*d.Whole
	for _, o := range c.options {
		share := o.lone / c.lone
		v += share*(d.Engine*d.Engine+d.Option*d.Option) + share*share*o.doubt*o.doubt
	}
	return v
}

// covariance of the errors at two cells.
func (r *residuals) covariance(a combination, at float64, b combination, bt float64) float64 {
	d := r.deviations
	v := d.All * d.All
	for i := range a.options {
		share := math.Sqrt(a.options[i].lone / a.lone * b.options[i].lone / b.lone)
		if a.options[i].pool.Engine() == b.options[i].pool.Engine() {
			v += share * d.Engine * d.Engine
		}
		if a.options[i].candidate.Key() == b.options[i].candidate.Key() {
			v += share * d.Option * d.Option
		}
	}
	if a.key == b.key {
		far := math.Log(at / bt)
		v += d.Whole * d.Whole * math.Exp(-far*far/2)
	}
	return v
}

// solve computes the errors of a metric once after each trial.
func (r *residuals) solve(x *Stagewise, m measure.Metric) *solved {
	if r.solved == nil {
		r.solved = map[measure.Metric]*solved{}
	}
	if known, ok := r.solved[m]; ok {
		return known
	}
	s := &solved{}
	r.solved[m] = s
	for _, t := range r.trials {
		c, known := x.combinationOf(t.candidate)
		if !known {
			continue
		}
		e, isMeasured := t.measurement.Estimate(m)
		log, isPredicted := x.value(x.simulate(c, t.load.Level()), m)
		if isMeasured && isPredicted && (e.Value > 0 || m.IsGoodput()) {
			s.cells = append(s.cells, errorAt{c, t.load.Level(), posterior.LogIn(t.measurement, m, e.Value) - log})
		}
	}
	n := len(s.cells)
	if n == 0 {
		return s
	}
	scale := r.scale(m)
	k := mat.NewSymDense(n, nil)
	errors := mat.NewVecDense(n, nil)
	for i, a := range s.cells {
		errors.SetVec(i, a.log)
		for j := range i + 1 {
			k.SetSym(i, j, scale*scale*r.covariance(a.c, a.level, s.cells[j].c, s.cells[j].level))
		}
		k.SetSym(i, i, k.At(i, i)+scale*scale*x.tuning.Reading*x.tuning.Reading)
	}
	var weights mat.VecDense
	if !s.factor.Factorize(k) || s.factor.SolveVecTo(&weights, errors) != nil {
		s.cells = nil // without a correction, predictions are the simulation's
		return s
	}
	s.weights = weights.RawVector().Data
	return s
}
