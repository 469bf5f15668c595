package main

import (
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided"
	"tuner/search/landscape"
	"tuner/search/landscape/baseline"
	"tuner/search/plan"
)

// informed is the strategy that knows the landscape.
const informed = "informed"

// strategies lists the product's, the baselines, and what the noise allows at best.
func strategies() []string { return slices.Concat(plan.Names(), baseline.Names(), []string{informed}) }

// newStrategy makes the strategy of a campaign on a landscape under a limit by its name.
func newStrategy(name string, l *landscape.Landscape, limit landscape.Limit, s search.Settings) (landscape.Strategy, error) {
	switch {
	case name == informed:
		return l.Informed(limit, s), nil
	case slices.Contains(baseline.Names(), name):
		return baseline.New(name, s)
	}
	p, err := plan.New(name, s)
	return claimer{p}, err
}

// claimer is a campaign that also says what its strategy believes, where that is one with a model.
type claimer struct{ *plan.Plan }

// Claim is the throughput that the strategy believes of the best.
func (p claimer) Claim() (c search.Candidate, level float64, throughput measure.Estimate, ok bool) {
	g, ok := p.Explorer().(*guided.Guided)
	if !ok {
		return search.Candidate{}, 0, measure.Estimate{}, false
	}
	best := g.Statement().Best
	if best == nil {
		return search.Candidate{}, 0, measure.Estimate{}, false
	}
	i := slices.IndexFunc(best.Values, func(v guided.Value) bool { return v.Metric == measure.Throughput })
	if i < 0 {
		return search.Candidate{}, 0, measure.Estimate{}, false
	}
	return best.Candidate, best.Load.Level(), best.Values[i].Estimate, true
}
