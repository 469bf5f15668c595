package posterior

import (
	"math"
	"slices"
	"unique"

	"gonum.org/v1/gonum/floats"

	"tuner/measure"
	"tuner/measure/stats"
)

// View is the posterior of one metric with the mean of the likely covariances instead of their
// mixture. A search asks it about thousands of cells after each trial. Its answers never change. It is
// for one goroutine, since it keeps them.
type View struct {
	part
	sites       []site
	own         map[unique.Handle[string]][]int // indices of the sites of each pool
	places      map[[3]float64]*place
	isSeen      bool
	isPredicted bool
	centre      float64
	process     *process
	level       float64 // variance of the machine's mean speed
	rate        float64 // variance of the logarithm of a one-second window, from its own interval
}

// View returns the view of a metric. isPredicted tells whether the metric has predictions. Without
// a trial of the metric, the view is the prior alone.
func (p *Posterior) View(metric measure.Metric, isPredicted bool) *View {
	process, ok := p.process(metric)
	if !ok {
		s := usual(metric)
		v := newView(part{scales: s, answers: answers{pull: []float64{0}, explained: [][]float64{{0}}}}, nil)
		v.isPredicted, v.level = isPredicted, s.course(0)
		return v
	}
	if len(process.parts) == 1 {
		return process.view(process.parts[0], isPredicted)
	}
	return process.view(process.only(process.blended()), isPredicted)
}

func (p *process) view(x part, isPredicted bool) *View {
	rates := make([]float64, len(p.list))
	for i, o := range p.list {
		rates[i] = o.variance * o.seconds
	}
	v := newView(x, p.sites)
	v.process, v.isSeen, v.isPredicted, v.centre = p, true, isPredicted, p.centre
	v.level, v.rate = x.spread(p.begin, p.end), stats.Median(rates)
	return v
}

func newView(x part, sites []site) *View {
	v := &View{part: x, sites: sites, own: map[unique.Handle[string]][]int{}, places: map[[3]float64]*place{}}
	for i, s := range sites {
		v.own[s.pool] = append(v.own[s.pool], i)
	}
	return v
}

// blended returns scales whose variances are the means of the parts'.
func (p *process) blended() scales {
	s := p.meanVariances()
	for _, x := range p.parts {
		s.trial += x.probability * x.trial * x.trial
		s.within += x.probability * x.within * x.within
		s.fast += x.probability * x.fast * x.fast
		s.slow += x.probability * x.slow * x.slow
		s.launch += x.probability * x.launch * x.launch
		s.tau += x.probability * x.tau
	}
	for _, v := range []*float64{&s.trial, &s.within, &s.fast, &s.slow, &s.launch} {
		*v = math.Sqrt(*v)
	}
	return s
}

// IsSeen reports whether a trial has the metric.
func (v *View) IsSeen() bool { return v.isSeen }

// Centre returns the mean logarithm of the trials without a prediction.
func (v *View) Centre() float64 { return v.centre }

// TrialVariance returns the variance of the logarithm of one trial with windows of the given
// seconds. It sums the trial's own error and the change of the machine's speed within seconds.
func (v *View) TrialVariance(seconds float64) float64 {
	return v.trial*v.trial + v.fast*v.fast + v.within*v.within*v.rate/seconds
}

// SpeedVariance returns the variance of the slow part of the machine's speed, which makes trials
// minutes apart differ.
func (v *View) SpeedVariance() float64 { return v.slow * v.slow }

// Residual is the expected difference of a logarithm from its prediction, or from the view's
// centre.
type Residual struct {
	Mean, Variance float64

	at      *Coordinates
	kernels []float64 // with the sites, and a 1 for the machine's course
}

// Is reports whether two residuals of one view are at the same coordinates.
func (r Residual) Is(o Residual) bool { return r.at == o.at }

// place holds the common parts of cells at the same load, batch and queue delay.
type place struct {
	nears  []float64 // their likeness to those of the sites, see rbf
	beyond Residual  // of cells in pools that have no trial: most pools of a space
}

// At returns the residual at coordinates.
func (v *View) At(x *Coordinates) Residual {
	common := v.placeOf(x)
	r, own := common.beyond, v.own[x.pool]
	if len(own) > 0 {
		kernels := slices.Clone(r.kernels)
		s, variances := site{Coordinates: *x, isKnown: v.isPredicted}, v.variances()
		for _, i := range own {
			l := likenessBy(common.nears[i], &s, &v.sites[i])
			kernels[i] = variances.kernel(&l)
		}
		r = v.residual(kernels)
	}
	r.at = x
	return r
}

