package posterior

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"tuner/measure"
)

// random makes trials of some cells in a campaign, and scales.
func random(seed uint64) ([]observation, []scales) {
	r := rand.New(rand.NewPCG(seed, 9))
	sites := someSites(r, 7)
	var list []observation
	for range 30 {
		list = append(list, observation{
			site: sites[r.IntN(len(sites))], at: 300 * r.Float64(), launch: r.IntN(5), withheld: 0.1 * r.NormFloat64(),
			log: 9 + 0.3*r.NormFloat64(), variance: 0.001 * r.Float64(),
		})
	}
	var all []scales
	for range 3 {
		logs := usual(measure.Throughput).logs()
		for i := range logs {
			logs[i] += surprise * r.NormFloat64()
		}
		s := scalesOf(logs)
		s.global = 0.3
		all = append(all, s)
	}
	return list, all
}

// someSites returns sites in two pools with two batchers each, at some loads. Some have
// predictions.
func someSites(r *rand.Rand, n int) []site {
	var sites []site
	for range n {
		pool, batcher, level := string(rune('a'+r.IntN(2))), string(rune('x'+r.IntN(2))), float64(r.IntN(6))
		s := site{Coordinates: named(pool, pool+batcher+string(rune('0'+int(level))))}
		size := float64(batcher[0]-'x') + 0.3*float64(pool[0]-'a') // equal servers have the same coordinates
		s.at = [3]float64{level, size, size / 2}
		if r.IntN(4) > 0 {
			s.prior, s.isKnown = 9+0.1*r.NormFloat64(), true
		}
		sites = append(sites, s)
	}
	return sites
}

// plainly computes the moments of a mixture of processes with some scales by textbook matrix
// formulas.
func plainly(t *testing.T, p *process, parts []scales, probabilities []float64, sites []site) (*mat.VecDense, *mat.SymDense, []float64) {
	t.Helper()
	n, m := len(sites), len(p.list)
	mean, covariance := mat.NewVecDense(n, nil), mat.NewSymDense(n, nil)
	var means []*mat.VecDense
	var likelihoods []float64
	for k, s := range parts {
		within, across, rest := mat.NewSymDense(m, nil), mat.NewDense(m, n, nil), mat.NewVecDense(m, nil)
		for i, a := range p.list {
			for j, b := range p.list[:i+1] {
				c := s.kernel(likenessOf(&a.site, &b.site)) + s.course(a.at-b.at) + slopeDeviation*slopeDeviation*a.withheld*b.withheld
				if a.launch == b.launch && a.pool == b.pool {
					c += s.launch * s.launch
				}
				if i == j {
					c += s.ownVariance(&a) / p.weights[i]
				}
				within.SetSym(i, j, c)
			}
			for j, b := range sites {
				across.Set(i, j, s.kernel(likenessOf(&a.site, &b))+s.average(a.at, p.begin, p.end))
			}
			rest.SetVec(i, a.log-p.expected(&a))
		}
		var factor mat.Cholesky
		if !factor.Factorize(within) {
			t.Fatal("the covariance is not positive definite")
		}
		var pulls, moves mat.VecDense
		var solved, explained mat.Dense
		if err := factor.SolveVecTo(&pulls, rest); err != nil {
			t.Fatal(err)
		}
		if err := factor.SolveTo(&solved, across); err != nil {
			t.Fatal(err)
		}
		likelihoods = append(likelihoods, -(mat.Dot(rest, &pulls)+factor.LogDet())/2)
		moves.MulVec(across.T(), &pulls)
		explained.Mul(across.T(), &solved)
		for i := range n {
			moves.SetVec(i, moves.AtVec(i)+p.prediction(&sites[i]))
			for j := range i + 1 {
				c := s.kernel(likenessOf(&sites[i], &sites[j])) + s.spread(p.begin, p.end) - explained.At(i, j)
				covariance.SetSym(i, j, covariance.At(i, j)+probabilities[k]*c)
			}
		}
		mean.AddScaledVec(mean, probabilities[k], &moves)
		means = append(means, &moves)
	}
	for k := range means {
		var d mat.VecDense
		d.SubVec(means[k], mean)
		covariance.SymRankOne(covariance, probabilities[k], &d)
	}
	return mean, covariance, likelihoods
}

// The answers from sums over sites and trials in time order equal those of the textbook's matrices.
func TestAnswersAreTheTextbooks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		if t.Failed() {
			return
		}
		list, all := random(seed)
		p := newProcess(measure.Throughput, list)
		r := rand.New(rand.NewPCG(seed, 1))
		for i := range p.weights {
			p.weights[i] = 0.2 + r.Float64()
		}
		probabilities := []float64{0.5, 0.3, 0.2}
		sites := append(someSites(r, 12), p.sites...)
		mean, covariance, likelihoods := plainly(t, p, all, probabilities, sites)
		for k, s := range all {
			x, ok := p.condition(s)
			likelihood, _ := p.factor(&s, p.newDesk())
			if !ok {
				t.Fatal("the covariance is not positive definite")
			}
			near(t, "likelihood", likelihood, likelihoods[k], 1e-8)
			p.prepare(&x)
			x.probability = probabilities[k]
			p.parts = append(p.parts, x)
		}
		j := p.joint(sites)
		for i := range sites {
			near(t, "mean", j.Means[i], mean.AtVec(i), 1e-9)
			for k := range sites {
				near(t, "covariance", j.Covariance(i, k), covariance.At(i, k), 1e-9)
			}
		}
	}
}

// The solutions with a factor satisfy the equations of its matrix.
func TestFactor(t *testing.T) {
	t.Parallel()
	list, all := random(1)
	p := newProcess(measure.Throughput, list)
	desk := p.newDesk()
	p.covariance(&all[0], desk)
	k, l := newLower(len(p.list)), desk.trials
	for i, row := range l {
		copy(k[i], row)
	}
	if !l.factorize() {
		t.Fatal("not positive definite")
	}
	full := mat.NewSymDense(len(k), nil)
	for i, row := range k {
		for j, c := range row {
			full.SetSym(i, j, c)
		}
	}
	var inverse mat.Dense
	if err := inverse.Inverse(full); err != nil {
		t.Fatal(err)
	}
	diagonal, x := l.inverseDiagonal(), make([]float64, len(k))
	x[3] = 1
	l.forwardAll([][]float64{x}, []int{3})
	l.backward(x)
	for i := range k {
		near(t, "diagonal of the inverse", diagonal[i]/inverse.At(i, i), 1, 1e-9)
		near(t, "column of the inverse", (x[i]-inverse.At(i, 3))/inverse.At(3, 3), 0, 1e-9)
	}
	logDet, _ := mat.LogDet(full)
	near(t, "logarithm of the determinant", l.logDet(), logDet, 1e-9)
	if (lower{{1}, {2, 1}}).factorize() || (lower{{math.NaN()}}).factorize() {
		t.Error("a matrix that is not positive definite has a factor")
	}
}
