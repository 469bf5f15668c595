package gate

import (
	"math"
	"slices"

	"tuner/gate/decide"
	"tuner/measure"
	"tuner/spec"
)

// Criterion is a metric that must not be worse than the baseline's by more than a margin, or must keep a limit.
type Criterion struct {
	Metric measure.Metric
	Margin float64 // share of the baseline's value, above 0; 0 for a limit
	Bound  float64 // of a limit, in the metric's base unit
	Min    bool    // the limit is a least value, not a greatest
}

// IsLimit reports whether the candidate is judged by itself.
func (c Criterion) IsLimit() bool { return c.Margin == 0 }

// Criteria are what a gate judges, in the order of its file: margins, then limits.
func Criteria(g spec.Gate) []Criterion {
	var list []Criterion
	for _, m := range g.Metrics {
		list = append(list, Criterion{Metric: m.Metric, Margin: m.Margin})
	}
	for _, c := range g.Limits {
		if c.Min != nil {
			list = append(list, Criterion{Metric: c.Metric, Bound: *c.Min, Min: true})
		}
		if c.Max != nil {
			list = append(list, Criterion{Metric: c.Metric, Bound: *c.Max})
		}
	}
	return list
}

// isTime reports whether the metric is a time that requests take.
func (c Criterion) isTime() bool {
	info, _ := c.Metric.Info()
	return info.Unit == measure.Seconds
}

// moreIsWorse reports which direction of the metric is worse.
func (c Criterion) moreIsWorse() bool {
	if c.IsLimit() {
		return !c.Min
	}
	info, _ := c.Metric.Info()
	return !info.HigherBetter
}

// tolerated is the logarithm of how many times worse the candidate may be.
func (c Criterion) tolerated() float64 {
	if c.moreIsWorse() {
		return math.Log1p(c.Margin)
	}
	return -math.Log1p(-c.Margin)
}

// judged is what package decide judges: what is tolerated, and what no pair takes off a saved baseline's doubt.
func (c Criterion) judged(reference map[measure.Metric]Reference) decide.Criterion {
	r, saved := reference[c.Metric]
	d := decide.Criterion{Tolerated: c.tolerated(), IsAlone: c.IsLimit() || saved}
	if !c.IsLimit() {
		d.Spread = r.Spread
	}
	if c.isTime() || c.Metric == measure.Throughput {
		d.Slope = 1 // what others take is lost, and makes requests as much longer
	}
	return d
}

// worse turns the logarithm of candidate over baseline, or over the limit, into that of how many times worse it is.
func (c Criterion) worse(log float64) float64 {
	if c.moreIsWorse() {
		return log
	}
	return -log
}

// Change turns what was decided into relative changes of the metric itself: 0.05 is 5 % more than the baseline, or than the limit. The bounds
// may be infinite, or −1.
func (c Criterion) Change(s decide.Standing) measure.Estimate {
	value, lo, hi := s.Value, s.Lo, s.Hi
	if !c.moreIsWorse() {
		value, lo, hi = -value, -hi, -lo
	}
	return measure.Estimate{Value: math.Expm1(value), Lo: math.Expm1(lo), Hi: math.Expm1(hi)}
}

// Reference is a metric of a saved baseline.
type Reference struct {
	Log    float64 // of its value
	Spread float64 // standard error of that logarithm, and of what differs from job to job
}

// leastFigure keeps logarithms finite: a nanosecond, a millionth of an inference per second and the like are nothing.
const leastFigure = 1e-9

// figures are the logarithms of a metric's values on one side of a pair: one of each window, or a single one where only all windows together
// tell it. NaN where nothing tells it, as in a window in which no request ended.
func figures(metric measure.Metric, of measure.Measurement) []float64 {
	parts := []measure.Measurement{of}
	if !isOfAll(metric, of) {
		parts = nil
		for _, w := range of.Windows {
			parts = append(parts, measure.Measurement{Windows: []measure.Window{w}})
		}
	}
	var logs []float64
	for _, part := range parts {
		log := math.NaN()
		if x, ok := figure(metric, part); ok {
			log = math.Log(max(x, leastFigure))
		}
		logs = append(logs, log)
	}
	return logs
}

// isOfAll reports whether only all windows together tell a metric: percentiles need their requests, and so does what is answered of a request
// rate, at which a window may have none; memory is a peak.
func isOfAll(metric measure.Metric, of measure.Measurement) bool {
	_, isPercentile := metric.Quantile()
	return isPercentile || metric == measure.Memory || metric == measure.GPUMemory || metric == measure.Throughput && of.Offered() > 0
}

// middle joins the figures that are known; false where none is.
func middle(logs []float64) (float64, bool) {
	known := slices.DeleteFunc(logs, math.IsNaN)
	return decide.Middle(known), len(known) > 0
}

// figure is the value of a metric. The throughput of a closed loop is by Little's law (measure.Window.Little), whatever the window: half a second
// holds too few batches to count. A window in which nothing ended, since a batch takes longer, does not tell it.
func figure(metric measure.Metric, of measure.Measurement) (float64, bool) {
	value, ok := of.Value(metric)
	if metric != measure.Throughput || !ok || of.Offered() > 0 {
		return value, ok
	}
	w := of.Windows[0]
	if w.Requests+w.Errors == 0 {
		return 0, false
	}
	if rate, ok := w.Little(); ok {
		return rate, true
	}
	return value, true
}

// Figure is a metric's value on one side of a pair, in its base unit; false where nothing tells it.
func Figure(metric measure.Metric, of measure.Measurement) (float64, bool) {
	log, ok := middle(figures(metric, of))
	return math.Exp(log), ok
}

// value is what a pair says of the criterion: the logarithms of how many times worse the candidate was, and what others withheld from it
// meanwhile. False where a side does not tell the metric.
func (c Criterion) value(p Pair, reference map[measure.Metric]Reference) (decide.Value, bool) {
	logs, withheld := figures(c.Metric, p.Candidate), withheldIn(c.Metric, p.Candidate)
	r, saved := reference[c.Metric]
	against := r.Log
	switch {
	case c.IsLimit():
		against = math.Log(c.Bound)
	case saved:
	default:
		base := figures(c.Metric, p.Baseline)
		if len(base) != len(logs) {
			return decide.Value{}, false
		}
		for i, x := range withheldIn(c.Metric, p.Baseline) {
			logs[i] -= base[i]
			withheld[i] -= x
		}
	}
	if c.Metric == measure.Throughput && p.Candidate.Offered() > 0 {
		clear(withheld) // the schedule decides what is answered in time
	}
	var v decide.Value
	for i, log := range logs {
		if !math.IsNaN(log) {
			v.Logs, v.Withheld = append(v.Logs, c.worse(log-against)), append(v.Withheld, withheld[i])
		}
	}
	return v, len(v.Logs) > 0
}
