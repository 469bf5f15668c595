package guided

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/queuesim"
)

// The usual standard deviations of log residuals: what the prediction of throughput and of latencies misses, as far as measured
// (on a real Triton: a common factor of e^0.11 and e^-0.34, an error of 0.13 and 0.28 in all), and what a metric varies by that
// nothing predicts.
var (
	usualThroughput = spread{global: 0.3, pool: 0.08, smooth: 0.06, own: 0.03, cell: 0.01}
	usualLatency    = spread{global: 0.5, pool: 0.12, smooth: 0.08, own: 0.04, cell: 0.02}
	usualUnknown    = spread{global: 1, pool: 0.3, smooth: 0.3, own: 0.05}
)

// wrong is the standard deviation of log residuals within pools beyond which predictions are of no use, and vague the number of
// degrees of freedom that this takes.
const (
	wrong = 0.3
	vague = 3
)

// The least values that logarithms are taken of; floor is also the least standard deviation.
const (
	floor      = 1e-9
	leastShare = 0.01 // of a utilisation, which drivers tell in whole percents
)

// model is what is believed of one metric of the goal, on log scale.
type model struct {
	metric      measure.Metric
	quantile    float64 // of a percentile of the latency; else 0
	weight      float64 // in the objective, negative where lower is better; 0 in none
	limits      []search.Constraint
	isPredicted bool    // by the simulation of the queue
	isDropped   bool    // its predictions turned out wrong
	isKnown     bool    // it was measured, or is predicted
	centre      float64 // where nothing predicts it
	level       float64 // variance of what all its measurements have in common (estimates)
	noise       noise   // of its trials, as learned
	rate        float64 // variance of the log of a window of a second, by the windows' own intervals
	process     process
}

func newModel(metric measure.Metric) *model {
	m := &model{metric: metric, isPredicted: isPredicted(metric)}
	m.quantile, _ = metric.Quantile()
	return m
}

// newModels lists the metrics of a goal, and last the throughput where none of them is a rate: it tells the machine's course.
func newModels(goal search.Goal) []*model {
	var models []*model
	add := func(metric measure.Metric) *model {
		for _, m := range models {
			if m.metric == metric {
				return m
			}
		}
		m := newModel(metric)
		models = append(models, m)
		return m
	}
	for _, t := range goal.Objective.Terms {
		m := add(t.Metric)
		m.weight += t.Signed()
	}
	for _, c := range goal.Constraints {
		m := add(c.Metric)
		m.limits = append(m.limits, c)
	}
	if !slices.ContainsFunc(models, (*model).isRate) {
		add(measure.Throughput)
	}
	return models
}

// isAsked reports whether the goal has the metric.
func (m *model) isAsked() bool { return m.weight != 0 || len(m.limits) > 0 }

// isMemory reports whether the metric is memory, which is a matter of the pool and the largest batch.
func (m *model) isMemory() bool { return m.metric == measure.Memory }

// bindsLatency reports whether the metric is at least the time of the batches that a throughput needs: the median may be that of
// smaller ones.
func (m *model) bindsLatency() bool {
	return !m.isDropped && (m.metric == measure.LatencyAvg || m.quantile > 0.5)
}

// isRate reports whether the metric is the throughput, or the cost, which is its reciprocal but for a factor.
func (m *model) isRate() bool { return m.metric == measure.Throughput || m.metric == measure.Cost }

// ofRate is the logarithm of such a metric at a throughput in inferences/s.
func (g *Guided) ofRate(metric measure.Metric, throughput float64) float64 {
	if metric == measure.Cost {
		throughput = g.settings.Goal.Cost(throughput)
	}
	return math.Log(throughput)
}

// isPredicted reports whether the simulation of the queue tells a metric.
func isPredicted(metric measure.Metric) bool {
	switch metric {
	case measure.Throughput, measure.Cost, measure.LatencyAvg, measure.QueueTime:
		return true
	}
	_, isQuantile := metric.Quantile()
	return isQuantile
}

// predicted is a metric of a simulated queue, not that of a rate.
func (m *model) predicted(r queuesim.Result) float64 {
	switch m.metric {
	case measure.LatencyAvg:
		return r.Mean
	case measure.LatencyP50:
		return r.P50
	case measure.LatencyP90:
		return r.P90
	case measure.LatencyP95:
		return r.P95
	case measure.LatencyP99:
		return r.P99
	case measure.QueueTime:
		return r.Queue
	}
	return tail(r, m.quantile)
}

// tail is a percentile of the latency that the simulation does not tell, from those that it does: linear in −ln(1−q), as that of an
// exponential tail is.
func tail(r queuesim.Result, q float64) float64 {
	told := [...]struct{ q, latency float64 }{{0.5, r.P50}, {0.9, r.P90}, {0.95, r.P95}, {0.99, r.P99}}
	i := 1
	for i < len(told)-1 && q > told[i].q {
		i++
	}
	a, b := told[i-1], told[i]
	at := func(q float64) float64 { return -math.Log1p(-q) }
	return a.latency + (b.latency-a.latency)*(at(q)-at(a.q))/(at(b.q)-at(a.q))
}

// shift is by how much the logarithm of a metric is off from what a pool's service times say, since the machine was faster or slower when
// they were measured.
func (m *model) shift(p *pool) float64 { return -m.direction() * p.drift }

// direction is which way the metric goes on a machine that gets faster; 0 for what is no matter of speed.
func (m *model) direction() float64 {
	switch {
	case m.metric == measure.Throughput:
		return 1
	case m.isPredicted:
		return -1
	}
	return 0
}

