package posterior

import (
	"cmp"
	"math"
	"slices"
	"unique"

	"gonum.org/v1/gonum/floats"

	"tuner/measure"
)

// observation is one trial's figure of one metric.
type observation struct {
	site
	at       float64 // s
	launch   int
	withheld float64 // from the throughput, minus what the average machine withholds from it, on log scale
	log      float64
	variance float64 // explained by the windows
	seconds  float64 // of the windows
}

func observations(readings []reading, metric int, o Options) []observation {
	p := Posterior{options: o}
	name, mean := p.metrics()[metric], withheldMean(readings)
	sites := map[CellKey]site{} // a prediction may take a simulation
	var list []observation
	for _, r := range readings {
		v := r.values[metric]
		if !v.isKnown {
			continue
		}
		s, known := sites[r.cell.Key()]
		if !known {
			s = siteOf(r.cell, name, o)
			sites[r.cell.Key()] = s
		}
		list = append(list, observation{s, r.at, r.launch, r.withheld.Taken() - r.withheld.Beside(mean), v.log, v.variance, r.seconds})
	}
	return list
}

// reach is the length scale of the kernel for each coordinate: the logarithms of load and batch,
// and the queue delay.
var reach = [3]float64{1.2, 0.7, 0.7}

// lasting is the time constant of the fast part of the machine's speed. On recordings of four
// models, trials of different engines correlate with 0.5 to 0.7 within 3 s, and with 0.2 to 0.35
// after 10 s.
const lasting = 5.0 // s

// scales are the standard deviations of the components of a logarithm.
type scales struct {
	global float64 // shared by all cells
	shared float64 // shared by near cells of all pools
	pool   float64 // shared by all cells of a pool
	smooth float64 // shared by near cells of a pool
	cell   float64 // of a server at one load alone: one more request may wait for one more batch
	bare   float64 // shared by cells without a prediction; their other components are proportional to it

	trial  float64 // of a trial alone, beyond the part that its windows explain
	within float64 // factor on the deviation that its windows show: an interval from few requests is a rough estimate
	fast   float64 // the machine's speed, over seconds
	slow   float64 // the same, over minutes
	tau    float64 // s, time constant of the slow part
	launch float64 // of an engine process
}

// likeness describes how similar two sites are. It is the part of a pair's kernel that does not
// depend on the scales.
type likeness struct {
	near                     float64 // by load, batch and queue delay
	isSamePool, isSameServer bool
	isBare                   bool // neither has a prediction
	isApart                  bool // only one has a prediction, so its error carries no information about the other
}

func likenessOf(a, b *site) likeness {
	if a.isKnown != b.isKnown {
		return likeness{isApart: true}
	}
	return likeness{near: rbf(&a.at, &b.at), isSamePool: a.pool == b.pool, isSameServer: a.server == b.server, isBare: !a.isKnown}
}

// kernel returns the covariance of two cells, beyond their predictions.
func (s *scales) kernel(l likeness) float64 {
	if l.isApart {
		return 0
	}
	c := s.global*s.global + s.shared*s.shared*l.near
	if l.isBare {
		c += s.bare * s.bare * l.bare()
	}
	if !l.isSamePool {
		return c
	}
	c += s.pool*s.pool + s.smooth*s.smooth*l.near
	if l.isSameServer {
		c += s.cell * s.cell
	}
	return c
}

// bareVariance is the variance that near cells, cells of a pool, and near cells of a pool share
// without a prediction. Each is in units of the variance that all such cells share.
const bareVariance = 0.25

// bare returns the kernel of cells without a prediction, in units of bare².
func (l likeness) bare() float64 {
	c := 1 + bareVariance*l.near
	if l.isSamePool {
		c += bareVariance * (1 + l.near)
	}
	return c
}

// kernels returns the kernels of several pairs.
func (s *scales) kernels(list []likeness) []float64 {
	kernels := make([]float64, len(list), len(list)+1)
	for i, l := range list {
		kernels[i] = s.kernel(l)
	}
	return kernels
}

// kernelScales returns the scales that the kernel depends on.
func (s *scales) kernelScales() [6]*float64 {
	return [...]*float64{&s.global, &s.shared, &s.pool, &s.smooth, &s.cell, &s.bare}
}

