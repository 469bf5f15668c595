// Package posterior estimates every configuration under every load from all measurements. It turns
// events into one Gaussian process for each metric, on log scale, and answers with means,
// deviations and covariances. Searching, deciding and reporting read the same answers.
//
// It measures nothing, decides nothing, and has no clock: it is a function of the space, the goal
// and the events. docs/design/posterior.md has the formulas and their sources.
package posterior

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
	"tuner/search/footprint"
)

// Prior predicts a metric before it is measured, such as the queue simulation from service times.
type Prior interface {
	// Log returns the natural logarithm of a metric of a configuration under a load; false without
	// a prediction. It does not block.
	Log(c search.Candidate, load measure.Load, metric measure.Metric) (float64, bool)
}

// Options are the inputs of a posterior besides the events.
type Options struct {
	Space search.Space
	Goal  search.Goal
	Prior Prior // nil: no predictions
	// Elsewhere means that the finals ran on another server than the search. Measurements of one
	// server then carry no information about the other.
	Elsewhere bool
	// Like is the posterior before the newest events of the same campaign, or nil. Learning from it
	// is faster and gives nearly the same result. It is not a sketch.
	Like *Posterior
	// IsSketch asks for one set of scales, the mean of Like's, instead of all possible ones. It is
	// fast enough to be asked after each trial of a search, but overconfident.
	IsSketch bool
	// Figures caches the figures of the campaign's trials; nil: all are computed again.
	Figures *Figures
}

func (o Options) like(metric measure.Metric) *process {
	if o.Like == nil {
		return nil
	}
	like, _ := o.Like.process(metric)
	return like
}

// predict returns the logarithm of a metric at a cell by the prior; false if that has none, or none that is finite.
func (o Options) predict(c Cell, metric measure.Metric) (float64, bool) {
	if o.Prior == nil {
		return 0, false
	}
	log, ok := o.Prior.Log(c.Candidate, c.Load, metric)
	if !ok || !isFinite(log) {
		return 0, false
	}
	return log, true
}

// Cell is a configuration under a load on one of the campaign's servers.
type Cell struct {
	Candidate search.Candidate
	Load      measure.Load
	// IsElsewhere means that it ran on the finals' own server (Options.Elsewhere).
	IsElsewhere bool
}

// Is reports whether two cells are the same.
func (c Cell) Is(o Cell) bool { return c.Key() == o.Key() }

// Posterior holds the distributions after the events. It is immutable.
type Posterior struct {
	options   Options
	processes map[measure.Metric]func() *process // each learns at the first question about its metric
	measured  []Measured
	searched  *footprint.Model                   // memory on the server of the search
	final     *footprint.Model                   // memory on the server of the finals
	asking    *sync.Mutex                        // guards these models
	plain     map[CellKey][]Normal               // cells far from the best, each estimated alone; by metric
	missing   map[measure.Metric]map[string]bool // candidates whose trials lack a metric that other trials have, by key
	joints    lastJoints
}

// Measured is a measured cell with the amount of data behind it.
type Measured struct {
	Cell
	Trials   int
	Launches int     // engine processes
	Fresh    int     // of these, launched for a single trial after the search
	Requests int     // completed
	Errors   float64 // share of failed requests, 0..1
	// Independent counts, for each latency percentile of the goal, the independent latencies behind
	// it (measure.Tail). Below measure.Needed the percentile comes from the model.
	Independent map[measure.Metric]float64
	// OnlyLoadCurve means that the configuration was measured for load curves alone. It may lie
	// outside the space.
	OnlyLoadCurve bool
	// IsBroken means that the configuration failed on a fresh process and has never succeeded
	// since.
	IsBroken bool
}

