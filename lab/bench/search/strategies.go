package main

import (
	"math"
	"slices"
	"strings"

	"tuner/lab/landscape"
	"tuner/lab/landscape/baseline"
	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/posterior"
)

// informed is the strategy that knows the landscape.
const informed = "informed"

// strategies lists the product's strategies, the baselines, and the best that the noise allows.
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
	return &believer{Plan: p}, nil
}

// believer is a campaign with claims after its end.
type believer struct {
	*plan.Plan
	known *posterior.Posterior // at the end; nil before the first request
}

// Claim returns the campaign's claim about its answer.
func (b *believer) Claim() (landscape.Claim, bool) {
	v := b.Verdict()
	answer := v.Answer()
	if answer == nil || v.Nearest != nil {
		return landscape.Claim{}, false
	}
	claim := landscape.Claim{
		Candidate: answer.Candidate, Level: answer.Load.Level(), Throughput: answer.Values[measure.Throughput], Feasible: answer.Holds,
		IsOver: !strings.Contains(b.Ask().Why, "budget"),
	}
	if !math.IsInf(v.More, 1) {
		claim.Gain = &v.More
	}
	return claim, true
}

// Predict estimates a configuration at a load from the trials and the simulation of the queue.
func (b *believer) Predict(c search.Candidate, load measure.Load) (landscape.Prediction, bool) {
	cell := posterior.Cell{Candidate: c, Load: load}
	if b.known == nil {
		b.known = b.Posterior()
	}
	if !b.known.IsPredicted(cell, measure.Throughput) {
		return landscape.Prediction{}, false
	}
	of := func(metric measure.Metric) *measure.Estimate {
		n, ok := b.known.At(cell, metric)
		if !ok {
			return nil
		}
		e := n.Estimate()
		return &e
	}
	return landscape.Prediction{Throughput: of(measure.Throughput), P99: of(measure.LatencyP99)}, true
}
