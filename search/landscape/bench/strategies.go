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

const nameGuided = "guided"

// strategies lists the product's and the baselines.
func strategies() []string { return append(plan.Names(), baseline.Names()...) }

// newStrategy makes a campaign's strategy by its name.
func newStrategy(name string, s search.Settings) (landscape.Strategy, error) {
	switch {
	case name == nameGuided:
		return newGuided(s)
	case slices.Contains(baseline.Names(), name):
		return baseline.New(name, s)
	}
	return plan.New(name, s)
}

// guidedPlan is a guided campaign that also says what the search believes.
type guidedPlan struct {
	*plan.Plan
	search *guided.Guided
}

func newGuided(s search.Settings) (landscape.Strategy, error) {
	var g guidedPlan
	p, err := plan.Around(s, func(l *search.Ledger, candidates *search.Candidates) plan.Explorer {
		g.search = guided.New(s, l, candidates)
		return g.search
	})
	g.Plan = p
	return g, err
}

// Claim is the throughput that the search believes of the best.
func (g guidedPlan) Claim() (c search.Candidate, level float64, throughput measure.Estimate, ok bool) {
	best := g.search.Statement().Best
	if best == nil {
		return search.Candidate{}, 0, measure.Estimate{}, false
	}
	i := slices.IndexFunc(best.Values, func(v guided.Value) bool { return v.Metric == measure.Throughput })
	if i < 0 {
		return search.Candidate{}, 0, measure.Estimate{}, false
	}
	return best.Candidate, best.Load.Level(), best.Values[i].Estimate, true
}
