package json

import (
	"math"

	"tuner/analyze"
	"tuner/measure"
	"tuner/report/figures"
	"tuner/report/result"
)

// newServed lists several models with their traffic at scale 1; none for one model.
func newServed(r analyze.Result) []result.Served {
	var list []result.Served
	mix := figures.MixOf(r)
	for _, m := range r.Models {
		s := result.Served{Model: m.Header.Model, Load: measure.Load{Scale: 1, Mix: mix}.Of(m.Header.Model)}
		if l := m.Accuracy.Limit; l != nil && len(m.Header.Variants) > 0 {
			s.Accuracy = &result.AccuracyLimit{Metric: l.Metric, Min: l.Min, Max: l.Max, Command: l.Command}
		}
		list = append(list, s)
	}
	return list
}

// newShare converts the share of one of several models.
func newShare(s figures.Share) result.Share {
	j := result.Share{Model: s.Model, Load: s.Load, Limits: []result.Chance{}, Values: map[measure.Metric]result.Estimate{}}
	for _, l := range s.Limits {
		chance := result.Chance{Constraint: l.Constraint}
		if !math.IsNaN(l.Probability) {
			chance.Probability = math.Round(l.Probability*1e4) / 1e4
		}
		j.Limits = append(j.Limits, chance)
	}
	for metric, e := range s.Values {
		j.Values[metric] = newEstimate(e)
	}
	return j
}

// newConfigured lists the configurations of several models; none for one model.
func newConfigured(c analyze.Config) []result.Configured {
	var list []result.Configured
	for _, p := range c.Parts {
		list = append(list, result.Configured{Model: p.Model, Setup: newSetup(p.Setup), Config: p.Text})
	}
	return list
}
