package analyze

import (
	"cmp"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// Front is a Pareto set: the measured points that keep the constraints, of which no other is at least as good in every metric and better in one.
// It compares the figures, not their intervals. Where something is recommended, its points are those that keep the constraints as surely
// and that no simpler one stands for, so that the recommended one is always among them.
type Front struct {
	Metrics []measure.Metric
	Points  []FrontPoint // best by the first metric first; equal ones by the next
}

// FrontPoint is a configuration at a load that is in a Pareto set.
type FrontPoint struct {
	Name   string // of the configuration
	Load   measure.Load
	Values []float64 // of the front's metrics, in their order and base units
}

// FrontMetrics lists the metrics of the fronts: first those of the front of three, then those of the two-way ones.
func FrontMetrics(goal search.Goal) [][]measure.Metric {
	latency := goal.Latency()
	return [][]measure.Metric{
		{measure.Throughput, latency, measure.Memory},
		{measure.Throughput, latency},
		{measure.Throughput, measure.Memory},
		{latency, measure.Memory},
	}
}

// fronts are the Pareto sets of throughput, latency and memory, at the load that configurations are compared at or at every one; those without
// a point are left out.
func fronts(configs []Config, v view, goal search.Goal) []Front {
	var list []Front
	for _, metrics := range FrontMetrics(goal) {
		if f := newFront(configs, v, metrics); len(f.Points) > 0 {
			list = append(list, f)
		}
	}
	return list
}

func newFront(configs []Config, v view, metrics []measure.Metric) Front {
	var candidates []FrontPoint
	for _, c := range configs {
		for _, p := range c.Points {
			if !v.takesPart(c, p) || v.at != nil && !isAt(p.Load, *v.at) {
				continue
			}
			if values, ok := valuesOf(p, metrics); ok {
				candidates = append(candidates, FrontPoint{c.Name, p.Load, values})
			}
		}
	}
	slices.SortFunc(candidates, func(a, b FrontPoint) int {
		for i, m := range metrics {
			if order := better(m, a.Values[i], b.Values[i]); order != 0 {
				return order
			}
		}
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Load.Level(), b.Load.Level()))
	})
	// What comes later in this order cannot dominate what comes before, so that looking back is enough.
	front := Front{Metrics: metrics}
	for _, p := range candidates {
		if !slices.ContainsFunc(front.Points, func(q FrontPoint) bool { return dominates(metrics, q.Values, p.Values) }) {
			front.Points = append(front.Points, p)
		}
	}
	return front
}

// takesPart reports whether a point may be in a Pareto set.
func (w view) takesPart(c Config, p Point) bool {
	x, ok := w.choice(c.Candidate, p)
	switch {
	case !ok:
		return !c.CurveOnly && len(p.Misses) == 0
	case !x.MayLead():
		return false
	case w.verdict.Recommended == nil:
		return x.Holds >= verdict.Likely
	}
	return x.Keeps(w.verdict.Confidence) && !x.IsDisplaced
}

// valuesOf is false where a metric is not known.
func valuesOf(p Point, metrics []measure.Metric) ([]float64, bool) {
	values := make([]float64, len(metrics))
	for i, m := range metrics {
		e, ok := p.Values[m]
		if !ok {
			return nil, false
		}
		values[i] = e.Value
	}
	return values, true
}

// better orders two values of a metric, the better one first.
func better(m measure.Metric, a, b float64) int {
	if info, _ := m.Info(); info.HigherBetter {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

// dominates reports whether a is at least as good as b in every metric and better in one.
func dominates(metrics []measure.Metric, a, b []float64) bool {
	isBetter := false
	for i, m := range metrics {
		switch order := better(m, a[i], b[i]); {
		case order > 0:
			return false
		case order < 0:
			isBetter = true
		}
	}
	return isBetter
}
