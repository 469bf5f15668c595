// Package belief estimates cells: it corrects the predictions of package predict by the trials, and
// judges them by the goal.
//
// The corrections come from package posterior, so the errors have the same model as in the answer.
// Beliefs are values: a score, a probability to keep the constraints, and the information of the
// next trials about them. The package does not decide which trial is next.
package belief

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/guided/pools"
	"tuner/search/guided/predict"
	"tuner/search/guided/tuning"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// Beliefs holds the estimates of all cells.
type Beliefs struct {
	criteria
	space      search.Space
	pools      *pools.Pools
	predictor  *predict.Predictor
	held       *footprint.Model
	tuning     tuning.Tuning
	confidence float64 // least probability to keep the constraints for a cell that may lead
	sure       float64 // least distance of a leader from each of its limits, in deviations

	past        []search.Event       // trials of cells of earlier campaigns
	trials      []search.Event       // of cells
	figures     posterior.Figures    // of them
	known       *posterior.Posterior // posterior of the trials
	isLearned   bool                 // known includes all of them
	scales      *posterior.Posterior // the posterior at the last learning of scales
	scaledAt    int                  // number of trials then
	next        Next
	coordinates coordinateCache
}

// Next describes the time and conditions of the next trial.
type Next struct {
	Elapsed       time.Duration // of the campaign so far
	WarmUp        time.Duration // expected
	Window        time.Duration
	Launch        time.Duration // expected, of a process that does not run
	LaunchWindows int           // windows of a trial after a launch
	Running       string        // key of the pool whose process runs
	Launched      int           // ordinal of its launch
}

// New returns beliefs without any trial.
func New(s search.Settings, p *pools.Pools, x *predict.Predictor, held *footprint.Model, n tuning.Tuning) *Beliefs {
	return &Beliefs{
		criteria: newCriteria(s.Goal), space: s.Space, pools: p, predictor: x, held: held, tuning: n,
		confidence: cmp.Or(s.Confidence, verdict.Confidence), coordinates: coordinateCache{s.Space, p, map[*pools.Pool]map[pools.Setting]*posterior.Coordinates{}},
	}
}

// Confidence returns the least probability to keep the constraints for a cell that may lead.
func (x *Beliefs) Confidence() float64 { return x.confidence }

// IsTrusted reports whether a cell keeps the constraints with the confidence that a leader needs.
func (x *Beliefs) IsTrusted(b Belief) bool { return b.Feasible >= x.confidence }

// Trials lists the recorded trials of cells in this campaign. The caller must not change the list.
func (x *Beliefs) Trials() []search.Event { return x.trials }

// Record adds a trial of a cell.
func (x *Beliefs) Record(e search.Event) { x.trials = append(x.trials, e) }

// Inherit adds a trial of an earlier campaign.
func (x *Beliefs) Inherit(e search.Event) { x.past = append(x.past, e) }

// Expire means that an event came after the last Learn.
func (x *Beliefs) Expire() { x.isLearned = false }

// UpdateScales learns the posterior's scales when the number of trials has grown enough. It is
// called with each trial, so that scales depend only on the events, and not on the times of
// questions.
func (x *Beliefs) UpdateScales() {
	n := len(x.past) + len(x.trials)
	if n == x.scaledAt || float64(n) < posterior.Growth*float64(x.scaledAt) {
		return
	}
	x.scaledAt = n
	x.scales = posterior.New(x.options(nil), slices.Concat(x.past, x.trials))
}

// UpdateDropped finds metrics with wrong predictions. It is called with each trial, since
// predictions must not depend on the times of questions.
func (x *Beliefs) UpdateDropped() {
	for _, m := range x.metrics {
		m.isDropped = m.isPredicted && x.isWrong(m)
	}
}

