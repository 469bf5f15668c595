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
		s, known := sites[r.key]
		if !known {
			s = siteOf(r.cell, r.key, name, o)
			sites[r.key] = s
		}
		list = append(list, observation{s, r.at, r.launch, r.withheld.Taken() - r.withheld.Beside(mean), v.log, v.variance, r.seconds})
	}
	return list
}

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

// likeness describes how similar two sites are: the factor of each variance in their kernel. It is the
// part of a pair's kernel that does not depend on the scales.
type likeness struct {
	global float64 // 0 if only one has a prediction, so that its error carries no information about the other; else 1
	shared float64 // by load, batch and queue delay
	pool   float64 // 1 in one pool
	smooth float64 // as shared, in one pool
	cell   float64 // 1 of one server
	bare   float64 // 0 unless neither has a prediction
}

// bareVariance is the variance that near cells, cells of a pool, and near cells of a pool share
// without a prediction. Each is in units of the variance that all such cells share.
const bareVariance = 0.25

func likenessOf(a, b *site) likeness { return likenessBy(rbf(&a.at, &b.at), a, b) }

// likenessBy is likenessOf with the likeness of their coordinates.
func likenessBy(near float64, a, b *site) likeness {
	if a.isKnown != b.isKnown {
		return likeness{}
	}
	l := likeness{global: 1, shared: near}
	if a.pool == b.pool {
		l.pool, l.smooth = 1, near
		if a.server == b.server {
			l.cell = 1
		}
	}
	if !a.isKnown {
		l.bare = 1 + bareVariance*near + l.pool*bareVariance*(1+near)
	}
	return l
}

// variances are the squares of the scales that the kernel depends on.
type variances struct{ global, shared, pool, smooth, cell, bare float64 }

func (s *scales) variances() variances {
	return variances{s.global * s.global, s.shared * s.shared, s.pool * s.pool, s.smooth * s.smooth, s.cell * s.cell, s.bare * s.bare}
}

// kernel returns the covariance of two cells, beyond their predictions. It has no branch, since
// learning calls it a hundred thousand times.
func (v *variances) kernel(l *likeness) float64 {
	return v.global*l.global + v.shared*l.shared + v.bare*l.bare + (v.pool*l.pool + v.smooth*l.smooth) + v.cell*l.cell
}

// kernel returns the covariance of two cells, beyond their predictions.
func (s *scales) kernel(l likeness) float64 {
	v := s.variances()
	return v.kernel(&l)
}

// kernels returns the kernels of several pairs.
func (s *scales) kernels(list []likeness) []float64 {
	v, kernels := s.variances(), make([]float64, len(list), len(list)+1)
	for i := range list {
		kernels[i] = v.kernel(&list[i])
	}
	return kernels
}

// kernelScales returns the scales that the kernel depends on.
func (s *scales) kernelScales() [6]*float64 {
	return [...]*float64{&s.global, &s.shared, &s.pool, &s.smooth, &s.cell, &s.bare}
}