func (m *model) usual() spread {
	s := usualUnknown
	switch {
	case m.isRate():
		s = usualThroughput
	case m.isPredicted:
		s = usualLatency
	}
	if m.isDropped {
		s.global, s.pool, s.smooth = usualUnknown.global, usualUnknown.pool, usualUnknown.smooth
	}
	return s
}

// log is the logarithm of a value of the metric, of which 0 counts as the least that can be told.
func (m *model) log(value float64) float64 {
	least := floor
	switch info, _ := m.metric.Info(); info.Unit {
	case measure.Seconds:
		least = shortest
	case measure.Share:
		least = leastShare
	}
	return math.Log(max(value, least))
}

// reading is one trial of a cell, in logarithms by model; NaN where the trial does not tell.
type reading struct {
	at        float64 // s, when it was, in the campaign
	seconds   float64 // of its windows
	withheld  float64 // CPU time that others took from it (measure.Withheld)
	isFlagged bool
	logs      []float64
	errors    []float64 // standard deviations from the windows' own intervals; 0 unknown
}

func (g *Guided) read(e search.Event) (reading, bool) {
	m := e.Measurement
	r := reading{isFlagged: len(m.Flags()) > 0, logs: make([]float64, len(g.models)), errors: make([]float64, len(g.models))}
	for _, w := range m.Windows {
		r.seconds += w.Duration.Seconds()
	}
	r.withheld = g.settings.Space.Withheld(e.Trial.Candidate, g.settings.Space.Facts.Instances(e.Trial.Candidate), m)
	r.at = e.Middle().Seconds()
	isComplete := r.seconds > 0
	for i, model := range g.models {
		e, ok := g.settings.Goal.Estimate(m, model.metric)
		ok = ok && (e.Value > 0 || model.weight == 0)
		if !ok {
			r.logs[i] = math.NaN()
			isComplete = isComplete && model.weight == 0
			continue
		}
		r.logs[i] = model.log(e.Value)
		if e.Lo > 0 && e.Hi > e.Lo {
			const widths = 2 * 1.96 // standard deviations in a 95 % interval
			r.errors[i] = math.Log(e.Hi/e.Lo) / widths
		}
	}
	return r, isComplete
}

// track is what was measured of a cell in the search.
type track struct {
	key         string // of the candidate
	level       float64
	measurement measure.Measurement // all windows together
	readings    []reading
	last        int // ordinal of its last trial among those of cells in the search
}

// learn conditions the model of each metric on all that was measured in ready pools.
func (g *Guided) learn() {
	g.learnPath()
	all := make([]estimates, len(g.models))
	service := 0.0 // deviation of the log of a pool's service times, since they are as noisy as other trials
	for k, m := range g.models {
		if m.isMemory() {
			continue
		}
		if all[k] = g.estimate(k); m.isRate() {
			service = math.Hypot(all[k].noise.trial, all[k].noise.drift)
			for _, p := range g.pools {
				p.drift = 0
				if s := p.service(); s.trials > 0 {
					p.drift = m.direction() * (all[k].driftAt(s.at) + all[k].withheld.Part(s.withheld))
				}
			}
		}
	}
	for k, m := range g.models {
		if m.isMemory() {
			m.isKnown = g.held.Any()
			continue
		}
		seen := all[k]
		g.keepPace(k, seen)
		seen = g.remember(k, seen)
		m.level, m.noise, m.rate = seen.level+slower*seen.noise.drift*seen.noise.drift, seen.noise, seen.rate
		m.isDropped = false
		pools := g.sights(k, seen)
		m.isKnown = m.isPredicted || len(pools) > 0
		if m.isPredicted && isWrong(pools) {
			m.isDropped = true
			pools = g.sights(k, seen)
		}
		if !m.isPredicted {
			m.centre = centre(pools)
			for _, sights := range pools {
				for i := range sights {
					sights[i].value -= m.centre
				}
			}
		}
		m.process = learn(pools, seen.errors, m.usual(), m.ofServices(service))
	}
}

// ofServices is what the service times' deviation makes the metric's predictions vary by.
func (m *model) ofServices(deviation float64) float64 {
	if !m.isPredicted || m.isDropped {
		return 0
	}
	return deviation
}

// sights lists the residuals of a metric by pool.
func (g *Guided) sights(k int, seen estimates) [][]sight {
	var pools [][]sight
	for _, p := range g.pools {
		if !p.isReady() {
			continue
		}
		var sights []sight
		for _, t := range slices.Concat(p.tracks, g.remembered(p)) {
			at, found := p.find(t.key)
			column, isSeen := seen.columns[t]
			if !found || !isSeen {
				continue
			}
			c := cell{p, setting{at, t.level}}
			prior := 0.0
			if g.models[k].isPredicted {
				prior = g.prior(c, k) + g.models[k].shift(p) + g.offset(p, k)
			}
			sights = append(sights, sight{g.spot(c), min(seen.means[column], g.endless(k, p)) - prior, column})
		}
		if len(sights) > 0 {
			pools = append(pools, sights)
		}
	}
	return pools
}

func centre(pools [][]sight) float64 {
	sum, count := 0.0, 0.0
	for _, sights := range pools {
		for _, s := range sights {
			sum, count = sum+s.value, count+1
		}
	}
	return sum / max(count, 1)
}

// isWrong reports whether residuals differ more within pools than predictions may.
func isWrong(pools [][]sight) bool {
	squares, freedom := 0.0, 0
	for _, sights := range pools {
		mean := centre([][]sight{sights})
		for _, s := range sights {
			squares += (s.value - mean) * (s.value - mean)
		}
		freedom += len(sights) - 1
	}
	return freedom >= vague && squares > wrong*wrong*float64(freedom)
}