func rbf(a, b *[3]float64) float64 {
	sum := 0.0
	for i, x := range a {
		d := (x - b[i]) / reach[i]
		sum += d * d
	}
	return math.Exp(-sum / 2)
}

// course returns the covariance of the machine's speed at two instants: two Ornstein-Uhlenbeck
// processes.
func (s *scales) course(t float64) float64 {
	t = math.Abs(t)
	return s.fast*s.fast*math.Exp(-t/lasting) + s.slow*s.slow*math.Exp(-t/s.tau)
}

// average returns the covariance of the speed at an instant with its mean over the campaign, which
// lasts from begin to end. The instant may lie outside. It is ∫ σ²·exp(−|t−at|/τ) dt / T, summed
// over both processes.
func (s *scales) average(at, begin, end float64) float64 {
	mean := func(sd, tau float64) float64 {
		long := end - begin
		if long <= 0 {
			return sd * sd * math.Exp(-math.Abs(at-begin)/tau)
		}
		covered := 2 - math.Exp(-(at-begin)/tau) - math.Exp(-(end-at)/tau)
		switch {
		case at < begin:
			covered = math.Exp((at-begin)/tau) - math.Exp((at-end)/tau)
		case at > end:
			covered = math.Exp((end-at)/tau) - math.Exp((begin-at)/tau)
		}
		return sd * sd * tau / long * covered
	}
	return mean(s.fast, lasting) + mean(s.slow, s.tau)
}

// spread returns the variance of the speed's mean over the campaign.
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

// slopeDeviation is the standard deviation of the slope's normal prior: the loss is roughly
// proportional to the CPU time that others take.
const slopeDeviation = 0.5

// process is a Gaussian process over the cells, conditioned on trials (Rasmussen and Williams,
// Gaussian Processes for Machine Learning, 2006, §2.2). Its covariance of two trials is
//
//	kernel(cells) + course(instants) + launch²·[same process] + 0.25·withheld·withheld + noise·[same trial]
//
// It is a mixture of such processes with different scales, each with its probability.
type process struct {
	metric     measure.Metric
	direction  float64       // change of the metric as the machine gets faster: 1, −1, or 0
	centre     float64       // mean of cells without a prediction
	begin, end float64       // s, of the campaign
	list       []observation // in time order
	sites      []site        // of the trials, each once
	weights    []float64     // of each trial: below 1 if it is far from all others
	parts      []part
	pairs

	drawn       []drawn // scales of the parts
	learnedFrom int     // number of trials
}

// pairs holds the parts of two trials' covariance that do not depend on the scales.
type pairs struct {
	siteOf      []int        // index of each trial's site
	alike       [][]likeness // of two sites
	fast        lower        // exp(−gap/lasting) of two trials
	sameProcess [][]int      // by trial: the trials of its engine process up to itself
}

// part is a process with fixed scales.
type part struct {
	scales
	probability float64
	factor      lower
	pulls       []float64 // inverse covariance · (logarithms − predictions)
	answers
}

// answers holds the sums from which a part answers. Apart from the machine's course, a cell has the
// same covariance with all trials of a site. So sums over sites replace the trials, and the time of
// a question does not grow with the number of trials. Each list has an element for each site, and a
// last one for the course.
type answers struct {
	pull      []float64   // change of the mean
	explained [][]float64 // quadratic form by which the variance falls
}

// newProcess sorts trials by time, and computes the common parts of their pairs.
func newProcess(metric measure.Metric, list []observation) *process {
	p := &process{metric: metric, direction: Direction(metric), list: slices.Clone(list), centre: centre(list)}
	slices.SortStableFunc(p.list, func(a, b observation) int { return cmp.Compare(a.at, b.at) })
	first := slices.IndexFunc(p.list, func(o observation) bool { return o.at >= 0 })
	if first >= 0 { // an earlier campaign's trials do not count in this one's mean
		p.begin, p.end = p.list[first].at, p.list[len(list)-1].at
	}
	p.weights = make([]float64, len(list))
	for i := range p.weights {
		p.weights[i] = 1
	}
	p.arrange()
	return p
}