// rbf returns the likeness of two cells by their coordinates. Each counts on a scale of e.
func rbf(a, b *[3]float64) float64 {
	sum := 0.0
	for i, x := range a {
		d := x - b[i]
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
	siteOf      []int            // index of each trial's site
	places      map[identity]int // index of each site
	alike       [][]likeness     // of each site with itself and those before it
	fast        lower            // exp(−gap/lasting) of two trials
	sameProcess [][]int          // by trial: the trials of its engine process up to itself
	withheld    []float64        // by trial: what its withheld time adds to its figure, in deviations of the slope
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
	p.sites, p.pairs = nil, pairs{fast: newLower(len(p.list)), places: map[identity]int{}}
	for i, o := range p.list {
		key := o.identity()
		at, ok := p.places[key]
		if !ok {
			at = len(p.sites)
			p.places[key], p.sites = at, append(p.sites, o.site)
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
	p.alike = make([][]likeness, len(p.sites))
	for i := range p.sites {
		p.alike[i] = make([]likeness, i+1)
		for j := range p.alike[i] {
			p.alike[i][j] = likenessOf(&p.sites[i], &p.sites[j])
		}
	}
	p.withheld = make([]float64, len(p.list))
	if p.direction != 0 {
		for i := range p.list {
			p.withheld[i] = slopeDeviation * p.list[i].withheld
		}
	}
}

// identity is the same for the sites of equal servers, unless their predictions differ.
type identity struct {
	server  unique.Handle[string]
	isKnown bool
	prior   float64
}

func (s *site) identity() identity { return identity{s.server, s.isKnown, s.prior} }

// likenesses returns the likeness of a site to those of the trials.
func (p *process) likenesses(s *site) []likeness {
	list := make([]likeness, len(p.sites))
	if at, known := p.places[s.identity()]; known && p.sites[at] == *s { // it is one of them
		copy(list, p.alike[at])
		for j := at + 1; j < len(list); j++ {
			list[j] = p.alike[j][at]
		}
		return list
	}
	for i := range p.sites {
		list[i] = likenessOf(s, &p.sites[i])
	}
	return list
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
func (p *process) expected(o *observation) float64 {
	return p.prediction(&o.site) - p.direction*o.withheld
}

func (p *process) prediction(s *site) float64 {
	if s.isKnown {
		return s.prior
	}
	return p.centre
}

// ownVariance returns the variance of a trial's own error without its weight.
func (s *scales) ownVariance(o *observation) float64 {
	return s.trial*s.trial + s.within*s.within*o.variance
}

// desk is memory for the covariance of trials under some scales, used again for the next ones.
type desk struct {
	trials  lower
	kernels [][]float64 // of two sites
	slow    []float64   // exp(−gap/τ) between a trial and each earlier one
	rest    []float64   // residuals
}

func (p *process) newDesk() *desk {
	n := len(p.sites)
	d := &desk{trials: newLower(len(p.list)), kernels: make([][]float64, n), slow: make([]float64, len(p.list)), rest: make([]float64, len(p.list))}
	all := make([]float64, n*n)
	for i := range d.kernels {
		d.kernels[i], all = all[:n:n], all[n:]
	}
	return d
}

// covariance computes the covariance of the trials under given scales.
func (p *process) covariance(s *scales, d *desk) {
	v := s.variances()
	for i, alike := range p.alike {
		for j := range alike {
			c := v.kernel(&alike[j])
			d.kernels[i][j], d.kernels[j][i] = c, c
		}
	}
	fastVariance, slowVariance, launchVariance := s.fast*s.fast, s.slow*s.slow, s.launch*s.launch
	for i, row := range d.trials {
		if i > 0 { // the product over the gaps between
			floats.Scale(math.Exp((p.list[i-1].at-p.list[i].at)/s.tau), d.slow[:i])
		}
		d.slow[i] = 1
		kernel, own := d.kernels[p.siteOf[i]], p.withheld[i]
		fast, slow, sites, withheld := p.fast[i][:len(row)], d.slow[:len(row)], p.siteOf[:len(row)], p.withheld[:len(row)]
		for j := range row {
			row[j] = kernel[sites[j]] + fastVariance*fast[j] + slowVariance*slow[j] + own*withheld[j]
		}
		for _, j := range p.sameProcess[i] {
			row[j] += launchVariance
		}
		row[i] += s.ownVariance(&p.list[i]) / p.weights[i]
	}
}

// factor leaves on the desk the factor of the trials' covariance, and the residuals of the trials in
// its coordinates. It returns the logarithm of their likelihood up to a constant; false if the
// covariance is not positive definite.
func (p *process) factor(s *scales, d *desk) (likelihood float64, ok bool) {
	p.covariance(s, d)
	if !d.trials.factorize() {
		return 0, false
	}
	for i := range p.list {
		d.rest[i] = p.list[i].log - p.expected(&p.list[i])
	}
	d.trials.forward(d.rest)
	return -(floats.Dot(d.rest, d.rest) + d.trials.logDet()) / 2, true
}

// condition makes a part with given scales that cannot answer yet. It returns false if the
// covariance is not positive definite.
func (p *process) condition(s scales) (part, bool) {
	d := p.newDesk()
	if _, ok := p.factor(&s, d); !ok {
		return part{}, false
	}
	d.trials.backward(d.rest)
	return part{scales: s, factor: d.trials, pulls: d.rest}, true
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
	}
	x.factor.forwardAll(columns, first)
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
	cells []*answered
	mean  scales // with mean variances
	level float64
}

// answered holds the answers of the parts about one cell.
type answered struct {
	site
	mean        float64
	left, right []float64 // see asked
}

// together joins answers about cells, for the machine's mean speed in the campaign.
func (p *process) together(cells []*answered) asked {
	a := asked{cells: cells, mean: p.meanVariances()}
	for k := range p.parts {
		a.level += p.parts[k].probability * p.parts[k].spread(p.begin, p.end)
	}
	return a
}

// answer returns the answers of the parts about a site.
func (p *process) answer(s *site) *answered {
	n, width := len(p.sites)+1, len(p.sites)+2 // elements in the lists of a part
	a := &answered{site: *s, left: make([]float64, len(p.parts)*width), right: make([]float64, len(p.parts)*width)}
	alike, moves := p.likenesses(s), make([]float64, len(p.parts)) // moves: deviation of the part's mean
	for k := range p.parts {
		x := &p.parts[k]
		u := append(x.kernels(alike), 1)
		moves[k] = floats.Dot(u, x.pull)
		a.mean += x.probability * moves[k]
		for j, row := range x.explained {
			a.left[k*width+j] = x.probability * u[j]
			a.right[k*width+j] = floats.Dot(row, u)
		}
	}
	for k := range p.parts {
		d := moves[k] - a.mean
		a.left[k*width+n], a.right[k*width+n] = p.parts[k].probability*d, -d
	}
	a.mean += p.prediction(s)
	return a
}

// covariance returns the covariance of two of the cells, by their indices.
func (a *asked) covariance(i, j int) float64 {
	x, y := a.cells[i], a.cells[j]
	return a.mean.kernel(likenessOf(&x.site, &y.site)) + a.level - floats.Dot(x.left, y.right)
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
