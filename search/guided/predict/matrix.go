package predict

import "math"

// cholesky returns the lower factor of a positive definite matrix given by its lower triangle, in
// place. Each pivot is the variance of an observation beside those before it. That is never near zero,
// since each observation has a part of its own (tuning.Engines.Rest, tuning.Contention.Own).
func cholesky(a [][]float64) [][]float64 {
	for i, row := range a {
		for j := range i {
			row[j] = (row[j] - dot(row[:j], a[j][:j])) / a[j][j]
		}
		row[i] = math.Sqrt(row[i] - dot(row[:i], row[:i]))
	}
	return a
}

// forward replaces v by factor⁻¹·v.
func forward(factor [][]float64, v []float64) {
	for i, row := range factor {
		v[i] = (v[i] - dot(row[:i], v[:i])) / row[i]
	}
}

// solve returns (factor·factorᵀ)⁻¹·v, and changes v.
func solve(factor [][]float64, v []float64) []float64 {
	forward(factor, v)
	for i := len(v) - 1; i >= 0; i-- {
		for j := i + 1; j < len(v); j++ {
			v[i] -= factor[j][i] * v[j]
		}
		v[i] /= factor[i][i]
	}
	return v
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
