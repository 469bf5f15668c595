package posterior

import (
	"math"
	"math/rand/v2"
	"slices"

	"tuner/measure"
)

// The scales that are expected before a campaign, as standard deviations on log scale. They come
// from recordings of four models (minilm, cnn, mlp, lstm; docs/design/posterior.md).
const (
	usualGlobal = 0.3  // of all predictions together; not learned, since there is one campaign
	usualPool   = 0.35 // of a pool
	usualNear   = 0.2  // of near cells, in one pool and in all
	usualOwn    = 0.03 // of a server at one load, and of a trial
	usualSpeed  = 0.04 // of the machine, over seconds and over minutes
	usualLaunch = 0.01 // of an engine process
	usualBare   = 1.0  // of a cell without a prediction
	usualTau    = 90.0 // s, time constant of the machine's speed over minutes
	tailFactor  = 2.0  // of a percentile, on the scales that are not about speed
)

// usual returns the scales that are expected before a campaign. A faster machine or pool moves all
// metrics alike, by Little's law. What else a prediction misses is larger for a percentile.
func usual(metric measure.Metric) scales {
	s := scales{
		global: usualGlobal, pool: usualPool, smooth: usualNear, cell: usualOwn, bare: usualBare, shared: usualNear,
		trial: usualOwn, within: 1, fast: usualSpeed, slow: usualSpeed, tau: usualTau, launch: usualLaunch,
	}
	if metric != measure.Throughput && metric != measure.LatencyAvg {
		for _, x := range []*float64{&s.global, &s.smooth, &s.cell, &s.shared, &s.trial, &s.launch} {
			*x *= tailFactor
		}
	}
	return s
}

// surprise is the standard deviation of the logarithm of a scale around the usual one: a factor of
// 2.2 in either direction.
const surprise = 0.8

// Parameters of learning the scales. On simulated campaigns 20 draws in 4 steps give intervals with
// 93 to 97 % coverage, and these values 94 to 96 %. Five times as many change nothing.
const (
	draws   = 32 // sets of scales in a step
	steps   = 5  // of the importance sampling
	enough  = 8  // least effective number of sets behind a step's mean
	freedom = 4  // degrees of freedom of Student's distribution of a trial's own error
	rounds  = 2  // of weighting trials
	newest  = 80 // number of last trials from which scales are learned: the time grows with its cube
)

// Growth is the factor by which the number of trials must grow before scales are learned again.
// Below it they hardly change.
const Growth = 1.25

// learn finds the scales that make the trials likely, weights the trials, and conditions the
// process.
//
// It draws scales. Each set is weighted by the likelihood of the trials and by its distance from
// the usual scales. Each step draws around the mean of the step before (adaptive importance
// sampling; Cappé, Guillin, Marin and Robert, Journal of Computational and Graphical Statistics 13,
// 2004). The result is an average over the sets of the last step. A single set would make the
// process overconfident if few cells were measured.
//
// like is the process of fewer trials of the same campaign, or nil. Its scales are kept until the
// number of trials has grown by a quarter (Growth). Below that they hardly change.
func learn(metric measure.Metric, list []observation, like *process, isSketch bool) *process {
	p := newProcess(metric, list)
	common := usual(metric)
	if like != nil && isSketch {
		p.weigh(like.mean(common.global))
		p.parts = []part{p.only(like.blended())}
		return p
	}
	if like != nil && float64(len(list)) < Growth*float64(like.learnedFrom) {
		p.learnedFrom = like.learnedFrom
		p.weigh(like.mean(common.global))
		p.average(like.drawn)
		return p
	}
	p.learnedFrom = len(list)
	recent := p.recent()
	near := around(common)
	for step := range steps {
		if step == steps-2 {
			s := near.scales()
			s.global = common.global
			p.weigh(s)
		}
		list := recent.draw(near, common, step)
		if step == steps-1 {
			truncate(list)
			p.average(list)
			break
		}
		near = near.towards(list)
	}
	return p
}

// centre returns the mean of the trials without a prediction.
func centre(list []observation) float64 {
	sum, n := 0.0, 0.0
	for _, o := range list {
		if !o.isKnown {
			sum, n = sum+o.log, n+1
		}
	}
	return sum / max(n, 1)
}

// recent returns the process of the newest trials alone. They keep the weights of the full process.
func (p *process) recent() *process {
	if len(p.list) <= newest {
		return p
	}
	q, from := *p, len(p.list)-newest
	q.list, q.weights = p.list[from:], p.weights[from:]
	q.arrange()
	return &q
}

// drawn is a possible set of scales with the logarithm of its weight. The weights sum up to 1.
type drawn struct {
	scales
	log float64
}

// cloud is the distribution from which scales are drawn: independent normal distributions on log
// scale.
type cloud struct{ means, deviations []float64 }

// around returns the cloud of the usual scales.
func around(s scales) cloud {
	means := s.logs()
	return cloud{means, slices.Repeat([]float64{surprise}, len(means))}
}

func (c cloud) scales() scales { return scalesOf(c.means) }