// Learn conditions the estimate of each metric on all measurements in ready pools.
func (x *Beliefs) Learn(next Next) {
	if x.isLearned {
		return
	}
	x.isLearned, x.next = true, next
	x.known = posterior.New(x.options(x.scales), slices.Concat(x.past, x.trials)) // earlier campaigns' first
	for _, m := range x.metrics {
		if m.isMemory() {
			m.isKnown = x.held.Any()
			continue
		}
		m.view = x.known.View(m.source(), m.isPredicted)
		m.reference = posterior.Reference{}
		m.lookAhead(next)
		m.isKnown = m.isPredicted || m.view.IsSeen()
	}
	x.sure = distuv.UnitNormal.Quantile(math.Pow(x.confidence, 1/float64(max(x.limits(), 1))))
}

// lookAhead prepares the information of the next trial about a metric.
func (m *metric) lookAhead(next Next) {
	at := next.Elapsed + next.WarmUp + next.Window/2
	m.running = m.view.Ahead(at.Seconds(), next.Window.Seconds(), next.Launched)
	m.fresh = m.view.Ahead((at + next.Launch).Seconds(), float64(next.LaunchWindows)*next.Window.Seconds(), 0)
}

func (x *Beliefs) options(like *posterior.Posterior) posterior.Options {
	return posterior.Options{Space: x.space, Goal: x.goal, Prior: x, Figures: &x.figures, Like: like, IsSketch: like != nil}
}

// isWrong reports whether a metric's deviation from the simulation within pools exceeds the allowed
// one by more than chance. The variation between trials is allowed besides: beside a neighbour a p99
// varies by half.
func (x *Beliefs) isWrong(m *metric) bool {
	scatter := 0.0
	if x.scales != nil {
		scatter = x.scales.Scatter(m.source())
	}
	squares, freedom, noise := 0.0, 0.0, 0.0
	for _, p := range x.pools.All() {
		if !p.IsReady() {
			continue
		}
		sum, all, own, n := 0.0, 0.0, 0.0, 0.0
		for _, h := range p.Histories() {
			c, found := p.Cell(h)
			e, isTold := h.Measurement.Estimate(m.source())
			if !found || !isTold {
				continue
			}
			r := min(posterior.Log(m.source(), e.Value), x.endless(m, p)) - x.simulated(c, m.source())
			sum, all, own, n = sum+r, all+r*r, own+scatter/float64(h.Trials), n+1
		}
		if n > 1 {
			squares, freedom, noise = squares+all-sum*sum/n, freedom+n-1, noise+own*(n-1)/n
		}
	}
	limits := x.tuning.Beliefs
	return freedom > 0 && exceeds(squares, freedom, limits.Wrong*limits.Wrong+noise/freedom, limits.Possible)
}

// exceeds reports whether a sum of squares with some degrees of freedom shows a variance above the most. The
// sum of normal numbers with that variance exceeds the bound with a given probability: it is χ² distributed.
func exceeds(squares, freedom, most, chance float64) bool {
	return squares > most*distuv.ChiSquared{K: freedom}.Quantile(1-chance)
}

// Log predicts the natural logarithm of a metric of a configuration under a load from service
// times. It returns false if the engine's service times are unknown, and for metrics that the
// simulation lacks. It makes Beliefs a posterior.Prior.
func (x *Beliefs) Log(c search.Candidate, load measure.Load, name measure.Metric) (float64, bool) {
	cell, ok := x.pools.CellOf(c, load.Level())
	if !ok || !isPredicted(name) {
		return 0, false
	}
	return x.prior(cell, name), true
}

// prior returns the logarithm that the simulation predicts for a metric at a cell, or its
// replacement.
func (x *Beliefs) prior(c pools.Cell, name measure.Metric) float64 {
	for _, m := range x.metrics {
		switch {
		case m.name != name && m.source() != name:
		case m.isDropped:
			return x.plain(name, x.predictor.Outline(c.Pool), c.Level)
		default:
			return min(x.simulated(c, name), x.endless(m, c.Pool))
		}
	}
	return x.simulated(c, name)
}

