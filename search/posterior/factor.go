package posterior

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// lower is the lower triangle of a symmetric matrix, or the factor L of its Cholesky decomposition
// L·Lᵀ. It is stored row by row: row i has i+1 elements.
type lower [][]float64

func newLower(n int) lower {
	all, rows := make([]float64, n*(n+1)/2), make(lower, n)
	for i := range rows {
		rows[i], all = all[:i+1:i+1], all[i+1:]
	}
	return rows
}

// factorize replaces a matrix by its factor. It returns false if the matrix is not positive
// definite; the content is then undefined.
func (l lower) factorize() bool {
	for i, row := range l {
		for j, other := range l[:i] {
			row[j] = (row[j] - floats.Dot(row[:j], other[:j])) / other[j]
		}
		square := row[i] - floats.Dot(row[:i], row[:i])
		if !(square > 0) { // also catches NaN
			return false
		}
		row[i] = math.Sqrt(square)
	}
	return true
}

// forward solves L·z = x in place. The first zeros elements of x are known to be 0.
func (l lower) forward(x []float64, zeros int) {
	for i := zeros; i < len(l); i++ {
		x[i] = (x[i] - floats.Dot(l[i][zeros:i], x[zeros:i])) / l[i][i]
	}
}

// backward solves Lᵀ·x = z in place.
func (l lower) backward(z []float64) {
	for i := len(l) - 1; i >= 0; i-- {
		z[i] /= l[i][i]
		floats.AddScaled(z[:i], -z[i], l[i][:i])
	}
}

// logDet returns the logarithm of the determinant of L·Lᵀ.
func (l lower) logDet() float64 {
	sum := 0.0
	for i, row := range l {
		sum += 2 * math.Log(row[i])
	}
	return sum
}

// inverseDiagonal returns the diagonal of the inverse of L·Lᵀ.
func (l lower) inverseDiagonal() []float64 {
	diagonal, column := make([]float64, len(l)), make([]float64, len(l))
	for i := range l {
		clear(column)
		column[i] = 1
		l.forward(column, i)
		diagonal[i] = floats.Dot(column[i:], column[i:])
	}
	return diagonal
}
