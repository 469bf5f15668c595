package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// mostLooks keeps the time to compute a table of critical values well below a second.
const mostLooks = 100

// Pocock returns the critical values of |z| at equally spaced looks (1 to 100) at growing data. A
// test that stops at the first value exceeded has the two-sided error probability alpha over all
// looks. All critical values are the same.
//
// Source: Jennison and Turnbull, Group Sequential Methods (2000), §2.4; by the recursive numerical
// integration of Armitage, McPherson and Rowe, JRSS A 132 (1969).
func Pocock(looks int, alpha float64) ([]float64, error) {
	return groupSequential(looks, alpha, func(int) float64 { return 1 })
}

// OBrienFleming returns critical values as Pocock does, but they fall as the data grow. The value
// at look k is √(looks/k) times the last one. Early looks stop only at the clearest differences.
// The last look is hardly stricter than a test without looks.
//
// Source: Jennison and Turnbull, §2.5.
func OBrienFleming(looks int, alpha float64) ([]float64, error) {
	return groupSequential(looks, alpha, func(k int) float64 { return math.Sqrt(float64(looks) / float64(k)) })
}

// groupSequential returns the critical values c·shape(k) of looks k = 1…looks. It chooses c so that
// the probability to exceed any of them is alpha.
func groupSequential(looks int, alpha float64, shape func(k int) float64) ([]float64, error) {
	if looks < 1 || looks > mostLooks {
		return nil, fmt.Errorf("cannot plan %d looks: at least 1 and at most %d", looks, mostLooks)
	}
	if !(alpha > 0 && alpha < 1) {
		return nil, fmt.Errorf("cannot plan looks at level %g: it must lie between 0 and 1", alpha)
	}
	values := make([]float64, looks)
	scaled := func(c float64) []float64 {
		for k := range values {
			values[k] = c * shape(k+1)
		}
		return values
	}
	// A union bound (Bonferroni) is too strict and a single look is too lenient, so that c lies
	// between them.
	lo, hi := distuv.UnitNormal.Quantile(1-alpha/2), distuv.UnitNormal.Quantile(1-alpha/2/float64(looks))
	for hi-lo > 1e-6 {
		middle := (lo + hi) / 2
		if exceeds(scaled(middle)) > alpha {
			lo = middle
		} else {
			hi = middle
		}
	}
	return scaled((lo + hi) / 2), nil
}

// exceeds returns the probability that a running mean exceeds the critical value of any look. The
// mean is of a growing number of independent standard normal values, divided by its standard error.
// Gauss–Legendre quadrature carries the density of the sum from look to look, for the cases that
// have not exceeded so far.
func exceeds(critical []float64) float64 {
	var points, masses []float64 // density of the sum after the previous look
	for k, c := range critical {
		bound := c * math.Sqrt(float64(k+1))
		// The density of a step is standard normal. Nodes at most 0.6 apart integrate it to more
		// than ten digits.
		nodes := 16 + 2*int(math.Ceil(3*bound))
		next, weights := make([]float64, nodes), make([]float64, nodes)
		quad.Legendre{}.FixedLocations(next, weights, -bound, bound)
		for i, x := range next {
			density := distuv.UnitNormal.Prob(x)
			if k > 0 {
				density = 0
				for j, from := range points {
					density += masses[j] * distuv.UnitNormal.Prob(x-from)
				}
			}
			weights[i] *= density
		}
		points, masses = next, weights
	}
	stays := 0.0
	for _, m := range masses {
		stays += m
	}
	return 1 - stays
}
