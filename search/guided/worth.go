package guided

import (
	"math"

	"tuner/measure"
	"tuner/search"
)

// worth bounds what a window must show at its look to matter still: the limits, and the lead where the objective is one metric, each with room for what so
// short a window may err by. There are none while nothing satisfies the constraints: then it is to be known by how much they are missed.
func (g *Guided) worth(s *survey) []search.Constraint {
	if math.IsInf(s.lead, -1) {
		return nil
	}
	var list []search.Constraint
	for k, m := range g.models {
		if !isTold(m.metric) {
			continue
		}
		room := math.Exp(clearly * g.lookDeviation(k))
		for _, limit := range m.limits {
			list = append(list, loosened(limit, room))
		}
		if len(g.settings.Goal.Objective.Terms) == 1 && m.weight != 0 {
			list = append(list, m.leading(s.lead, room))
		}
	}
	return list
}

// isTold reports whether a load itself tells a metric.
func isTold(metric measure.Metric) bool {
	_, isPercentile := metric.Quantile()
	return isPercentile || metric == measure.Throughput || metric == measure.LatencyAvg
}

// lookDeviation is that of the logarithm of what a window shows at its look.
func (g *Guided) lookDeviation(k int) float64 {
	v := g.models[k].view
	return math.Sqrt(v.TrialVariance(measure.Look*g.window().Seconds()) + v.SpeedVariance())
}

// loosened is a constraint that leaves a factor of room.
func loosened(c search.Constraint, room float64) search.Constraint {
	if c.Max != nil {
		most := *c.Max * room
		c.Max = &most
	}
	if c.Min != nil {
		least := *c.Min / room
		c.Min = &least
	}
	return c
}

// leading is what an only metric of the objective must be for a score, with a factor of room.
func (m *model) leading(score, room float64) search.Constraint {
	value := math.Exp(score / m.weight)
	if m.weight > 0 {
		return loosened(search.Constraint{Metric: m.metric, Min: &value}, room)
	}
	return loosened(search.Constraint{Metric: m.metric, Max: &value}, room)
}