// placeOf returns the place of coordinates.
func (v *View) placeOf(x *Coordinates) *place {
	known, isKnown := v.places[x.at]
	if isKnown {
		return known
	}
	list := make([]float64, 2*len(v.sites)+1)
	known = &place{nears: list[:len(v.sites):len(v.sites)]}
	kernels := list[len(v.sites):]
	s, variances := site{Coordinates: Coordinates{at: x.at}, isKnown: v.isPredicted}, v.variances()
	for i := range v.sites {
		known.nears[i] = rbf(&x.at, &v.sites[i].at)
		l := likenessBy(known.nears[i], &s, &v.sites[i])
		kernels[i] = variances.kernel(&l)
	}
	kernels[len(v.sites)] = 1
	known.beyond = v.residual(kernels)
	v.places[x.at] = known
	return known
}

// residual returns the residual of a cell with its kernels with the sites.
func (v *View) residual(kernels []float64) Residual {
	var itself site
	itself.isKnown = v.isPredicted
	r := Residual{kernels: kernels, Mean: floats.Dot(kernels, v.pull), Variance: v.kernel(likenessOf(&itself, &itself)) + v.level}
	for i, k := range kernels { // explained is symmetric
		r.Variance -= k * (2*floats.Dot(v.explained[i][:i], kernels[:i]) + v.explained[i][i]*k)
	}
	r.Variance = max(r.Variance, 0)
	return r
}

// Reference has the coordinates with which others are compared.
type Reference struct {
	view *View
	at   *Coordinates
	gain []float64
}

// Against makes the coordinates of a residual a reference.
func (v *View) Against(y Residual) Reference {
	ref := Reference{view: v, at: y.at, gain: make([]float64, len(y.kernels))}
	for i, row := range v.explained {
		ref.gain[i] = floats.Dot(row, y.kernels)
	}
	return ref
}

// Is reports whether the reference has the coordinates of a residual.
func (r Reference) Is(x Residual) bool { return r.at == x.at }

// Covariance returns the covariance of a residual with the reference's.
func (r Reference) Covariance(x Residual) float64 {
	a, b := site{Coordinates: *x.at, isKnown: r.view.isPredicted}, site{Coordinates: *r.at, isKnown: r.view.isPredicted}
	return r.view.kernel(likenessOf(&a, &b)) + r.view.level - floats.Dot(x.kernels, r.gain)
}

// Ahead is the error of possible next trials: the difference between their figures and their cell's
// value at the campaign's mean speed. It consists of the machine's speed at that time, the
// deviation of their engine process, and each trial's own error.
type Ahead struct {
	variance float64   // variance of their common part
	own      float64   // variance of each one's own error
	common   float64   // covariance with the machine's mean speed, before any trial
	learned  []float64 // information of the trials so far about the error, by sites, as in answers
}

// Ahead returns the error of trials at an instant, in seconds of the campaign, with windows of the
// given seconds. launch is a measured launch of their engine process; 0 stands for a new one.
func (v *View) Ahead(at, seconds float64, launch int) Ahead {
	launches, own := v.launch*v.launch, v.trial*v.trial+v.within*v.within*v.rate/seconds
	if v.process == nil {
		return Ahead{variance: launches, own: own}
	}
	p := v.process
	a := Ahead{own: own, common: v.average(at, p.begin, p.end) - v.level, learned: make([]float64, len(p.sites)+1)}
	a.variance = v.course(0) - 2*a.common - v.level + launches
	with := make([]float64, len(p.list)) // covariances with the trials so far
	for i, o := range p.list {
		with[i] = v.course(at-o.at) - v.average(o.at, p.begin, p.end)
		if launch != 0 && o.launch == launch {
			with[i] += launches
		}
	}
	v.factor.forward(with)
	a.variance = max(a.variance-floats.Dot(with, with), 0)
	v.factor.backward(with)
	for i, o := range p.list {
		a.learned[p.siteOf[i]] += with[i]
		a.learned[len(p.sites)] += v.average(o.at, p.begin, p.end) * with[i]
	}
	return a
}

// with returns the error's covariance with a residual.
func (a Ahead) with(x Residual) float64 {
	if a.learned == nil {
		return 0
	}
	return a.common - floats.Dot(x.kernels, a.learned)
}

// Information returns the information of some trials about the residual of their cell: the
// reduction of its variance.
func (a Ahead) Information(x Residual, trials int) float64 {
	shared := a.with(x)
	covariance := x.Variance + shared
	return covariance * covariance / a.seen(x, shared, trials)
}

// InformationBetween returns the information of some trials of x about the difference of x and y: the
// reduction of its variance. apart is the covariance of x with that difference.
func (a Ahead) InformationBetween(x, y Residual, apart float64, trials int) float64 {
	shared := a.with(x)
	covariance := apart + shared - a.with(y)
	return covariance * covariance / a.seen(x, shared, trials)
}

// seen returns the variance of the mean of some trials. shared is the error's covariance with x.
func (a Ahead) seen(x Residual, shared float64, trials int) float64 {
	return max(x.Variance+2*shared+a.variance+a.own/float64(trials), Least*Least)
}