// arrange lists the sites of the trials, each once, and computes the common parts of their pairs.
func (p *process) arrange() {
	type identity struct { // equal servers share a site unless their predictions differ
		server  unique.Handle[string]
		isKnown bool
		prior   float64
	}
	known := map[identity]int{}
	p.sites, p.pairs = nil, pairs{fast: newLower(len(p.list))}
	for i, o := range p.list {
		key := identity{o.server, o.isKnown, o.prior}
		at, ok := known[key]
		if !ok {
			at = len(p.sites)
			known[key], p.sites = at, append(p.sites, o.site)
		}
		p.siteOf = append(p.siteOf, at)
		var sameProcess []int
		for j, other := range p.list[:i+1] {
			p.fast[i][j] = math.Exp((other.at - o.at) / lasting)
			if other.launch == o.launch && other.pool == o.pool {
				sameProcess = append(sameProcess, j)
			}
		}
		p.sameProcess = append(p.sameProcess, sameProcess)
	}
	p.alike = p.likenesses(p.sites)
}

// likenesses returns the likeness of some sites to the sites of the trials.
func (p *process) likenesses(sites []site) [][]likeness {
	alike := make([][]likeness, len(sites))
	for i := range sites {
		alike[i] = make([]likeness, len(p.sites))
		for j := range p.sites {
			alike[i][j] = likenessOf(&sites[i], &p.sites[j])
		}
	}
	return alike
}

// Direction returns the direction in which a measured metric changes as the machine gets faster: 1
// up, −1 down, 0 neither.
func Direction(metric measure.Metric) float64 {
	_, isPercentile := metric.Quantile()
	switch {
	case metric == measure.Throughput, metric.IsGoodput():
		return 1
	case isPercentile, metric == measure.LatencyAvg, metric == measure.QueueTime:
		return -1
	}
	return 0
}

// expected returns the expected logarithm of a trial before learning.
func (p *process) expected(o observation) float64 {
	return p.prediction(o.site) - p.direction*o.withheld
}

func (p *process) prediction(s site) float64 {
	if s.isKnown {
		return s.prior
	}
	return p.centre
}

// ownVariance returns the variance of a trial's own error without its weight.
func (s *scales) ownVariance(o observation) float64 {
	return s.trial*s.trial + s.within*s.within*o.variance
}

// covariance returns the covariance of the trials under given scales.
func (p *process) covariance(s *scales) lower {
	k := newLower(len(p.list))
	kernels := make([][]float64, len(p.sites))
	for i, list := range p.alike {
		kernels[i] = s.kernels(list)
	}
	withheld := make([]float64, len(p.list))
	if p.direction != 0 {
		for i, o := range p.list {
			withheld[i] = slopeDeviation * o.withheld
		}
	}
	// exp(−gap/τ) between a row's trial and each earlier one: the product over the gaps between
	slow := make([]float64, len(p.list))
	fastVariance, slowVariance, launchVariance := s.fast*s.fast, s.slow*s.slow, s.launch*s.launch
	for i, row := range k {
		if i > 0 {
			floats.Scale(math.Exp((p.list[i-1].at-p.list[i].at)/s.tau), slow[:i])
		}
		slow[i] = 1
		kernel, fast := kernels[p.siteOf[i]], p.fast[i]
		for j := range row {
			row[j] = kernel[p.siteOf[j]] + fastVariance*fast[j] + slowVariance*slow[j] + withheld[i]*withheld[j]
		}
		for _, j := range p.sameProcess[i] {
			row[j] += launchVariance
		}
		row[i] += s.ownVariance(p.list[i]) / p.weights[i]
	}
	return k
}

// factor returns the factor of the trials' covariance, and the residuals of the trials in its
// coordinates. The third result is the logarithm of their likelihood up to a constant. It returns
// false if the covariance is not positive definite.
func (p *process) factor(s *scales) (factor lower, rest []float64, likelihood float64, ok bool) {
	factor = p.covariance(s)
	if !factor.factorize() {
		return nil, nil, 0, false
	}
	rest = make([]float64, len(p.list))
	for i, o := range p.list {
		rest[i] = o.log - p.expected(o)
	}
	factor.forward(rest, 0)
	return factor, rest, -(floats.Dot(rest, rest) + factor.logDet()) / 2, true
}

// likelihood returns the logarithm of the trials' likelihood under given scales, up to a constant.
// It returns false if their covariance is not positive definite.
func (p *process) likelihood(s scales) (float64, bool) {
	_, _, likelihood, ok := p.factor(&s)
	return likelihood, ok
}

