package gate

import (
	"math"
	"slices"

	"tuner/gate/decide"
	"tuner/measure"
	"tuner/spec"
)

// Criterion is a metric that must keep a margin against the baseline, or an absolute limit.
type Criterion struct {
	Metric measure.Metric
	Margin float64 // allowed share of the baseline's value, above 0; 0 for a limit
	Bound  float64 // value of a limit, in the metric's base unit
	Min    bool    // the limit is a minimum, not a maximum
}

// IsLimit reports whether the criterion judges the candidate without a baseline.
func (c Criterion) IsLimit() bool { return c.Margin == 0 }

// Criteria returns what a gate judges, in the order of its file: margins, then limits.
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

// isTime reports whether the metric is a time of requests.
func (c Criterion) isTime() bool {
	info, _ := c.Metric.Info()
	return info.Unit == measure.Seconds
}

// moreIsWorse reports whether a larger value of the metric is worse.
func (c Criterion) moreIsWorse() bool {
	if c.IsLimit() {
		return !c.Min
	}
	info, _ := c.Metric.Info()
	return !info.HigherBetter
}

// tolerated returns the logarithm of the factor by which the candidate may be worse.
func (c Criterion) tolerated() float64 {
	if c.moreIsWorse() {
		return math.Log1p(c.Margin)
	}
	return -math.Log1p(-c.Margin)
}

// judged converts the criterion for package decide. It includes the spread of a saved baseline,
// which no number of pairs reduces.
func (c Criterion) judged(reference map[measure.Metric]Reference) decide.Criterion {
	r, saved := reference[c.Metric]
	d := decide.Criterion{Tolerated: c.tolerated(), IsAlone: c.IsLimit() || saved}
	if !c.IsLimit() {
		d.Spread = r.Spread
	}
	if _, of := c.Metric.Split(); c.isTime() || c.Metric.IsGoodput() || of == measure.Throughput {
		d.Slope = 1 // withheld time is lost, and makes requests longer by the same factor
	}
	return d
}

// worse converts the logarithm of candidate over baseline (or limit) into the logarithm of the
// factor by which the candidate is worse.
func (c Criterion) worse(log float64) float64 {
	if c.moreIsWorse() {
		return log
	}
	return -log
}

// Change converts a standing into the relative change of the metric: 0.05 is 5 % more than the
// baseline or the limit. The bounds may be infinite, or −1.
func (c Criterion) Change(s decide.Standing) measure.Estimate {
	value, lo, hi := s.Value, s.Lo, s.Hi
	if !c.moreIsWorse() {
		value, lo, hi = -value, -hi, -lo
	}
	return measure.Estimate{Value: math.Expm1(value), Lo: math.Expm1(lo), Hi: math.Expm1(hi)}
}

// Reference is a metric of a saved baseline.
type Reference struct {
	Log    float64 // logarithm of its value
	Spread float64 // standard error of Log, including the difference between jobs
}

// leastFigure keeps logarithms finite. Smaller figures, such as less than a nanosecond or a
// millionth of an inference per second, count as this.
const leastFigure = 1e-9

// own returns the windows that a metric is about, and the metric without the name of one of several models. A
// figure of the server is in the windows of all models, and counts once.
func own(metric measure.Metric, of measure.Measurement) (measure.Metric, measure.Measurement) {
	if model, plain := metric.Split(); model != "" {
		return plain, of.Of(model).Alone()
	}
	return metric, of.Whole().Alone()
}

// figures returns the logarithms of a metric's values on one side of a pair. There is one for each
// window, or a single one if the metric needs all windows together. A value is NaN if it is
// unknown, such as the latency of a window without a finished request.
func figures(metric measure.Metric, of measure.Measurement) []float64 {
	metric, of = own(metric, of)
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

// isOfAll reports whether a metric needs all windows together. Percentiles need all requests. So do
// goodputs, since no answer of a window may be in time, and the throughput at a request rate, since
// a window may have no request. Memory is a peak.
func isOfAll(metric measure.Metric, of measure.Measurement) bool {
	_, isPercentile := metric.Quantile()
	return isPercentile || metric.IsGoodput() || metric == measure.Memory || metric == measure.GPUMemory || metric == measure.Throughput && of.Offered() > 0
}

// middle combines the known figures. It returns false if none is known.
func middle(logs []float64) (float64, bool) {
	known := slices.DeleteFunc(logs, math.IsNaN)
	return decide.Middle(known), len(known) > 0
}

// figure returns the value of a metric. The throughput of a closed loop comes from Little's law
// (measure.Window.Little), for windows of any length: half a second has too few batches to count.
// If a batch takes longer than a window, nothing ends in it, and the throughput is unknown.
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

// Figure returns a metric's value on one side of a pair, in its base unit. It returns false if the
// value is unknown.
func Figure(metric measure.Metric, of measure.Measurement) (float64, bool) {
	log, ok := middle(figures(metric, of))
	return math.Exp(log), ok
}

// value returns a pair's value for the criterion. It has the logarithms of the factors by which the
// candidate was worse, and the CPU time that others withheld meanwhile. It returns false if the
// metric is unknown on one side.
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
	if metric, of := own(c.Metric, p.Candidate); metric == measure.Throughput && of.Offered() > 0 {
		clear(withheld) // at a request rate, the schedule decides how much is answered
	}
	var v decide.Value
	for i, log := range logs {
		if !math.IsNaN(log) {
			v.Logs, v.Withheld = append(v.Logs, c.worse(log-against)), append(v.Withheld, withheld[i])
		}
	}
	return v, len(v.Logs) > 0
}
