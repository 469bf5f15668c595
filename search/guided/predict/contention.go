package predict

import (
	"math"

	"tuner/search/guided/pools"
)

// Contention is the expected effect of a pool's instances on each other, relative to their
// undisturbed throughput, as a logarithm.
type Contention struct{ Mean, Variance float64 }

// Contention returns the contention of a pool.
func (x *Predictor) Contention(p *pools.Pool) Contention { return x.contention[p] }

// contentionCovariance returns the covariance of two pools' logarithms.
func (x *Predictor) contentionCovariance(a, b *pools.Pool) float64 {
	n := x.tuning.Contention
	d := math.Log(float64(a.Instances()) / float64(b.Instances()))
	all := d + math.Log(float64(max(a.Threads(), 1))/float64(max(b.Threads(), 1)))
	k := n.Alike * math.Exp(-(d*d+all*all)/2)
	if a == b {
		k += n.Own
	}
	return k
}

// ForecastContention predicts the contention of all pools of several instances that are not ready,
// from those that are. Instances share memory bandwidth, cores and a GPU in a similar way with
// every engine.
func (x *Predictor) ForecastContention() {
	ready := x.ready()
	factor, weights := make([][]float64, len(ready)), make([]float64, len(ready))
	for i, p := range ready {
		factor[i] = make([]float64, i+1)
		for j := range factor[i] {
			factor[i][j] = x.contentionCovariance(p, ready[j])
		}
		o := x.opened[p].outline
		last := o.Largest()
		undisturbed := x.undisturbed(p, p.Engine().Alone().Curve(), o.Sizes[last])
		weights[i] = math.Log(o.Most[last] / undisturbed)
	}
	cholesky(factor)
	solve(factor, weights)
	reduced := make([]float64, len(ready))
	for _, p := range x.pools.All() {
		if p.IsReady() || p.Instances() == 1 {
			continue
		}
		for i, q := range ready {
			reduced[i] = x.contentionCovariance(p, q)
		}
		c := Contention{Mean: dot(reduced, weights)}
		forward(factor, reduced)
		c.Variance = max(x.contentionCovariance(p, p)-dot(reduced, reduced), 0)
		x.contention[p] = c
	}
}
