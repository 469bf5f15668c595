package posterior

import (
	"slices"

	"tuner/measure"
)

// Noise is the variance of what one more trial, on a launch of its own, tells of a metric's logarithm, beside the
// machine's speed: what launches differ by, a trial's own error, and that of windows like those so far. It is 0 of
// memory, which is seen as it is, and of what nothing was measured.
func (p *Posterior) Noise(metric measure.Metric) float64 {
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
	for _, part := range x.parts {
		sum += part.probability * (part.trial*part.trial + part.within*part.within*typical + part.launch*part.launch)
	}
	return sum
}
