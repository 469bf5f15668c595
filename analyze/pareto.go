package analyze

import (
	"cmp"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// Front is a Pareto set: the measured points that keep the constraints and that no other point
// dominates. A point dominates another if it is at least as good in every metric and better in one.
// Figures are compared without their intervals.
//
// If something is recommended, the set has only points that keep the constraints as surely, and for
// which no simpler point stands. So the recommended one is always in it.
type Front struct {
	Metrics []measure.Metric
	Points  []FrontPoint // ordered by the first metric, best first; equal ones by the next metric
}

// FrontPoint is a configuration at a load in a Pareto set.
type FrontPoint struct {
	Name   string // of the configuration
	Load   measure.Load
	Values []float64 // in the order of the front's metrics, in base units
}

// FrontMetrics lists the metrics of the fronts: first the front with three metrics, then those with
// two. Several models have no common throughput and latency. Their only front is that of scale and memory.
func FrontMetrics(goal search.Goal) [][]measure.Metric {
	if isOfSeveral(goal) {
		return [][]measure.Metric{{measure.Scale, measure.Memory}}
	}
	latency := goal.Latency()
	return [][]measure.Metric{
		{measure.Throughput, latency, measure.Memory},
		{measure.Throughput, latency},
		{measure.Throughput, measure.Memory},
		{latency, measure.Memory},
	}
}

// isOfSeveral reports whether a goal names a metric that only several models have.
func isOfSeveral(goal search.Goal) bool {
	return slices.ContainsFunc(goal.Metrics(), func(m measure.Metric) bool {
		model, _ := m.Split()
		return model != "" || m == measure.Scale
	})
}

// fronts returns the Pareto sets of throughput, latency and memory, without empty ones. They are at
// the load at which configurations are compared, or at all loads.
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
	// A later point in this order cannot dominate an earlier one, so each point is compared with
	// earlier ones only.
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

// valuesOf returns false if a metric is unknown.
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
