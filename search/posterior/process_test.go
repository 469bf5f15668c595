package posterior

import (
	"math"
	"testing"
	"unique"

	"tuner/measure"
)

// fixed makes a process of one part with given scales, over trials whose cells have the prediction
// 0.
func fixed(t *testing.T, s scales, list []observation) *process {
	t.Helper()
	p := newProcess(measure.Throughput, list)
	x, ok := p.condition(s)
	if !ok {
		t.Fatal("the covariance is not positive definite")
	}
	p.prepare(&x)
	x.probability = 1
	p.parts = []part{x}
	return p
}

func spot(name string) site { return site{Coordinates: named(name, name), isKnown: true} }

func named(pool, server string) Coordinates {
	return Coordinates{pool: unique.Make(pool), server: unique.Make(server)}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %.6g, want %.6g", what, got, want)
	}
}

// For trials of one cell with independent errors, the posterior is the conjugate normal. n values y
// with variance s² under a prior with variance g² have the mean g²·Σy/(n·g²+s²) and the variance
// g²·s²/(n·g²+s²).
func TestOneCellIsTheConjugateNormal(t *testing.T) {
	t.Parallel()
	const g, s = 0.3, 0.1
	var list []observation
	sum := 0.0
	for i, y := range []float64{0.5, 0.4, 0.6, 0.45} {
		list = append(list, observation{site: spot("a"), at: float64(1000 * i), launch: i, log: y})
		sum += y
	}
	p := fixed(t, scales{global: g, trial: s, tau: 1}, list)
	got := p.joint([]site{spot("a")}).At(0)
	near(t, "mean", got.Mean, g*g*sum/(4*g*g+s*s), 1e-9)
	near(t, "variance", got.Deviation*got.Deviation, g*g*s*s/(4*g*g+s*s), 1e-9)
	// Another pool shares the global part, so its mean is the same. Its variance is larger by the
	// variance of its own parts, which is 0 here.
	near(t, "the other pool's mean", p.joint([]site{spot("b")}).At(0).Mean, got.Mean, 1e-9)
}

// Two cells are measured in turn on a machine whose speed drifts. The common part cancels in their
// difference. Take n trials each, errors s, and a speed that is equal for both trials of a turn.
// The difference then has the variance 2·s²/n under a flat prior.
func TestTurnsCancelTheMachine(t *testing.T) {
	t.Parallel()
	const s, n = 0.02, 20
	var list []observation
	for i := range n {
		speed := 0.1 * math.Sin(float64(i)) // common to both
		list = append(list,
			observation{site: spot("a"), at: float64(20 * i), launch: 1, log: 1.10 + speed},
			observation{site: spot("b"), at: float64(20 * i), launch: 2, log: 1.00 + speed})
	}
	p := fixed(t, scales{pool: 10, trial: s, fast: 0.1, tau: 1}, list)
	j := p.joint([]site{spot("a"), spot("b")})
	d := j.Difference(0, 1)
	near(t, "difference", d.Mean, 0.10, 1e-3)
	near(t, "its deviation", d.Deviation, s*math.Sqrt(2.0/n), 2e-4)
	if alone := math.Sqrt(2) * s / math.Sqrt(n); j.At(0).Deviation < alone/math.Sqrt(2) {
		t.Errorf("a cell by itself has the deviation %.4f, less than its own errors' %.4f", j.At(0).Deviation, alone/math.Sqrt(2))
	}
}

// The formula of the mean of an Ornstein-Uhlenbeck process over the campaign equals a sum over
// small steps.
func TestAverageOfTheCourse(t *testing.T) {
	t.Parallel()
	s := &scales{fast: 0.05, slow: 0.08, tau: 40}
	const begin, end, steps = 10.0, 130.0, 4000
	at := func(i int) float64 { return begin + (end-begin)*(float64(i)+0.5)/steps }
	one, two := 0.0, 0.0
	for i := range steps {
		one += s.course(at(i)-33) / steps
		two += s.average(at(i), begin, end) / steps
	}
	near(t, "covariance with the mean", s.average(33, begin, end), one, 1e-6)
	near(t, "variance of the mean", s.spread(begin, end), two, 1e-6)
}

// The slope against the CPU time that others take is learned from trials, against the prior. Here
// throughput falls with the power 1.4 of the remaining CPU time.
func TestSlopeIsLearned(t *testing.T) {
	t.Parallel()
	var list []observation
	for i := range 60 {
		w := 0.3*float64(i%7)/6 - 0.15
		list = append(list, observation{site: spot("a"), at: float64(1000 * i), launch: i, withheld: w, log: 2 - 1.4*w})
	}
	p := fixed(t, scales{global: 3, trial: 0.01, tau: 1}, list)
	near(t, "slope", p.slope(), 1.4, 0.01)
	near(t, "level at the mean", p.joint([]site{spot("a")}).At(0).Mean, 2, 0.002)
}

// One spoiled trial among ten hardly moves the mean once trials are weighted.
func TestSpoiledTrialsCountLittle(t *testing.T) {
	t.Parallel()
	var list []observation
	for i := range 10 {
		list = append(list, observation{site: spot("a"), at: float64(1000 * i), launch: i, log: 1 + 0.01*float64(i%3-1)})
	}
	list[4].log = 0.5
	p := fixed(t, scales{global: 3, trial: 0.02, tau: 1}, list)
	before := p.joint([]site{spot("a")}).At(0).Mean
	p.weigh(p.parts[0].scales)
	x, _ := p.condition(p.parts[0].scales)
	p.prepare(&x)
	x.probability = 1
	p.parts = []part{x}
	after := p.joint([]site{spot("a")}).At(0).Mean
	if math.Abs(after-1) > 0.01 || math.Abs(before-1) < 0.03 {
		t.Errorf("mean %.3f before and %.3f after weighing, want 0.95 and 1.00", before, after)
	}
}

// slope returns the change of the metric's logarithm per change of the logarithm of the remaining
// CPU time.
func (p *process) slope() float64 {
	sum := 0.0
	for _, x := range p.parts {
		pull := 0.0
		for i, o := range p.list {
			pull += o.withheld * x.pulls[i]
		}
		sum += x.probability * (1 - p.direction*slopeDeviation*slopeDeviation*pull)
	}
	return sum
}

// ask returns the answers of the parts about sites.
func (p *process) ask(sites []site) asked {
	cells := make([]*answered, len(sites))
	for i := range sites {
		cells[i] = p.answer(&sites[i])
	}
	return p.together(cells)
}

// joint returns the joint distribution of the logarithms at sites.
func (p *process) joint(sites []site) Joint {
	a := p.ask(sites)
	means := make([]float64, len(sites))
	for i, c := range a.cells {
		means[i] = c.mean
	}
	return newJoint(means, a.covariance)
}
