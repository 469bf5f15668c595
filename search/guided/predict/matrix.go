package predict

import "math"

// cholesky returns the lower factor of a positive definite matrix given by its lower triangle, in
// place. Rounding may make a variance near zero negative, so it is raised to a tiny one.
func cholesky(a [][]float64) [][]float64 {
	const tiny = 1e-12
	for i, row := range a {
		for j := range i {
			row[j] = (row[j] - dot(row[:j], a[j][:j])) / a[j][j]
		}
		row[i] = math.Sqrt(max(row[i]-dot(row[:i], row[:i]), tiny))
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
