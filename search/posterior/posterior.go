// Package posterior says what is known of every configuration under every load, from all that was
// measured. It turns events into one Gaussian process for each metric, on log scale, and answers
// with means, deviations and covariances. Searching, deciding and reporting read the same answers.
//
// It measures nothing, decides nothing, and has no clock: it is a function of the space, the goal
// and the events. docs/design/posterior.md has the formulas and where they come from.
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

// Prior predicts a metric before it is measured, as the queue simulation does from service times.
type Prior interface {
	// Log is the natural logarithm of a metric of a configuration under a load, false where nothing
	// predicts it. It does not block.
	Log(c search.Candidate, load measure.Load, metric measure.Metric) (float64, bool)
}

// Options are what a posterior is made from beside the events.
type Options struct {
	Space search.Space
	Goal  search.Goal
	Prior Prior // nil: nothing is predicted
	// Elsewhere says that the finals ran on another server than the search: what is known of one
	// server says nothing of the other.
	Elsewhere bool
	// Like is what was known before the newest events of the same campaign, nil for none: learning from
	// it is quicker and nearly the same. It is no sketch.
	Like *Posterior
	// IsSketch asks for one set of scales, the mean of Like's, instead of all that may be. That is quick enough to be asked
	// after each trial of a search, and it is surer than it may be.
	IsSketch bool
	// Figures keeps what was read of the campaign's trials; nil: all are read anew.
	Figures *Figures
}

func (o Options) like(metric measure.Metric) *process {
	if o.Like == nil {
		return nil
	}
	return o.Like.processes[metric]
}

// Cell is a configuration under a load on one of the campaign's servers.
type Cell struct {
	Candidate search.Candidate
	Load      measure.Load
	// IsElsewhere says that it ran on the finals' own server (Options.Elsewhere).
	IsElsewhere bool
}

// Is reports whether two cells are the same.
func (c Cell) Is(o Cell) bool { return c.Key() == o.Key() }

// Posterior is what is known after the events. It is immutable.
type Posterior struct {
	options   Options
	processes map[measure.Metric]*process
	measured  []Measured
	searched  *footprint.Model                   // memory, on the server of the search
	final     *footprint.Model                   // and on that of the finals
	asking    *sync.Mutex                        // of these models
	plain     map[CellKey][]Normal               // cells that are far from the best, each by itself; by metric
	untold    map[measure.Metric]map[string]bool // keys of candidates whose trials told nothing of a metric that others told
	joints    lastJoints
}

// Measured is a cell that trials have measured, and how much stands behind it.
type Measured struct {
	Cell
	Trials   int
	Launches int     // engine processes
	Fresh    int     // of them launched for a single trial, after the search
	Requests int     // completed
	Errors   float64 // share of the requests that failed, 0..1
	// Independent counts, for each latency percentile of the goal, the independent latencies
	// behind it (measure.Tail). Below measure.Needed the percentile comes from the model.
	Independent map[measure.Metric]float64
	// OnlyCurve says that the cell's configuration was measured for load curves alone. It may lie
	// outside of the space.
	OnlyCurve bool
	// IsBroken says that the configuration failed on a fresh process and never succeeded after it.
	IsBroken bool
}

// New learns from events in the order in which they happened.
func New(o Options, events []search.Event) *Posterior {
	p := &Posterior{options: o, processes: map[measure.Metric]*process{}, asking: &sync.Mutex{}}
	p.measured = measuredCells(events, o)
	joined, plain := split(events, o, o.mostJoined())
	readings := p.read(joined)
	p.plain = p.alone(plain)
	p.remember(events)
	p.untold = untoldIn(readings, p.metrics())
	for i, metric := range p.metrics() {
		observed := observations(readings, i, p.options)
		if len(observed) > 0 {
			p.processes[metric] = learn(metric, observed, o.like(metric), o.IsSketch)
		}
	}
	p.options.Like = nil // not to keep all that came before
	return p
}

// Measured lists the cells that trials have measured, in the order of their first trials.
func (p *Posterior) Measured() []Measured { return slices.Clone(p.measured) }

