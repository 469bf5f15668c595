package guided

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"tuner/measure"
)

// sampled draws trials of cells in turn, at steps of some seconds: of each cell that many in a row, with the noise given.
func sampled(n noise, cells, inARow, trials int, step float64, seed uint64) []observation {
	random := rand.New(rand.NewPCG(seed, 5))
	drift := n.drift * random.NormFloat64()
	keep := math.Exp(-step / n.lasting)
	var list []observation
	for i := range trials {
		list = append(list, observation{i / inARow % cells, float64(i) * step, drift + n.trial*random.NormFloat64(), 1e-6, 0})
		drift = keep*drift + math.Sqrt(1-keep*keep)*n.drift*random.NormFloat64()
	}
	return list
}

// denseNoise is the covariance of observations as one matrix.
func denseNoise(list []observation, n noise) *mat.Dense {
	k := mat.NewDense(len(list), len(list), nil)
	for i, a := range list {
		for j, b := range list {
			k.Set(i, j, n.drift*n.drift*math.Exp(-math.Abs(a.at-b.at)/n.lasting))
		}
		k.Set(i, i, k.At(i, i)+a.variance+n.trial*n.trial)
	}
	return k
}

// The chain is the dense covariance's inverse, and what is made of it generalized least squares by their formulas.
func TestChainIsTheDenseOne(t *testing.T) {
	t.Parallel()
	n := noise{trial: 0.02, drift: 0.05, lasting: 30}
	list := sampled(n, 3, 2, 14, 7, 1)
	list[5].at += 3 // not all at the same distance
	list[6].variance = 0.003
	covariance := denseNoise(list, n)
	var inverse, design, weighted, precision, errors mat.Dense
	if err := inverse.Inverse(covariance); err != nil {
		t.Fatal(err)
	}
	design = *mat.NewDense(len(list), 3, nil)
	logs := mat.NewVecDense(len(list), nil)
	for i, o := range list {
		design.Set(i, o.cell, 1)
		logs.SetVec(i, o.log)
	}
	weighted.Mul(&inverse, &design)
	precision.Mul(design.T(), &weighted)
	if err := errors.Inverse(&precision); err != nil {
		t.Fatal(err)
	}
	var sums, means mat.VecDense
	sums.MulVec(weighted.T(), logs)
	means.MulVec(&errors, &sums)
	e := n.estimate(list, 3)
	level := 0.0 // the drift's part in the best mean of all, of weights q
	var q mat.VecDense
	ones := mat.NewVecDense(len(list), nil)
	for i := range list {
		ones.SetVec(i, 1)
	}
	q.MulVec(&inverse, ones)
	q.ScaleVec(1/mat.Sum(&q), &q)
	for i, a := range list {
		for j, b := range list {
			level += q.AtVec(i) * q.AtVec(j) * n.drift * n.drift * math.Exp(-math.Abs(a.at-b.at)/n.lasting)
		}
	}
	near(t, "level", e.level, level)
	for i := range 3 {
		near(t, "mean", e.means[i], means.AtVec(i))
		for j := range 3 {
			near(t, "error", e.errors[i][j], errors.At(i, j)-level)
		}
	}
	logDet, _ := mat.LogDet(covariance)
	logDetPrecision, _ := mat.LogDet(&precision)
	var solved mat.VecDense
	solved.MulVec(&inverse, logs)
	want := -(logDet + logDetPrecision + mat.Dot(logs, &solved) - mat.Dot(&sums, &means)) / 2
	near(t, "likelihood", n.likelihood(list, 3), want)
}

// A neighbour takes 20 % for 20 s: one cell was measured before that, the other during it, and then both in turn while it goes on and when
// it is gone. The second is 5 % better.
func TestTurnsTellCellsApartInABurst(t *testing.T) {
	t.Parallel()
	n := noise{trial: 0.005, drift: 0.1, lasting: 20}
	var list []observation
	add := func(cell int, at, drift float64) {
		list = append(list, observation{cell, at, 0.05*float64(cell) + drift, 1e-6, 0})
	}
	for i := range 5 {
		add(0, float64(i), 0)
	}
	for i := range 5 {
		add(1, 10+float64(i), -0.2)
	}
	inABurst := n.estimate(list, 2)
	for i := range 6 {
		drift := -0.2
		if i >= 3 {
			drift = 0
		}
		add(0, 16+4*float64(i), drift)
		add(1, 18+4*float64(i), drift)
	}
	inTurn := n.estimate(list, 2)
	if got := inTurn.means[1] - inTurn.means[0]; math.Abs(got-0.05) > 0.03 {
		t.Errorf("the difference is %.3f, want 0.05; before they were measured in turn %.3f", got, inABurst.means[1]-inABurst.means[0])
	}
	if before, during, after := inTurn.driftAt(2), inTurn.driftAt(20), inTurn.driftAt(38); during-before > -0.15 || during-after > -0.15 {
		t.Errorf("the drift is %.2f before, %.2f during and %.2f after the burst", before, during, after)
	}
	variance := func(e estimates) float64 { return e.errors[0][0] + e.errors[1][1] - 2*e.errors[0][1] }
	if before, after := math.Sqrt(variance(inABurst)), math.Sqrt(variance(inTurn)); before < 0.05 || after > before/2 {
		t.Errorf("the difference's deviation is %.3f after five trials of each in a row, and %.3f in turn", before, after)
	}
}

