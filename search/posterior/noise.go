package posterior

import (
	"slices"

	"tuner/measure"
)

// Noise returns the variance of a metric's logarithm in one more trial on its own launch, without
// the machine's speed. It sums the variance between launches, a trial's own error, and the error of
// windows like those so far. It is 0 for memory, which is measured exactly, and for metrics without
// a trial.
func (p *Posterior) Noise(metric measure.Metric) float64 {
	return p.average(metric, func(s *scales, typical float64) float64 {
		return s.trial*s.trial + s.within*s.within*typical + s.launch*s.launch
	})
}

// Scatter returns the variance of the logarithms of trials of one cell that are minutes apart:
// Noise plus the machine's speed.
func (p *Posterior) Scatter(metric measure.Metric) float64 {
	return p.Noise(metric) + p.average(metric, func(s *scales, _ float64) float64 { return s.course(0) })
}

// average returns the mean of a variance over all likely scales. The variance may depend on the
// variance of typical windows. It is 0 if no trial has the metric.
func (p *Posterior) average(metric measure.Metric, of func(s *scales, typical float64) float64) float64 {
	if metric == measure.Cost {
		metric = measure.Throughput
	}
	x, ok := p.process(metric)
	if !ok {
		return 0
	}
	explained := make([]float64, len(x.list))
	for i, o := range x.list {
		explained[i] = o.variance
	}
	slices.Sort(explained)
	typical, sum := explained[len(explained)/2], 0.0
	for i := range x.parts {
		sum += x.parts[i].probability * of(&x.parts[i].scales, typical)
	}
	return sum
}