// New learns from events in the order in which they happened. A metric is learned when it is first
// asked about, which changes no answer.
func New(o Options, events []search.Event) *Posterior {
	p := &Posterior{options: o, processes: map[measure.Metric]func() *process{}, asking: &sync.Mutex{}}
	p.measured = measuredCells(events, o)
	joined, plain := split(events, o)
	readings := p.read(joined)
	p.plain = p.alone(plain)
	p.remember(events)
	p.missing = findMissing(readings, p.metrics())
	for i, metric := range p.metrics() {
		// the prior is asked now, since its answers change with the campaign
		observed := observations(readings, i, p.options)
		if len(observed) > 0 {
			p.processes[metric] = sync.OnceValue(func() *process { return learn(metric, observed, o.like(metric), o.IsSketch) })
		}
	}
	p.options.Like = nil // frees the earlier posteriors
	return p
}

// process returns the process of a metric; false if no trial has it.
func (p *Posterior) process(metric measure.Metric) (*process, bool) {
	learned, ok := p.processes[metric]
	if !ok {
		return nil, false
	}
	return learned(), true
}

// Measured lists the measured cells in the order of their first trials.
func (p *Posterior) Measured() []Measured { return slices.Clone(p.measured) }

// metrics lists the metrics of the posterior: the goal's, the throughput, the mean latency and the
// goal's percentile. Memory, cost and scale are derived and not in the list.
func (p *Posterior) metrics() []measure.Metric {
	list := []measure.Metric{measure.Throughput, measure.LatencyAvg, p.options.Goal.Latency()}
	for _, m := range p.options.Goal.Metrics() {
		if m != measure.Memory && m != measure.Cost && m != measure.Scale && m != measure.ErrorRate && !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return slices.Compact(list)
}

// Normal is a normal distribution of the natural logarithm of a metric in its base unit.
type Normal struct{ Mean, Deviation float64 }

// Estimate returns the distribution's median with its 95 % interval, in the metric's base unit.
func (n Normal) Estimate() measure.Estimate {
	lo, hi := n.Interval()
	return measure.Estimate{Value: math.Exp(n.Mean), Lo: math.Exp(lo), Hi: math.Exp(hi)}
}

// Interval returns the 95 % interval of the logarithm.
func (n Normal) Interval() (lo, hi float64) {
	return n.Mean - stats.Half95*n.Deviation, n.Mean + stats.Half95*n.Deviation
}

// NormalOf returns the distribution whose median and 95 % interval are the estimate. The lower end
// tells, since the upper one of a rate ends at what clients offer (measure.Load.Bounded).
func NormalOf(e measure.Estimate) Normal {
	return Normal{math.Log(e.Value), math.Log(e.Value/e.Lo) / stats.Half95}
}

// Above returns the probability that the logarithm is above x, 0..1.
func (n Normal) Above(x float64) float64 {
	if n.Deviation <= 0 {
		if n.Mean > x {
			return 1
		}
		return 0
	}
	return distuv.UnitNormal.CDF((n.Mean - x) / n.Deviation)
}

// Below returns the probability that the metric is at most a limit, 0..1.
func (n Normal) Below(limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	d := math.Log(limit) - n.Mean
	if n.Deviation <= 0 {
		if d >= 0 {
			return 1
		}
		return 0
	}
	return distuv.UnitNormal.CDF(d / n.Deviation)
}

// Surplus returns the expectation of the positive part of the logarithm. It counts only values that
// are at least `least` deviations above the mean; −Inf counts all. The deviation must not be 0.
func (n Normal) Surplus(least float64) float64 {
	z := max(-n.Mean/n.Deviation, least)
	return n.Mean*distuv.UnitNormal.CDF(-z) + n.Deviation*distuv.UnitNormal.Prob(z)
}

// At returns the distribution of a metric at a cell; false if no trial has the metric.
func (p *Posterior) At(c Cell, metric measure.Metric) (Normal, bool) {
	joint, ok := p.Joint([]Cell{c}, metric)
	if !ok {
		return Normal{}, false
	}
	return joint.At(0), true
}

// Joint returns the joint distribution of a metric at several cells, in their order. The mean is
// NaN at a measured cell whose configuration lacks the metric, such as the energy without a GPU.
func (p *Posterior) Joint(cells []Cell, metric measure.Metric) (Joint, bool) {
	switch metric {
	case measure.Memory:
		return p.memoryOf(cells)
	case measure.Cost:
		return p.costOf(cells)
	case measure.Scale:
		return scaleOf(cells)
	}
	process, ok := p.process(metric)
	if !ok || len(cells) == 0 {
		return Joint{}, false
	}
	return p.joints.of(cells, metric, func() Joint { return p.joined(process, cells, metric) }), true
}

// joined returns the joint distribution of cells by a process. Cells that are estimated alone are
// independent in it.
func (p *Posterior) joined(process *process, cells []Cell, metric measure.Metric) Joint {
	answers := make([]*answered, len(cells)) // nil for those that are estimated alone
	means, variances := make([]float64, len(cells)), make([]float64, len(cells))
	at := slices.Index(p.metrics(), metric)
	for i, c := range cells {
		key := c.Key()
		if plain, isPlain := p.plain[key]; isPlain {
			means[i], variances[i] = plain[at].Mean, plain[at].Deviation*plain[at].Deviation
			continue
		}
		answers[i] = p.joints.answer(process, key, siteOf(c, key, metric, p.options))
		means[i] = answers[i].mean
	}
	isJoined := func(x *answered) bool { return x != nil }
	if keys := p.missing[metric]; len(keys) > 0 && slices.ContainsFunc(answers, isJoined) {
		for i, c := range cells {
			if keys[c.Candidate.Key()] {
				means[i] = math.NaN()
			}
		}
	}
	joined := process.together(answers)
	return newJoint(means, func(a, b int) float64 {
		switch {
		case answers[a] != nil && answers[b] != nil:
			return joined.covariance(a, b)
		case a == b:
			return variances[a]
		}
		return 0
	})
}

// remember learns the memory of configurations: one figure each, on each server.
func (p *Posterior) remember(events []search.Event) {
	p.searched = footprint.New(p.options.Space)
	if p.final = p.searched; p.options.Elsewhere {
		p.final = footprint.New(p.options.Space)
	}
	for _, e := range events {
		if e.Trial.Phase == search.PhaseFinal {
			p.final.Add(e)
		} else {
			p.searched.Add(e)
		}
	}
}

// memoryOf returns the memories of configurations, each with an independent error. An unknown one
// has the mean NaN.
func (p *Posterior) memoryOf(cells []Cell) (Joint, bool) {
	p.asking.Lock()
	defer p.asking.Unlock()
	means, variances, isKnown := make([]float64, len(cells)), make([]float64, len(cells)), false
	for i, c := range cells {
		model := p.searched
		if c.IsElsewhere {
			model = p.final
		}
		means[i] = math.NaN()
		if e, ok := model.Of(c.Candidate); ok && e.Value > 0 {
			isKnown = true
			means[i] = math.Log(e.Value)
			d := e.Deviation()
			variances[i] = d * d
		}
	}
	return independent(means, variances), isKnown
}

// costOf derives the cost from the throughput: a machine has the same price at any throughput.
func (p *Posterior) costOf(cells []Cell) (Joint, bool) {
	if p.options.Goal.Price <= 0 {
		return Joint{}, false
	}
	j, ok := p.Joint(cells, measure.Throughput)
	for i, mean := range j.Means {
		j.Means[i] = math.Log(p.options.Goal.Cost(1)) - mean
	}
	return j, ok
}

// scaleOf returns the scales of loads of several models. The load generator offers them, so they
// are known, except for the error that every figure has.
func scaleOf(cells []Cell) (Joint, bool) {
	means, variances := make([]float64, len(cells)), make([]float64, len(cells))
	for i, c := range cells {
		means[i], variances[i] = math.Log(max(c.Load.Level(), Least)), quietest*quietest
	}
	return independent(means, variances), len(cells) > 0
}

// IsPredicted reports whether the prior predicts a metric at a cell, so that the estimate rests on
// more than the cell's own trials.
func (p *Posterior) IsPredicted(c Cell, metric measure.Metric) bool {
	_, ok := p.options.predict(c, metric)
	return ok
}