func TestNoiseIsLearned(t *testing.T) {
	t.Parallel()
	usual := newModel(measure.Throughput).usualNoise()
	if got, _ := learnNoise(sampled(usual, 40, 1, 40, 5, 1), usual); got != usual {
		t.Errorf("cells that were measured once show %+v", got)
	}
	calm, rough := 0.0, 0.0
	const seeds = 20
	for seed := range uint64(seeds) {
		a, tried := learnNoise(sampled(noise{0.01, 0.005, 60}, 6, 2, 80, 5, seed), usual)
		b, _ := learnNoise(sampled(noise{0.02, 0.10, 20}, 6, 2, 80, 5, seed), usual)
		calm, rough = calm+a.drift/seeds, rough+b.drift/seeds
		sum := 0.0
		for _, n := range tried {
			sum += n.probability
		}
		near(t, "sum of probabilities", sum, 1)
	}
	if calm > 0.02 || rough < 0.06 {
		t.Errorf("drifts of 0.005 and 0.10 are taken for %.3f and %.3f", calm, rough)
	}
}

// What is known of the machine's speed in the long run: 100 trials over 500 s of a drift that lasts 60 s are worth about
// 500/(2·60) = 4 independent ones, less what the ends add; the trials' own noise does not count.
func TestLevelIsTheDriftsPart(t *testing.T) {
	t.Parallel()
	n := noise{trial: 0.02, drift: 0.03, lasting: 60}
	if got := n.estimate(sampled(n, 5, 1, 100, 5, 1), 5).level / (n.drift * n.drift); got < 0.15 || got > 0.3 {
		t.Errorf("the level's variance is %.2f of the drift's, want about 0.2", got)
	}
	one := n.estimate(sampled(n, 1, 1, 1, 5, 1), 1)
	near(t, "level of one trial", one.level, n.drift*n.drift)
	near(t, "its error", one.errors[0][0], n.trial*n.trial+1e-6)
	near(t, "level without trials", n.estimate(nil, 0).level, n.drift*n.drift)
}

// Two cells, of which one is 10 % faster, in turn; others withhold up to a fifth, mostly while the faster one is measured, and throughput falls by 1.4 times
// that. Without that in mind the faster one looks slower. Of two trials that do not differ nothing is learned but what is usual.
func TestWhatOthersWithholdIsTakenOut(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	p := g.pools[0]
	cells := []*track{{key: "slower"}, {key: "faster"}}
	p.tracks = cells
	for i := range 40 {
		cell, withheld := i%2, 0.01*float64(i%5)
		if cell == 1 {
			withheld += 0.12
		}
		x := math.Log(1000) + 0.1*float64(cell) - 1.4*withheld
		r := reading{at: float64(3 * i), seconds: 1, withheld: withheld, logs: []float64{x, math.NaN()}, errors: make([]float64, 2)}
		cells[cell].readings = append(cells[cell].readings, r)
	}
	e := g.estimate(0)
	if gap := e.means[e.columns[cells[1]]] - e.means[e.columns[cells[0]]]; math.Abs(gap-0.1) > 0.03 {
		t.Errorf("the faster cell is faster by %.3f, want 0.1 (%+v)", gap, e.withheld)
	}
	if math.Abs(e.withheld.Slope+1.4) > 0.2 || math.Abs(e.withheld.Mean-0.08) > 1e-9 {
		t.Errorf("%+v, want a slope of -1.4 about 0.08", e.withheld)
	}
	if v := learnWithheld([]observation{{withheld: 0.1}, {withheld: 0.1}}, -1, 0.01); v.Slope != -1 {
		t.Errorf("slope %g where trials do not differ, want the usual one", v.Slope)
	}
}

// Where nobody took anything, beliefs are the same to the last digit as without the control variate.
func TestNothingIsTakenOutWithoutOthers(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	cells := []*track{{key: "a"}, {key: "b"}}
	g.pools[0].tracks = cells
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		r := reading{at: float64(3 * i), seconds: 1, logs: []float64{7 + 0.05*random.NormFloat64(), math.NaN()}, errors: []float64{0.02, 0}}
		cells[i%2].readings = append(cells[i%2].readings, r)
	}
	list, columns := g.observe(0, g.rate(0))
	n, _ := learnNoise(list, g.models[0].usualNoise())
	want, got := n.estimate(list, len(columns)), g.estimate(0)
	for i := range want.means {
		if got.means[i] != want.means[i] || got.errors[i][i] != want.errors[i][i] {
			t.Errorf("cell %d: %g ± %g, want %g ± %g", i, got.means[i], got.errors[i][i], want.means[i], want.errors[i][i])
		}
	}
}
