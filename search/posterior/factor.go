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
// definite; the content is then undefined. It goes column by column, since the elements of a column do not
// depend on each other, so that a processor computes several at the same time.
func (l lower) factorize() bool {
	for j, pivot := range l {
		square := pivot[j] - floats.Dot(pivot[:j], pivot[:j])
		if !(square > 0) { // also catches NaN
			return false
		}
		pivot[j] = math.Sqrt(square)
		for _, row := range l[j+1:] {
			row[j] = (row[j] - floats.Dot(row[:j], pivot[:j])) / pivot[j]
		}
	}
	return true
}

// forward solves L·z = x in place.
func (l lower) forward(x []float64) { l.forwardAll([][]float64{x}, []int{0}) }

// forwardAll solves L·z = x in place for several x. The first elements of each are known to be 0, as many as
// zeros says. Like factorize it does at the same time what does not depend on each other.
func (l lower) forwardAll(all [][]float64, zeros []int) {
	for i, row := range l {
		for k, x := range all {
			if from := zeros[k]; i >= from {
				x[i] = (x[i] - floats.Dot(row[from:i], x[from:i])) / row[i]
			}
		}
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
	diagonal, columns, zeros := make([]float64, len(l)), make([][]float64, len(l)), make([]int, len(l))
	for i := range l {
		columns[i], zeros[i] = make([]float64, len(l)), i
		columns[i][i] = 1
	}
	l.forwardAll(columns, zeros)
	for i, column := range columns {
		diagonal[i] = floats.Dot(column[i:], column[i:])
	}
	return diagonal
}