// towards returns a cloud around drawn scales. A few likely sets would make it collapse, so a power
// flattens the weights until enough sets count. Without any set it stays where it is.
func (c cloud) towards(list []drawn) cloud {
	if len(list) == 0 {
		return c
	}
	weights := make([]float64, len(list))
	for power := 1.0; ; power /= 2 {
		sum, squares := 0.0, 0.0
		for i, d := range list {
			weights[i] = math.Exp(power * d.log)
			sum, squares = sum+weights[i], squares+weights[i]*weights[i]
		}
		for i := range weights {
			weights[i] /= sum
		}
		if sum*sum/squares >= min(enough, float64(len(list))/2) {
			break
		}
	}
	logs := make([][]float64, len(list))
	for k, d := range list {
		logs[k] = d.logs()
	}
	next := cloud{make([]float64, len(c.means)), make([]float64, len(c.means))}
	for i := range next.means {
		for k := range logs {
			next.means[i] += weights[k] * logs[k][i]
		}
		for k := range logs {
			x := logs[k][i] - next.means[i]
			next.deviations[i] += weights[k] * x * x
		}
		next.deviations[i] = max(math.Sqrt(next.deviations[i]), surprise/8)
	}
	return next
}

// draw makes a step's sets of scales with their weights: likelihood times prior, divided by the
// density from which they are drawn.
func (p *process) draw(from cloud, common scales, step int) []drawn {
	var list []drawn
	most, usual := math.Inf(-1), common.logs()
	random := rand.New(rand.NewPCG(uint64(step), uint64(len(p.list)))) // the same trials give the same draws
	desk := p.newDesk()
	for range draws {
		logs, weight := make([]float64, len(from.means)), 0.0
		for k := range logs {
			z := random.NormFloat64()
			logs[k] = from.means[k] + from.deviations[k]*z
			prior := (logs[k] - usual[k]) / surprise
			weight += (z*z-prior*prior)/2 + math.Log(from.deviations[k])
		}
		s := scalesOf(logs)
		s.global = common.global
		if likelihood, ok := p.factor(&s, desk); ok && isFinite(likelihood) {
			list = append(list, drawn{s, likelihood + weight})
			most = max(most, likelihood+weight)
		}
	}
	normalize(list, most)
	return list
}

// normalize scales the weights to a sum of 1. most is the logarithm of the largest.
func normalize(list []drawn, most float64) {
	sum := 0.0
	for _, d := range list {
		sum += math.Exp(d.log - most)
	}
	for i := range list {
		list[i].log -= most + math.Log(sum)
	}
}

// truncate limits the weights to their mean times the root of their number (Ionides, Truncated
// Importance Sampling, JCGS 17, 2008). With few sets in many dimensions, one set is often by far
// the likeliest by chance. Then the process would be as certain as if its scales were known.
func truncate(list []drawn) {
	bound := -math.Log(float64(len(list))) / 2
	for i := range list {
		list[i].log = min(list[i].log, bound)
	}
	normalize(list, bound)
}

// logs returns the logarithms of the learned scales. The global scale is not learned, since there is
// one campaign.
func (s scales) logs() []float64 {
	list := []float64{s.shared, s.pool, s.smooth, s.cell, s.trial, s.within, s.fast, s.slow, s.tau, s.launch, s.bare}
	for i, x := range list {
		list[i] = math.Log(x)
	}
	return list
}

func scalesOf(logs []float64) scales {
	e := func(i int) float64 { return math.Exp(logs[i]) }
	return scales{
		shared: e(0), pool: e(1), smooth: e(2), cell: e(3),
		trial: e(4), within: e(5), fast: e(6), slow: e(7), tau: e(8), launch: e(9), bare: e(10),
	}
}

// average keeps the sets of scales that are at least about as probable as a step's mean, and conditions
// the whole process on each. One more in the number keeps sets that are all equal.
func (p *process) average(list []drawn) {
	sum := 0.0
	for _, c := range list {
		if math.Exp(c.log)*(draws+1) < 1 {
			continue
		}
		if x, ok := p.condition(c.scales); ok {
			p.prepare(&x)
			x.probability = math.Exp(c.log)
			p.parts, p.drawn = append(p.parts, x), append(p.drawn, c)
			sum += x.probability
		}
	}
	for i := range p.parts {
		p.parts[i].probability /= sum
	}
}

// only returns a part that is the whole process.
func (p *process) only(s scales) part {
	x, ok := p.condition(s)
	if !ok {
		panic("the covariance of the trials is not positive definite under the mean scales")
	}
	p.prepare(&x)
	x.probability = 1
	return x
}

// mean returns the mean of the kept scales on log scale.
func (p *process) mean(global float64) scales {
	sum, all := make([]float64, len(scales{}.logs())), 0.0
	for _, d := range p.drawn {
		w := math.Exp(d.log)
		all += w
		for i, x := range d.logs() {
			sum[i] += w * x
		}
	}
	for i := range sum {
		sum[i] /= all
	}
	s := scalesOf(sum)
	s.global = global
	return s
}

// weigh gives each trial a weight by its distance from the estimate of all, as if its own error had
// Student's distribution (Lange, Little and Taylor, JASA 84, 1989). With ν degrees of freedom, and
// the error's mean e and variance v given all trials, the weight is (ν+1)/(ν + (e²+v)/noise). So a
// window that a neighbour has spoiled counts little, without a rule that drops windows.
func (p *process) weigh(s scales) {
	for range rounds {
		x, ok := p.condition(s)
		if !ok {
			return
		}
		inverse := x.factor.inverseDiagonal()
		for i := range p.weights {
			own := s.ownVariance(&p.list[i])
			d := own / p.weights[i]
			e := d * x.pulls[i]
			v := max(d-d*d*inverse[i], 0)
			p.weights[i] = (freedom + 1) / (freedom + (e*e+v)/own)
		}
	}
}
