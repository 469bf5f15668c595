package colocation

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// site is one model in one option on some cores.
type site struct {
	option int
	cores  int // 0: shared
	nodes  int // NUMA nodes over which its cores lie; 0: shared
	pool   string
	cell   string  // key of the whole cell; "" for a cell that is not measured
	doubt  float64 // of the pool's times (Option.Doubt)
}

// reading is a slowdown that a trial has shown.
type reading struct {
	site
	slowdown float64
	variance float64 // of the trial's error
}

// residuals are the slowdowns of one model: a Gaussian process with mean 0, whose components are those of
// Deviations (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 2).
type residuals struct {
	deviations Deviations
	readings   []reading
	isSolved   bool // factor and weights are those of the readings
	factor     mat.Cholesky
	weights    *mat.VecDense // covariance⁻¹·slowdowns
}

// kernel returns the covariance of two sites' slowdowns.
func (d Deviations) kernel(a, b site) float64 {
	k := d.Model * d.Model
	if (a.cores == 0) == (b.cores == 0) {
		k += d.Isolation * d.Isolation
	}
	isSamePlace := a.cores == b.cores && a.nodes == b.nodes
	if isSamePlace {
		k += d.Cores * d.Cores
	}
	if a.pool == b.pool {
		k += d.Pool*d.Pool + a.doubt*b.doubt
	}
	if a.option == b.option {
		k += d.Option * d.Option
		if isSamePlace {
			k += d.Site * d.Site
		}
	}
	if a.cell == b.cell && a.cell != "" {
		k += d.Company * d.Company
	}
	return k
}

// add learns a reading. Readings of the same site of a cell have all but their errors in common, so their
// weighted mean says as much.
func (r *residuals) add(x reading) {
	if i := slices.IndexFunc(r.readings, func(known reading) bool { return known.site == x.site }); i >= 0 {
		known := &r.readings[i]
		precision := 1/known.variance + 1/x.variance
		known.slowdown = (known.slowdown/known.variance + x.slowdown/x.variance) / precision
		known.variance = 1 / precision
	} else {
		r.readings = append(r.readings, x)
	}
	r.isSolved = false
}

// remove forgets the reading of a site.
func (r *residuals) remove(at site) {
	r.readings = slices.DeleteFunc(r.readings, func(known reading) bool { return known.site == at })
	r.isSolved = false
}

// solve computes the weights of the readings, of which there is at least one.
func (r *residuals) solve() {
	if r.isSolved {
		return
	}
	r.isSolved = true
	n := len(r.readings)
	covariance := mat.NewSymDense(n, nil)
	for i, a := range r.readings {
		for j, b := range r.readings[:i+1] {
			covariance.SetSym(i, j, r.deviations.kernel(a.site, b.site))
		}
		covariance.SetSym(i, i, covariance.At(i, i)+a.variance)
	}
	shown := mat.NewVecDense(n, nil)
	for i, a := range r.readings {
		shown.SetVec(i, a.slowdown)
	}
	r.weights = mat.NewVecDense(n, nil)
	// Every reading has an error of its own, so the matrix is positive definite.
	if !r.factor.Factorize(covariance) || r.factor.SolveVecTo(r.weights, shown) != nil {
		panic("colocation: the covariance of the readings is not positive definite")
	}
}

// believe returns mean and deviation of a site's slowdown.
func (r *residuals) believe(x site) (mean, deviation float64) {
	d := r.deviations
	variance := d.kernel(x, x)
	if x.cell == "" {
		variance += d.Company * d.Company
	}
	n := len(r.readings)
	if n == 0 {
		return 0, math.Sqrt(variance)
	}
	r.solve()
	k := mat.NewVecDense(n, nil)
	for i, a := range r.readings {
		k.SetVec(i, d.kernel(x, a.site))
	}
	mean = mat.Dot(k, r.weights)
	explained := mat.NewVecDense(n, nil)
	if r.factor.SolveVecTo(explained, k) == nil {
		variance -= mat.Dot(k, explained)
	}
	return mean, math.Sqrt(max(variance, tiny))
}

// tiny keeps a divisor from being zero.
const tiny = 1e-12
