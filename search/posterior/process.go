package posterior

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"tuner/measure"
)

// observation is what one trial tells of one metric.
type observation struct {
	site
	at       float64 // s
	launch   int
	withheld float64 // less the campaign's mean, on log scale
	log      float64
	variance float64 // that the windows explain
}

func observations(readings []reading, metric int, o Options) []observation {
	p := Posterior{options: o}
	name, mean := p.metrics()[metric], p.withheldMean(readings)
	sites := map[cellKey]site{} // a prediction may take a simulation
	var list []observation
	for _, r := range readings {
		v := r.values[metric]
		if !v.isKnown {
			continue
		}
		s, known := sites[r.cell.key()]
		if !known {
			s = siteOf(r.cell, name, o)
			sites[r.cell.key()] = s
		}
		list = append(list, observation{s, r.at, r.launch, r.withheld - mean, v.log, v.variance})
	}
	return list
}

// The reach of the kernel on the scale of its coordinates: of the logarithms of load and batch, and
// of the queue delay.
var (
	reach       = [3]float64{1.2, 0.7, 0.7}
	sharedReach = [2]float64{1.2, 0.7}
)

// ownReach is the reach in the load of what one batcher alone has.
const ownReach = 0.7

// lasting is how long the fast part of the machine's speed lasts. On recordings of four models trials
// of different engines correlate with 0.5 to 0.7 within 3 s and with 0.2 to 0.35 after 10 s.
const lasting = 5.0 // s

// scales are the standard deviations that a logarithm is made of.
type scales struct {
	global float64 // all cells together
	shared float64 // alike in all pools for near loads per instance and batches
	pool   float64 // all cells of a pool
	smooth float64 // alike for near cells of a pool
	own    float64 // alike for near loads of a batcher
	cell   float64 // a server at a load alone: one more request may wait for one more batch

	trial  float64 // of a trial alone, beyond what its windows explain
	within float64 // factor of the deviation that its windows tell: an interval of few requests is a guess
	fast   float64 // the machine's speed, lasting seconds
	slow   float64 // the same, lasting minutes
	tau    float64 // s, how long the slow part lasts
	launch float64 // of an engine process
}

// likeness is how alike two sites are: what the kernel needs of a pair, whatever its scales.
type likeness struct {
	shared, smooth, own      float64
	isSamePool, isSameServer bool
}

func likenessOf(a, b site) likeness {
	l := likeness{shared: rbf(a.shared[:], b.shared[:], sharedReach[:]), isSamePool: a.pool == b.pool}
	if !l.isSamePool {
		return l
	}
	l.smooth = rbf(a.at[:], b.at[:], reach[:])
	if a.batcher == b.batcher {
		d := (a.at[0] - b.at[0]) / ownReach
		l.own = math.Exp(-d * d / 2)
	}
	l.isSameServer = a.server == b.server
	return l
}

// kernel is the covariance of what two cells have beyond their predictions.
func (s *scales) kernel(l likeness) float64 {
	c := s.global*s.global + s.shared*s.shared*l.shared
	if !l.isSamePool {
		return c
	}
	c += s.pool*s.pool + s.smooth*s.smooth*l.smooth + s.own*s.own*l.own
	if l.isSameServer {
		c += s.cell * s.cell
	}
	return c
}

func rbf(a, b, reach []float64) float64 {
	sum := 0.0
	for i, x := range a {
		d := (x - b[i]) / reach[i]
		sum += d * d
	}
	return math.Exp(-sum / 2)
}

// course is the covariance of the machine's speed at two instants: two Ornstein-Uhlenbeck processes.
func (s *scales) course(t float64) float64 {
	t = math.Abs(t)
	return s.fast*s.fast*math.Exp(-t/lasting) + s.slow*s.slow*math.Exp(-t/s.tau)
}

// average is the covariance of the speed at an instant with its mean over the campaign, which lasts
// from begin to end: ∫ σ²·exp(−|t−at|/τ) dt / T, of both processes.
func (s *scales) average(at, begin, end float64) float64 {
	mean := func(sd, tau float64) float64 {
		long := end - begin
		if long <= 0 {
			return sd * sd
		}
		inside := 2 - math.Exp(-(at-begin)/tau) - math.Exp(-(end-at)/tau)
		return sd * sd * tau / long * inside
	}
	return mean(s.fast, lasting) + mean(s.slow, s.tau)
}

// spread is the variance of the speed's mean over the campaign.
func (s *scales) spread(begin, end float64) float64 {
	of := func(sd, tau float64) float64 {
		x := (end - begin) / tau
		if x < 1e-6 {
			return sd * sd
		}
		return sd * sd * 2 / x * (1 - (1-math.Exp(-x))/x)
	}
	return of(s.fast, lasting) + of(s.slow, s.tau)
}

// The normal prior of the slope: what others take is lost in proportion, more or less.
const slopeDeviation = 0.5

// process is a Gaussian process over the cells that was conditioned on trials (Rasmussen and Williams,
// Gaussian Processes for Machine Learning, 2006, §2.2). Its covariance of two trials is
//
//	kernel(cells) + course(instants) + launch²·[same process] + 0.25·withheld·withheld + noise·[same trial]
//
// It is a mixture of such processes with different scales, each with its probability.
type process struct {
	metric     measure.Metric
	direction  float64 // of the metric as the machine gets faster: 1, −1, or 0
	centre     float64 // where nothing predicts
	begin, end float64 // s, of the campaign
	list       []observation
	sites      []site // of the trials, each once
	places     []int  // of each trial's site
	alike      [][]likeness
	weights    []float64 // of each trial: below 1 for what is far from all else
	parts      []part

	drawn       []drawn // scales of the parts
	learnedFrom int     // trials
}

