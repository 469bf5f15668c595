package posterior

import (
	"slices"

	"tuner/measure"
)

// Noise is the variance of what one more trial, on a launch of its own, tells of a metric's logarithm, beside the
// machine's speed: what launches differ by, a trial's own error, and that of windows like those so far. It is 0 of
// memory, which is seen as it is, and of what nothing was measured.
func (p *Posterior) Noise(metric measure.Metric) float64 {
	return p.average(metric, func(s *scales, typical float64) float64 {
		return s.trial*s.trial + s.within*s.within*typical + s.launch*s.launch
	})
}

// Scatter is the variance of the logarithms of trials of one cell, minutes apart: Noise and the machine's speed.
func (p *Posterior) Scatter(metric measure.Metric) float64 {
	return p.Noise(metric) + p.average(metric, func(s *scales, _ float64) float64 { return s.course(0) })
}

// average is the mean over all likely scales of a variance, which may depend on that of typical windows; 0 where nothing
// told the metric.
func (p *Posterior) average(metric measure.Metric, of func(s *scales, typical float64) float64) float64 {
	if metric == measure.Cost {
		metric = measure.Throughput
	}
	x, ok := p.processes[metric]
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
