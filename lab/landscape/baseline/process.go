package baseline

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// process is a Gaussian process with a constant mean, a Matérn kernel (ν = 5/2) with a length for
// each dimension, and noise. The noise variance is divided by the number of trials behind a value.
// Values are standardized. The zero value has no data.
type process struct {
	shape       shape
	inputs      [][]float64
	values      []float64 // not standardized
	mean, scale float64
	cholesky    mat.Cholesky
	weights     *mat.VecDense // K⁻¹ y
}

// shape holds the hyper-parameters.
type shape struct {
	lengths []float64
	noise   float64 // variance of one trial, relative to the values' variance
}

// newShape returns the start of the search for the likeliest shape.
func newShape(dimensions int) shape {
	s := shape{lengths: make([]float64, dimensions), noise: 0.01}
	for i := range s.lengths {
		s.lengths[i] = 1
	}
	return s
}

// kernel returns the correlation of two points.
func (s shape) kernel(a, b []float64) float64 {
	squares := 0.0
	for i, l := range s.lengths {
		d := (a[i] - b[i]) / l
		squares += d * d
	}
	r := math.Sqrt(5 * squares)
	return (1 + r + r*r/3) * math.Exp(-r)
}

// data is the input of a fit.
type data struct {
	inputs [][]float64
	values []float64
	trials []float64 // number behind each value, which is their mean
}

func (d *data) add(input []float64, value, trials float64) {
	d.inputs, d.values, d.trials = append(d.inputs, input), append(d.values, value), append(d.trials, trials)
}

// fit returns the process of values at inputs, and the logarithm of its marginal likelihood; false
// if the matrix is not positive definite.
func fit(s shape, d data) (process, float64, bool) {
	inputs, values := d.inputs, d.values
	n := len(values)
	p := process{shape: s, inputs: inputs, values: values, scale: 1}
	for _, v := range values {
		p.mean += v / float64(n)
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - p.mean) * (v - p.mean)
	}
	if squares > 0 {
		p.scale = math.Sqrt(squares / float64(n))
	}
	y := mat.NewVecDense(n, nil)
	k := mat.NewSymDense(n, nil)
	for i := range n {
		y.SetVec(i, (values[i]-p.mean)/p.scale)
		for j := i; j < n; j++ {
			k.SetSym(i, j, s.kernel(inputs[i], inputs[j]))
		}
		k.SetSym(i, i, 1+s.noise/d.trials[i])
	}
	if !p.cholesky.Factorize(k) {
		return process{}, math.Inf(-1), false
	}
	p.weights = mat.NewVecDense(n, nil)
	if err := p.cholesky.SolveVecTo(p.weights, y); err != nil {
		return process{}, math.Inf(-1), false
	}
	return p, -mat.Dot(y, p.weights)/2 - p.cholesky.LogDet()/2 - prior(s), true
}

// prior keeps lengths and noise near usual values if there are few data: log-normal around 1 and
// 0.01.
func prior(s shape) float64 {
	sum := math.Pow(math.Log(s.noise/0.01)/2, 2) / 2
	for _, l := range s.lengths {
		sum += math.Pow(math.Log(l), 2) / 2
	}
	return sum
}

// refit searches for a likelier shape, one hyper-parameter after the other.
func refit(s shape, d data) shape {
	_, best, _ := fit(s, d)
	try := func(change func(*shape, float64)) {
		for _, factor := range []float64{0.5, 2} {
			candidate := shape{append([]float64(nil), s.lengths...), s.noise}
			change(&candidate, factor)
			if _, likelihood, ok := fit(candidate, d); ok && likelihood > best {
				s, best = candidate, likelihood
			}
		}
	}
	for i := range s.lengths {
		try(func(c *shape, factor float64) { c.lengths[i] = min(max(c.lengths[i]*factor, 0.1), 20) })
	}
	try(func(c *shape, factor float64) { c.noise = min(max(c.noise*factor, 1e-4), 1) })
	return s
}

// predict returns mean and standard deviation of the function, without the noise, at each of the
// points.
func (p process) predict(points [][]float64) (means, deviations []float64) {
	n, m := len(p.values), len(points)
	k := mat.NewDense(n, m, nil)
	for i := range n {
		for j, x := range points {
			k.Set(i, j, p.shape.kernel(p.inputs[i], x))
		}
	}
	var lower mat.TriDense
	p.cholesky.LTo(&lower)
	var half mat.Dense
	must(half.Solve(&lower, k)) // the noise keeps the matrix well-conditioned
	means, deviations = make([]float64, m), make([]float64, m)
	for j := range m {
		variance := 1.0
		for i := range n {
			means[j] += k.At(i, j) * p.weights.AtVec(i)
			variance -= half.At(i, j) * half.At(i, j)
		}
		means[j] = p.mean + p.scale*means[j]
		deviations[j] = p.scale * math.Sqrt(max(variance, 1e-9))
	}
	return means, deviations
}
