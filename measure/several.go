package measure

import "math"

// ofAll is Estimate for a metric of the server, from the windows of several models.
func (m Measurement) ofAll(metric Metric) (Estimate, bool) {
	switch metric {
	case Scale:
		return Estimate{Value: m.Scale, Lo: m.Scale, Hi: m.Scale}, m.Scale > 0
	case Throughput:
		return m.summed(metric)
	case ErrorRate:
		return m.worst(metric)
	case Memory, CPU, GPUMemory, GPUUtilization, GPUPower:
		return m.Whole().ofOne(metric)
	}
	return Estimate{}, false
}

// summed returns the sum of a metric over the models. Their errors are taken as independent. It
// returns false if a model lacks the metric.
func (m Measurement) summed(metric Metric) (Estimate, bool) {
	var sum Estimate
	below, above := 0.0, 0.0
	for _, model := range m.Models() {
		e, ok := m.Of(model).ofOne(metric)
		if !ok {
			return Estimate{}, false
		}
		sum.Value += e.Value
		below, above = math.Hypot(below, e.Value-e.Lo), math.Hypot(above, e.Hi-e.Value)
	}
	sum.Lo, sum.Hi = max(0, sum.Value-below), sum.Value+above
	return sum, true
}

// worst returns the largest value of a metric of all models that have it. So a model with few requests
// does not hide behind the others.
func (m Measurement) worst(metric Metric) (Estimate, bool) {
	var worst Estimate
	isKnown := false
	for _, model := range m.Models() {
		if e, ok := m.Of(model).ofOne(metric); ok && (!isKnown || e.Value > worst.Value) {
			worst, isKnown = e, true
		}
	}
	return worst, isKnown
}
