package analyzetest

import (
	"maps"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/analyze"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
)

// Narrow returns a goal of throughput whose limits a point keeps with a probability each. The logarithm of a metric is
// normal, so that is the limit e^(mean + z·deviation), where z is the normal quantile of the probability. Where higher is
// better it is the least, e^(mean − z·deviation).
func Narrow(t testing.TB, p analyze.Point, probability float64, metrics ...measure.Metric) *search.Goal {
	t.Helper()
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	z := distuv.UnitNormal.Quantile(probability)
	for _, metric := range metrics {
		e := p.Values[metric]
		if !(e.Lo > 0 && e.Lo < e.Value) {
			t.Fatalf("%s has the values %v: %v is no estimate with an error", p.Load, maps.Clone(p.Values), e)
		}
		c, away := search.Constraint{Metric: metric}, math.Exp(z*math.Log(e.Value/e.Lo)/stats.Half95)
		limit := e.Value * away
		c.Max = &limit
		if info, _ := metric.Info(); info.HigherBetter {
			limit = e.Value / away
			c.Min, c.Max = c.Max, nil
		}
		goal.Constraints = append(goal.Constraints, c)
	}
	return &goal
}
