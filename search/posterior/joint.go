package posterior

import (
	"math"
	"slices"
	"sync/atomic"
)

// Joint is a normal distribution of the logarithms of one metric at several cells. Several goroutines may
// ask it.
type Joint struct {
	Means []float64
	*covariances
}

// covariances are those of all pairs of some cells. A decision asks for few of them, and one takes longer than
// all else about its cells. So each is computed when it is first asked for.
type covariances struct {
	of    func(a, b int) float64 // of cells by their indices, a ≥ b; a function of its arguments
	known []atomic.Uint64        // bits of the computed ones, by pair: the lower triangle row by row; 0 elsewhere
}

// newJoint makes a joint distribution from means and a function as in covariances.
func newJoint(means []float64, of func(a, b int) float64) Joint {
	return Joint{means, &covariances{of, make([]atomic.Uint64, len(means)*(len(means)+1)/2)}}
}

// independent makes a joint distribution of independent cells.
func independent(means, variances []float64) Joint {
	return newJoint(means, func(a, b int) float64 {
		if a != b {
			return 0
		}
		return variances[a]
	})
}

// NewJoint makes a joint distribution of n cells from n means and n·n covariances, row by row.
func NewJoint(means, covariances []float64) Joint {
	return newJoint(means, func(a, b int) float64 { return covariances[a*len(means)+b] })
}

// clone returns a distribution with means of its own.
func (j Joint) clone() Joint { return Joint{slices.Clone(j.Means), j.covariances} }

// Covariance returns the covariance of two cells' logarithms, by their indices in the list.
func (c *covariances) Covariance(a, b int) float64 {
	if a < b {
		a, b = b, a
	}
	known := &c.known[a*(a+1)/2+b]
	if bits := known.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	x := c.of(a, b)
	known.Store(math.Float64bits(x))
	return x
}

// At returns the distribution of one cell alone.
func (j Joint) At(i int) Normal { return Normal{j.Means[i], math.Sqrt(max(j.Covariance(i, i), 0))} }

// Difference returns the distribution of the logarithm of a's value divided by b's.
func (j Joint) Difference(a, b int) Normal {
	v := j.Covariance(a, a) + j.Covariance(b, b) - 2*j.Covariance(a, b)
	return Normal{j.Means[a] - j.Means[b], math.Sqrt(max(v, 0))}
}
