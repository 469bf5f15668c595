package guided

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

var example = spread{global: 0.5, pool: 0.1, smooth: 0.2, own: 0.05}

// exampleSights are of three pools, with errors that have a part in common within each.
func exampleSights() (pools [][]sight, errors [][]float64) {
	random := rand.New(rand.NewPCG(1, 2))
	row := 0
	for pool, n := range []int{3, 1, 4} {
		var sights []sight
		for i := range n {
			x := spot{pool: pool, batcher: i, at: [...]float64{random.Float64() * 3, random.Float64() * 3, 0}}
			sights = append(sights, sight{x, random.NormFloat64(), row})
			row++
		}
		pools = append(pools, sights)
	}
	errors = diagonal(row, 0)
	for _, sights := range pools {
		for _, a := range sights {
			for _, b := range sights {
				errors[a.row][b.row] = 0.005
			}
			errors[a.row][a.row] += 0.01 + 0.1*random.Float64()
		}
	}
	return pools, errors
}

// diagonal is the covariance of n independent errors.
func diagonal(n int, variance float64) [][]float64 {
	errors := make([][]float64, n)
	for i := range errors {
		errors[i] = make([]float64, n)
		errors[i][i] = variance
	}
	return errors
}

// dense is the same process with one matrix for all.
type dense struct {
	sights  []sight
	inverse *mat.Dense
	logDet  float64
}

func denseCovariance(a, b spot) float64 {
	k := example.global * example.global
	if a.pool == b.pool {
		k += example.within(a, b)
	}
	return k
}

func newDense(t *testing.T, pools [][]sight, errors [][]float64) dense {
	t.Helper()
	var d dense
	for _, sights := range pools {
		d.sights = append(d.sights, sights...)
	}
	n := len(d.sights)
	k := mat.NewDense(n, n, nil)
	for i, a := range d.sights {
		for j, b := range d.sights {
			k.Set(i, j, denseCovariance(a.spot, b.spot)+errors[a.row][b.row])
		}
	}
	d.inverse = mat.NewDense(n, n, nil)
	if err := d.inverse.Inverse(k); err != nil {
		t.Fatal(err)
	}
	d.logDet, _ = mat.LogDet(k)
	return d
}

// form is kᵀ·inverse·v.
func (d dense) form(k, v func(sight) float64) float64 {
	sum := 0.0
	for i, a := range d.sights {
		for j, b := range d.sights {
			sum += k(a) * d.inverse.At(i, j) * v(b)
		}
	}
	return sum
}

func covarianceWith(x spot) func(sight) float64 {
	return func(s sight) float64 { return denseCovariance(x, s.spot) }
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %.12f, want %.12f", what, got, want)
	}
}

// Blocks and a common mean are the same as one matrix with the whole kernel.
func TestProcessIsTheDenseOne(t *testing.T) {
	t.Parallel()
	pools, errors := exampleSights()
	p, likelihood := fit(pools, errors, example)
	d := newDense(t, pools, errors)
	value := func(s sight) float64 { return s.value }
	near(t, "likelihood", likelihood, -(d.logDet+d.form(value, value))/2)
	seen := pools[2][1].spot
	spots := []spot{
		{pool: 0, batcher: 9, at: [...]float64{1, 1, 0}},
		{pool: 0, batcher: 8, at: [...]float64{1.5, 0.5, 0.2}},
		seen,
		{pool: 7, batcher: 0, at: [...]float64{1, 2, 0}},
	}
	for _, a := range spots {
		r := p.at(a)
		near(t, "mean", r.mean, d.form(covarianceWith(a), value))
		near(t, "variance", r.variance, denseCovariance(a, a)-d.form(covarianceWith(a), covarianceWith(a)))
		for _, b := range spots {
			want := denseCovariance(a, b) - d.form(covarianceWith(a), covarianceWith(b))
			near(t, "covariance", p.covariance(r, p.at(b)), want)
		}
	}
}

// Two pools that were measured in the same weather: each residual is taken for g = k/(k + v) of what was seen, so that the errors have g²
// of what the noise has in common. (The global part is as good as zero.)
func TestErrorsInCommonDoNotTellPoolsApart(t *testing.T) {
	t.Parallel()
	const k, v, common = 0.04, 0.02, 0.015
	x := [...]spot{{pool: 0}, {pool: 1}}
	errors := [][]float64{{v, common}, {common, v}}
	p, _ := fit([][]sight{{{x[0], 0.1, 0}}, {{x[1], 0.2, 1}}}, errors, spread{global: 1e-6, pool: math.Sqrt(k)})
	const g = k / (k + v)
	if got := p.covariance(p.at(x[0]), p.at(x[1])); math.Abs(got-g*g*common) > 1e-9 {
		t.Errorf("the covariance is %g, want %g", got, g*g*common)
	}
}

func TestLearnFindsTheSpreads(t *testing.T) {
	t.Parallel()
	usual := spread{global: 0.5, pool: 0.08, smooth: 0.06, own: 0.03}
	draw := func(pool, cell float64) [][]sight {
		random := rand.New(rand.NewPCG(3, 4))
		var pools [][]sight
		for i := range 12 {
			common := pool * random.NormFloat64()
			var sights []sight
			for j := range 6 {
				x := spot{pool: i, batcher: j, at: [...]float64{float64(10 * j), 0, 0}} // far apart
				sights = append(sights, sight{x, 0.2 + common + cell*random.NormFloat64(), 6*i + j})
			}
			pools = append(pools, sights)
		}
		return pools
	}
	errors := diagonal(12*6, 1e-4)
	loud, quiet := learn(draw(0.25, 0.1), errors, usual, 0), learn(draw(0.02, 0.01), errors, usual, 0)
	if loud.spread.pool != 3*usual.pool || math.Hypot(loud.spread.own, loud.spread.smooth) < 0.08 {
		t.Errorf("residuals with spreads of 0.25 and 0.1 are taken for %+v", loud.spread)
	}
	if quiet.spread.pool > usual.pool/2 || math.Hypot(quiet.spread.own, quiet.spread.smooth) > 0.025 {
		t.Errorf("residuals with spreads of 0.02 and 0.01 are taken for %+v", quiet.spread)
	}
	const service = 0.1
	if noisy := learn(draw(0.02, 0.01), errors, usual, service); noisy.spread.pool < 0.1 {
		t.Errorf("a pool's residual has a deviation of %.3f, and its service times alone 0.1", noisy.spread.pool)
	}
	if math.Abs(quiet.mean-0.2) > 0.02 {
		t.Errorf("the common part is %.3f, want 0.2", quiet.mean)
	}
}

func TestProcessWithoutSights(t *testing.T) {
	t.Parallel()
	p := learn(nil, nil, example, 0)
	r := p.at(spot{pool: 1})
	near(t, "mean", r.mean, 0)
	near(t, "variance", r.variance, 0.25+0.01+0.04+0.0025)
}
