package guided

import (
	"math"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/queuesim"
)

// floor is the least value that a logarithm is taken of, and the least standard deviation.
const floor = 1e-9

// model is what is believed of one metric of the goal, on log scale.
type model struct {
	metric      measure.Metric
	quantile    float64 // of a percentile of the latency; else 0
	weight      float64 // in the objective, negative where lower is better; 0 in none
	limits      []search.Constraint
	isPredicted bool // by the simulation of the queue
	isDropped   bool // its predictions turned out wrong
	isKnown     bool // it was measured, or is predicted
	view        *posterior.View
	reference   posterior.Reference // with which cells were compared last
	running     posterior.Ahead     // the error of the next trial in the process that runs
	fresh       posterior.Ahead     // and in one that is launched for it
}

func newModel(metric measure.Metric) *model {
	m := &model{metric: metric, isPredicted: isPredicted(metric)}
	m.quantile, _ = metric.Quantile()
	return m
}

// newModels lists the metrics of a goal.
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
	return models
}

// centre is the mean logarithm of what nothing predicts.
func (m *model) centre() float64 {
	if m.view == nil {
		return 0
	}
	return m.view.Centre()
}

// isMemory reports whether the metric is memory, which is a matter of the pool and the largest batch.
func (m *model) isMemory() bool { return m.metric == measure.Memory }

// bindsLatency reports whether the metric is at least the time of the batches that a throughput needs: the median may be that of
// smaller ones.
func (m *model) bindsLatency() bool {
	return m.metric == measure.LatencyAvg || m.quantile > 0.5
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

// ahead is the error of the next trial: in the process that runs, or in one of its own.
func (m *model) ahead(isRunning bool) posterior.Ahead {
	if isRunning {
		return m.running
	}
	return m.fresh
}

// direction is which way the metric goes on a machine that gets faster; 0 for what is no matter of speed.
func (m *model) direction() float64 {
	if m.metric == measure.Cost {
		return -posterior.Direction(m.source())
	}
	return posterior.Direction(m.metric)
}

// source is the metric that trials tell of it: the cost is derived from the throughput.
func (m *model) source() measure.Metric {
	if m.metric == measure.Cost {
		return measure.Throughput
	}
	return m.metric
}

// isScored reports whether a trial has windows, and all metrics of the objective.
func (g *Guided) isScored(m measure.Measurement) bool {
	seconds := 0.0
	for _, w := range m.Windows {
		seconds += w.Duration.Seconds()
	}
	isScored := seconds > 0
	for _, t := range g.settings.Goal.Objective.Terms {
		e, ok := g.settings.Goal.Estimate(m, t.Metric)
		isScored = isScored && ok && e.Value > 0
	}
	return isScored
}

// track is what was measured of a cell in the search.
type track struct {
	key         string // of the candidate
	level       float64
	measurement measure.Measurement // all windows together
	trials      int
}

// seconds is how long its trials were in the mean.
func (t *track) seconds() float64 {
	sum := 0.0
	for _, w := range t.measurement.Windows {
		sum += w.Duration.Seconds()
	}
	return sum / float64(t.trials)
}
