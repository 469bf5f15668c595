package explorer

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// Log predicts a limited latency of a configuration under a load from the service times, as the prior of
// the plan's posterior. Of a model with several limits only the nearest one is predicted, so none of them
// is known.
func (x *Explorer) Log(c search.Candidate, load measure.Load, metric measure.Metric) (float64, bool) {
	model, own := metric.Split()
	i := slices.IndexFunc(x.parts, func(p *part) bool { return p.name == model })
	if x.search == nil || i < 0 || load.Level() <= 0 {
		return 0, false
	}
	limits := x.parts[i].limits
	if len(limits) != 1 || limits[0].Metric != own {
		return 0, false
	}
	cell, known := x.cellOf(c)
	if !known {
		return 0, false
	}
	return math.Log(limits[0].Seconds) + x.search.Margin(cell, i, load.Level()), true
}

// Rivals lists the cells that were not measured and may be better: each at the level of its most likely
// scale, and at its highest sure level. isOpen means that the search has not begun.
func (x *Explorer) Rivals() (list []verdict.Rival, isOpen bool) {
	if x.search == nil {
		return nil, true
	}
	axis := x.settings.Space.Load
	for _, cell := range x.search.Unmeasured() {
		c := x.candidateOf(cell)
		isPool := slices.ContainsFunc(x.parts, func(p *part) bool { return p.missing(p.options[cell.Options[p.at]].pool) > 0 })
		var levels []float64
		for _, probability := range []float64{0.5, x.confidence()} {
			scale := x.search.Scale(cell, probability)
			if level := axis.AtMost(scale); scale > 0 && !slices.Contains(levels, level) {
				levels = append(levels, level)
				list = append(list, verdict.Rival{
					Candidate: c, Load: axis.At(level), IsPool: isPool,
					Score: posterior.Normal{Mean: x.score(level), Deviation: scaleError}, Holds: x.search.Holds(cell, level),
				})
			}
		}
	}
	return list, false
}

// scaleError is the deviation of a scale's logarithm: it is offered, and no score may be without one.
const scaleError = 1e-3

// score returns the goal's score at a scale.
func (x *Explorer) score(level float64) float64 {
	return x.settings.Goal.Objective.Terms[0].Signed() * math.Log(level)
}

func (x *Explorer) confidence() float64 {
	if x.settings.Confidence > 0 {
		return x.settings.Confidence
	}
	return verdict.Confidence
}