// simulated returns the logarithm of a metric of a cell by the simulation alone.
func (x *Beliefs) simulated(c pools.Cell, name measure.Metric) float64 {
	r := x.predictor.Simulate(c)
	switch m := x.metric(name); {
	case m.isGoodput():
		return x.logGoodput(m, r)
	case !m.isRate():
		return posterior.Log(name, m.predicted(r))
	}
	return x.ofRate(name, max(r.Throughput, posterior.Least))
}

// endless returns the logarithm of the latency above which all are equivalent in an open loop.
// Beyond its capacity a pool's queue grows during the whole window, and its length carries no
// information about lower rates.
func (x *Beliefs) endless(m *metric, p *pools.Pool) float64 {
	if !x.space.Load.Rate || !m.isPredicted || m.isRate() || m.isGoodput() {
		return math.Inf(1)
	}
	for _, limit := range m.limits {
		if limit.Max != nil {
			return posterior.Log(m.name, x.tuning.Loads.EndlessLimits**limit.Max)
		}
	}
	o := x.predictor.Outline(p)
	return posterior.Log(m.name, x.tuning.Loads.EndlessBatches*o.Seconds[o.Largest()])
}

// IsEndless reports whether a trial's latencies come from an endlessly growing queue. They depend
// on the length of the windows, so they must not enter the posterior.
func (x *Beliefs) IsEndless(m measure.Measurement) bool {
	if !x.space.Load.Rate {
		return false
	}
	return slices.ContainsFunc(x.goal.Constraints, func(limit search.Constraint) bool {
		e, isTold := m.Estimate(limit.Metric)
		return isTold && limit.Max != nil && isPredicted(limit.Metric) && limit.Metric != measure.Cost &&
			e.Value > x.tuning.Loads.EndlessLimits**limit.Max
	})
}

// Predict returns the estimate for a cell of a ready pool.
func (x *Beliefs) Predict(c pools.Cell) search.Prediction {
	curve := x.predictor.Curve(c.Pool)
	return search.Prediction{
		Values:  x.predictions(x.Believe(c), x.predictor.Simulate(c)),
		Service: search.ServiceTimes{Sizes: curve.Sizes, Alone: curve.Alone, Crowded: curve.Crowded, Overhead: curve.Overhead, Path: curve.Path},
	}
}

// IsFar reports whether the posterior estimates a cell alone, since many others are nearer to the
// best.
func (x *Beliefs) IsFar(c pools.Cell) bool { return x.known.IsApart(x.coordinates.cell(c)) }

// IsLeft reports whether all measured cells of a pool are far from the best.
func (x *Beliefs) IsLeft(p *pools.Pool) bool {
	return p.IsMeasured() && !slices.ContainsFunc(p.Histories(), func(h *pools.History) bool {
		c, found := p.Cell(h)
		return !found || !x.IsFar(c)
	})
}

// Pace returns the ratio of the present to the earlier throughput, from the cells that both
// campaigns measured; nil without any. Each campaign saw a few minutes of the machine's slow
// course.
func (x *Beliefs) Pace(pairs [][2]*pools.History) *measure.Estimate {
	v := x.known.View(measure.Throughput, true)
	sum, precision := 0.0, 0.0
	variance := func(h *pools.History) float64 { return v.TrialVariance(h.Seconds()) / float64(h.Trials) }
	for _, pair := range pairs {
		now, before := pair[0], pair[1]
		a, isNow := now.Measurement.Estimate(measure.Throughput)
		b, wasThen := before.Measurement.Estimate(measure.Throughput)
		if isNow && wasThen && a.Value > 0 && b.Value > 0 {
			w := 1 / (variance(now) + variance(before))
			sum, precision = sum+w*math.Log(a.Value/b.Value), precision+w
		}
	}
	if precision == 0 {
		return nil
	}
	pace := posterior.Normal{Mean: sum / precision, Deviation: math.Sqrt(1/precision + 2*v.SpeedVariance())}.Estimate()
	return &pace
}