// condition makes a part with given scales that cannot answer yet. It returns false if the
// covariance is not positive definite.
func (p *process) condition(s scales) (part, bool) {
	factor, pulls, _, ok := p.factor(&s)
	if !ok {
		return part{}, false
	}
	factor.backward(pulls)
	return part{scales: s, factor: factor, pulls: pulls}, true
}

// prepare computes the sums from which a part answers.
func (p *process) prepare(x *part) {
	n, m := len(p.sites), len(p.list)
	columns := make([][]float64, n+1)
	for i := range columns {
		columns[i] = make([]float64, m)
	}
	first := make([]int, n+1) // by column: earlier trials have zeros there
	for i := range n {
		first[i] = slices.Index(p.siteOf, i)
	}
	for i, o := range p.list {
		columns[p.siteOf[i]][i] = 1
		columns[n][i] = x.average(o.at, p.begin, p.end)
	}
	x.pull, x.explained = make([]float64, n+1), make([][]float64, n+1)
	for i, column := range columns {
		x.pull[i] = floats.Dot(column, x.pulls)
		x.factor.forward(column, first[i])
	}
	for i := range columns {
		x.explained[i] = make([]float64, n+1)
		for j := range i + 1 {
			from := max(first[i], first[j])
			x.explained[i][j] = floats.Dot(columns[i][from:], columns[j][from:])
			x.explained[j][i] = x.explained[i][j]
		}
	}
}

// asked holds the answers of the parts about some cells, ready for covariances.
//
// The covariance of a and b is the sum over parts, with probabilities p, of p·(kernel + level −
// uᵀ·E·u′ + d·d′). Here u and u′ are the kernels of a and b with the trials' sites. E is the part
// that the trials explain. d and d′ are the part's means minus the means of all. The kernel is
// linear in the variances, so one kernel of the mean variances stands for all. The rest is one
// product of two long lists, with an element for each summand.
type asked struct {
	sites       []site
	means       []float64
	mean        scales // with mean variances
	level       float64
	left, right [][]float64
}

// ask returns the answers of the parts about sites, for the machine's mean speed in the campaign.
func (p *process) ask(sites []site) asked {
	n, width := len(p.sites)+1, len(p.sites)+2 // elements in the lists of a part
	a := asked{sites: sites, means: make([]float64, len(sites)), mean: p.meanVariances()}
	for k := range p.parts {
		a.level += p.parts[k].probability * p.parts[k].spread(p.begin, p.end)
	}
	left, right := make([]float64, len(sites)*len(p.parts)*width), make([]float64, len(sites)*len(p.parts)*width)
	for i, alike := range p.likenesses(sites) {
		l, r := left[i*len(p.parts)*width:][:len(p.parts)*width], right[i*len(p.parts)*width:][:len(p.parts)*width]
		moves := make([]float64, len(p.parts)) // deviation of the part's mean
		for k := range p.parts {
			x := &p.parts[k]
			u := append(x.kernels(alike), 1)
			moves[k] = floats.Dot(u, x.pull)
			a.means[i] += x.probability * moves[k]
			for j, row := range x.explained {
				l[k*width+j] = x.probability * u[j]
				r[k*width+j] = floats.Dot(row, u)
			}
		}
		for k := range p.parts {
			d := moves[k] - a.means[i]
			l[k*width+n], r[k*width+n] = p.parts[k].probability*d, -d
		}
		a.means[i] += p.prediction(sites[i])
		a.left, a.right = append(a.left, l), append(a.right, r)
	}
	return a
}

// covariance returns the covariance of two of the cells, by their indices.
func (a *asked) covariance(i, j int) float64 {
	return a.mean.kernel(likenessOf(&a.sites[i], &a.sites[j])) + a.level - floats.Dot(a.left[i], a.right[j])
}

// meanVariances returns scales whose kernel is the mean of the parts' kernels.
func (p *process) meanVariances() scales {
	var s scales
	for _, x := range p.parts {
		for i, v := range x.kernelScales() {
			*s.kernelScales()[i] += x.probability * *v * *v
		}
	}
	for _, v := range s.kernelScales() {
		*v = math.Sqrt(*v)
	}
	return s
}
