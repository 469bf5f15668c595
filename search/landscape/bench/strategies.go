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
	if err != nil {
		return nil, err
	}
	if g, ok := p.Explorer().(*guided.Guided); ok {
		return believer{p, g}, nil
	}
	return p, nil
}

// believer is a campaign whose strategy has a model.
type believer struct {
	*plan.Plan
	guided *guided.Guided
}

// Claim is what the strategy states of the best.
func (b believer) Claim() (landscape.Claim, bool) {
	s := b.guided.Statement()
	if s.Best == nil {
		return landscape.Claim{}, false
	}
	i := slices.IndexFunc(s.Best.Values, func(v guided.Value) bool { return v.Metric == measure.Throughput })
	if i < 0 {
		return landscape.Claim{}, false
	}
	return landscape.Claim{
		Candidate: s.Best.Candidate, Level: s.Best.Load.Level(), Throughput: s.Best.Values[i].Estimate,
		Feasible: s.Best.Feasible, Gain: s.Gain, IsOver: s.Why != "",
	}, true
}

// Predict is what the strategy believes of a configuration at a load.
func (b believer) Predict(c search.Candidate, load measure.Load) (landscape.Prediction, bool) {
	known, ok := b.guided.Predict(c, load)
	if !ok {
		return landscape.Prediction{}, false
	}
	var p landscape.Prediction
	for _, v := range known.Values {
		switch v.Metric {
		case measure.Throughput:
			p.Throughput = v.Believed
		case measure.LatencyP99:
			p.P99 = v.Believed
		}
	}
	return p, true
}