// part is a process with certain scales.
type part struct {
	scales
	probability float64
	factor      *mat.Cholesky
	pulls       []float64 // inverse covariance · (logarithms − predictions)
}

// arrange lists the sites of the trials once each, and how alike they are.
func (p *process) arrange() {
	known := map[string]int{}
	for _, o := range p.list {
		key := o.server + "|" + o.batcher // equal servers have one site but for their predictions
		if o.isKnown {
			key += fmt.Sprint(o.prior)
		}
		at, ok := known[key]
		if !ok {
			at = len(p.sites)
			known[key], p.sites = at, append(p.sites, o.site)
		}
		p.places = append(p.places, at)
	}
	p.alike = make([][]likeness, len(p.sites))
	for i, a := range p.sites {
		p.alike[i] = make([]likeness, len(p.sites))
		for j, b := range p.sites {
			p.alike[i][j] = likenessOf(a, b)
		}
	}
}

// direction is which way a metric goes as the machine gets faster.
func direction(metric measure.Metric) float64 {
	_, isPercentile := metric.Quantile()
	switch {
	case metric == measure.Throughput:
		return 1
	case isPercentile, metric == measure.LatencyAvg, metric == measure.QueueTime:
		return -1
	}
	return 0
}

// expected is the logarithm of a trial before anything is learned from it.
func (p *process) expected(o observation) float64 {
	return p.prediction(o.site) - p.direction*o.withheld
}

func (p *process) prediction(s site) float64 {
	if s.isKnown {
		return s.prior
	}
	return p.centre
}

// noise is the variance of a trial's own error.
func (p *process) noise(i int, s *scales) float64 { return s.ownVariance(p.list[i]) / p.weights[i] }

// ownVariance is the variance of a trial's own error before it is weighed.
func (s *scales) ownVariance(o observation) float64 {
	return s.trial*s.trial + s.within*s.within*o.variance
}

// condition makes a part of certain scales, and returns the logarithm of the trials' likelihood under
// it, up to a constant. It is false where the covariance is not positive definite.
func (p *process) condition(s scales) (part, float64, bool) {
	n := len(p.list)
	k := mat.NewSymDense(n, nil)
	rest := mat.NewVecDense(n, nil)
	for i, a := range p.list {
		rest.SetVec(i, a.log-p.expected(a))
		alike := p.alike[p.places[i]]
		for j := range i + 1 {
			b, l := &p.list[j], alike[p.places[j]]
			c := s.kernel(l) + s.course(a.at-b.at)
			if a.launch == b.launch && l.isSamePool {
				c += s.launch * s.launch
			}
			if p.direction != 0 {
				c += slopeDeviation * slopeDeviation * a.withheld * b.withheld
			}
			if i == j {
				c += p.noise(i, &s)
			}
			k.SetSym(i, j, c)
		}
	}
	factor := &mat.Cholesky{}
	if !factor.Factorize(k) {
		return part{}, 0, false
	}
	pulls := mat.NewVecDense(n, nil)
	if err := factor.SolveVecTo(pulls, rest); !isSolved(err) {
		return part{}, 0, false
	}
	likelihood := -(mat.Dot(rest, pulls) + factor.LogDet()) / 2
	return part{scales: s, factor: factor, pulls: pulls.RawVector().Data}, likelihood, true
}

// at joins the parts' answers at sites: the moments of their mixture.
func (p *process) at(sites []site) Joint {
	n := len(sites)
	sum := newJoint(n)
	means := make([][]float64, len(p.parts))
	for k := range p.parts {
		j := p.of(&p.parts[k], sites)
		means[k] = j.Means
		for i := range n {
			sum.Means[i] += p.parts[k].probability * j.Means[i]
		}
		for i, c := range j.covariances {
			sum.covariances[i] += p.parts[k].probability * c
		}
	}
	for k := range p.parts {
		for a := range n {
			for b := range n {
				da, db := means[k][a]-sum.Means[a], means[k][b]-sum.Means[b]
				sum.covariances[a*n+b] += p.parts[k].probability * da * db
			}
		}
	}
	return sum
}

// of is what a part says of sites, on the machine as it was in the campaign's mean.
func (p *process) of(x *part, sites []site) Joint {
	n, m := len(sites), len(p.list)
	across := mat.NewDense(m, n, nil)
	averages := make([]float64, m)
	for i, o := range p.list {
		averages[i] = x.average(o.at, p.begin, p.end)
	}
	j := newJoint(n)
	for k, s := range sites {
		j.Means[k] = p.prediction(s)
		kernels := make([]float64, len(p.sites))
		for i, o := range p.sites {
			kernels[i] = x.kernel(likenessOf(s, o))
		}
		for i := range p.list {
			c := kernels[p.places[i]] + averages[i]
			across.Set(i, k, c)
			j.Means[k] += c * x.pulls[i]
		}
	}
	solved := mat.NewDense(m, n, nil)
	if err := x.factor.SolveTo(solved, across); !isSolved(err) {
		panic("a covariance that has a Cholesky factor has no solution")
	}
	var explained mat.Dense
	explained.Mul(across.T(), solved)
	level := x.spread(p.begin, p.end)
	for a := range n {
		for b := range a + 1 {
			j.set(a, b, x.kernel(likenessOf(sites[a], sites[b]))+level-explained.At(a, b))
		}
	}
	return j
}
