package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// mostLooks bounds the time that a table of critical values takes to well below a second.
const mostLooks = 100

// Pocock returns the critical values of |z| at each of a number of equally spaced looks (1 to 100) at growing data, so that a test
// that stops at the first one exceeded errs with the two-sided probability alpha in all. They are the same at each look.
//
// Source: Jennison and Turnbull, Group Sequential Methods (2000), §2.4; by the recursive numerical integration of Armitage, McPherson and Rowe,
// JRSS A 132 (1969).
func Pocock(looks int, alpha float64) ([]float64, error) {
	return groupSequential(looks, alpha, func(int) float64 { return 1 })
}

// OBrienFleming is Pocock with critical values that fall as the data grow, √(looks/k) times the last one at look k: early looks
// stop only at the clearest differences, and the last is hardly stricter than a test without looks.
//
// Source: Jennison and Turnbull, §2.5.
func OBrienFleming(looks int, alpha float64) ([]float64, error) {
	return groupSequential(looks, alpha, func(k int) float64 { return math.Sqrt(float64(looks) / float64(k)) })
}

// groupSequential returns the critical values c·shape(k) of looks k = 1…looks, with c such that they are exceeded with probability
// alpha.
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
	// The union bound (Bonferroni) is too strict, a single look too lenient.
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

// exceeds is the probability that the mean of a growing number of independent standard normal values, divided by its standard error, exceeds
// the critical value of any look. The density of their sum among those that have not, is carried from look to look by Gauss–Legendre quadrature.
func exceeds(critical []float64) float64 {
	var points, masses []float64 // of the sum after the previous look
	for k, c := range critical {
		bound := c * math.Sqrt(float64(k+1))
		// A step's density is the standard normal one: nodes at most 0.6 apart integrate it to more than ten digits.
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
