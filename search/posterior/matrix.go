package posterior

import (
	"errors"

	"gonum.org/v1/gonum/mat"
)

// inverseDiagonal is the diagonal of the inverse covariance of a part's trials.
func inverseDiagonal(x part) []float64 {
	var inverse mat.SymDense
	if err := x.factor.InverseTo(&inverse); !isSolved(err) {
		return make([]float64, len(x.pulls)) // an ill-conditioned one counts as no information
	}
	list := make([]float64, len(x.pulls))
	for i := range list {
		list[i] = inverse.At(i, i)
	}
	return list
}

// isSolved reports whether a system has a solution. A large condition number is no obstacle: trials of
// one cell in one moment are nearly the same equation, and their own noise keeps them apart.
func isSolved(err error) bool {
	_, isOnlyLarge := errors.AsType[mat.Condition](err)
	return err == nil || isOnlyLarge
}
