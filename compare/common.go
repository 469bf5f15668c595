package compare

import (
	"gonum.org/v1/gonum/stat/distuv"

	"tuner/measure"
)

// Common is the change of a metric that all configurations and loads of a pair share, as that of a
// slower machine is.
type Common struct {
	Metric  measure.Metric `json:"metric"`  // the metric
	Changes int            `json:"changes"` // number of changes with an interval, at least two
	// common relative change with its 95 % interval: the mean of the logarithms, weighted by the inverses of
	// their variances; the spread between runs is part of the interval
	Change    Figure    `json:"change"`
	Direction Direction `json:"direction" jsonschema:"enum"` // what the common change shows
	// probability of changes that differ as much among themselves, if all are the common one (Cochran's Q)
	PValue float64 `json:"p_value" jsonschema:"minimum=0,maximum=1"`
}

// Suffices reports whether the common change is enough to explain all changes: Cochran's Q does not
// show at 5 % that they differ.
func (c Common) Suffices() bool { return c.PValue >= 0.05 }

// shift is a change as a logarithm.
type shift struct {
	mean, variance float64 // the variance of both figures, without what a pair of runs shares
	shared         float64 // the variance that all changes of the metric share
}

// commonOf pools the changes of a metric (Cochran, The Combination of Estimates from Different
// Experiments, 1954). It returns false if there are fewer than two.
func commonOf(metric measure.Metric, shifts []shift) (Common, bool) {
	if len(shifts) < 2 {
		return Common{}, false
	}
	var weights, mean, shared float64
	for _, s := range shifts {
		weights += 1 / s.variance
		mean += s.mean / s.variance
		shared = max(shared, s.shared)
	}
	mean /= weights
	q := 0.0
	for _, s := range shifts {
		q += (s.mean - mean) * (s.mean - mean) / s.variance
	}
	c := Common{Metric: metric, Changes: len(shifts), Change: *shift{mean, 1 / weights, shared}.change()}
	info, _ := metric.Info()
	c.Direction = directionOf(&c.Change, info.HigherBetter)
	c.PValue = distuv.ChiSquared{K: float64(len(shifts) - 1)}.Survival(q)
	return c, true
}