// metrics lists the metrics that the posterior is about: the goal's, the throughput, the mean latency
// and the percentile that the goal cares for. Memory and cost are derived and not in the list.
func (p *Posterior) metrics() []measure.Metric {
	list := []measure.Metric{measure.Throughput, measure.LatencyAvg, p.options.Goal.Latency()}
	for _, m := range p.options.Goal.Metrics() {
		if m != measure.Memory && m != measure.Cost && m != measure.ErrorRate && !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return slices.Compact(list)
}

// Normal is a normal distribution of the natural logarithm of a metric in its base unit.
type Normal struct{ Mean, Deviation float64 }

// Estimate is the distribution's median with its 95 % interval, in the metric's base unit.
func (n Normal) Estimate() measure.Estimate {
	lo, hi := n.Interval()
	return measure.Estimate{Value: math.Exp(n.Mean), Lo: math.Exp(lo), Hi: math.Exp(hi)}
}

// Interval is the 95 % interval of the logarithm.
func (n Normal) Interval() (lo, hi float64) {
	return n.Mean - stats.Half95*n.Deviation, n.Mean + stats.Half95*n.Deviation
}

// NormalOf is the distribution of which an estimate is the median with its 95 % interval.
func NormalOf(e measure.Estimate) Normal {
	return Normal{math.Log(e.Value), math.Log(e.Hi/e.Value) / stats.Half95}
}

// Above is the probability that the logarithm is more than x, 0..1.
func (n Normal) Above(x float64) float64 {
	if n.Deviation <= 0 {
		if n.Mean > x {
			return 1
		}
		return 0
	}
	return distuv.UnitNormal.CDF((n.Mean - x) / n.Deviation)
}

// Below is the probability that the metric is at most a limit, 0..1.
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

// Surplus is the expectation of what the logarithm has above 0, counted only where it is at least so many deviations above
// its mean; −Inf: anywhere. The deviation must not be 0.
func (n Normal) Surplus(least float64) float64 {
	z := max(-n.Mean/n.Deviation, least)
	return n.Mean*distuv.UnitNormal.CDF(-z) + n.Deviation*distuv.UnitNormal.Prob(z)
}

// At is what is known of a metric at a cell. It is false where nothing of the metric was measured.
func (p *Posterior) At(c Cell, metric measure.Metric) (Normal, bool) {
	joint, ok := p.Joint([]Cell{c}, metric)
	if !ok {
		return Normal{}, false
	}
	return joint.At(0), true
}

// Joint is what is known of a metric at several cells together, in their order. The mean is not a number at
// a cell of a configuration that was measured and does not have the metric, as the energy where no GPU is.
func (p *Posterior) Joint(cells []Cell, metric measure.Metric) (Joint, bool) {
	switch metric {
	case measure.Memory:
		return p.memoryOf(cells)
	case measure.Cost:
		return p.costOf(cells)
	}
	process, ok := p.processes[metric]
	if !ok || len(cells) == 0 {
		return Joint{}, false
	}
	return p.joints.of(cells, metric, func() Joint { return p.joined(process, cells, metric) }), true
}

// joined is what a process says of cells, with those that are looked at by themselves.
func (p *Posterior) joined(process *process, cells []Cell, metric measure.Metric) Joint {
	var sites []site
	var places []int
	j := newJoint(len(cells))
	at := slices.Index(p.metrics(), metric)
	for i, c := range cells {
		if plain, isPlain := p.plain[c.Key()]; isPlain {
			j.Means[i] = plain[at].Mean
			j.set(i, i, plain[at].Deviation*plain[at].Deviation)
			continue
		}
		sites, places = append(sites, siteOf(c, metric, p.options)), append(places, i)
	}
	if len(sites) == 0 {
		return j
	}
	joined := process.ask(sites)
	for a, i := range places {
		j.Means[i] = joined.means[a]
		for b, k := range places[:a+1] {
			j.set(i, k, joined.covariance(a, b))
		}
	}
	for i, c := range cells {
		if keys := p.untold[metric]; len(keys) > 0 && keys[c.Candidate.Key()] {
			j.Means[i] = math.NaN()
		}
	}
	return j
}

// remember learns what configurations hold in memory: one figure each, on each server.
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

// memoryOf treats the memories of configurations as known, each with an error of its own. The mean of one
// that is not known is not a number.
func (p *Posterior) memoryOf(cells []Cell) (Joint, bool) {
	p.asking.Lock()
	defer p.asking.Unlock()
	j, isKnown := newJoint(len(cells)), false
	for i, c := range cells {
		model := p.searched
		if c.IsElsewhere {
			model = p.final
		}
		j.Means[i] = math.NaN()
		if e, ok := model.Of(c.Candidate); ok && e.Value > 0 {
			isKnown = true
			j.Means[i] = math.Log(e.Value)
			d := e.Deviation()
			j.set(i, i, d*d)
		}
	}
	return j, isKnown
}

// costOf derives the cost from the throughput: a machine costs its price however much it does.
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

// Joint is a normal distribution of the logarithms of one metric at several cells.
type Joint struct {
	Means       []float64
	covariances []float64 // row by row, of all pairs
}

func newJoint(n int) Joint { return Joint{make([]float64, n), make([]float64, n*n)} }

func (j Joint) set(a, b int, c float64) {
	j.covariances[a*len(j.Means)+b], j.covariances[b*len(j.Means)+a] = c, c
}

// Covariance is that of two cells' logarithms, by their places in the list.
func (j Joint) Covariance(a, b int) float64 { return j.covariances[a*len(j.Means)+b] }

// At is the distribution of one cell alone.
func (j Joint) At(i int) Normal { return Normal{j.Means[i], math.Sqrt(max(j.Covariance(i, i), 0))} }

// Difference is the distribution of the logarithm of a's value over b's.
func (j Joint) Difference(a, b int) Normal {
	v := j.Covariance(a, a) + j.Covariance(b, b) - 2*j.Covariance(a, b)
	return Normal{j.Means[a] - j.Means[b], math.Sqrt(max(v, 0))}
}

// IsPredicted reports whether the prior tells a metric at a cell, so that it is known beyond the cell's
// own trials.
func (p *Posterior) IsPredicted(c Cell, metric measure.Metric) bool {
	if p.options.Prior == nil {
		return false
	}
	_, ok := p.options.Prior.Log(c.Candidate, c.Load, metric)
	return ok
}

// NewJoint makes a joint distribution of n cells from n means and n·n covariances, row by row.
func NewJoint(means, covariances []float64) Joint { return Joint{means, covariances} }
