package analyze

import (
	"cmp"
	"math"
	"slices"

	"tuner/analyze/bottleneck"
	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
)

// explainer holds the inputs of an explanation.
type explainer struct {
	replayed
	campaign Campaign
	result   Result // complete except for the explanation
	space    search.Space
	strategy plan.Explainer            // the plan's explainer; nil if it cannot explain its answer
	own      map[string][]search.Event // by the candidate's key, without service trials
}

// replayed is a campaign's strategy after all events were replayed to it. It also holds the
// strategy's predictions for everything that the finals measured. They are made before the first
// final, since the strategy learns from finals too.
type replayed struct {
	plan     *plan.Plan
	foreseen map[cell]search.Prediction
}

// cell is a configuration at a load.
type cell struct {
	key  string // key of the candidate
	load measure.Load
}

// replay replays the campaign's events to its strategy. It uses the goal of the ranking and the
// required confidence (0: the profile's). The journal has only events, so the strategy's beliefs
// are computed again.
func replay(c Campaign, goal search.Goal, confidence float64) (replayed, error) {
	settings := c.Profile.Settings(c.Facts)
	settings.Goal, settings.Earlier, settings.Elsewhere = goal, c.Earlier, c.Header.Finals != nil
	settings.Confidence = cmp.Or(confidence, settings.Confidence)
	p, err := plan.New(c.Profile.Search.Strategy, settings)
	if err != nil {
		return replayed{}, err
	}
	r := replayed{plan: p, foreseen: map[cell]search.Prediction{}}
	first := slices.IndexFunc(c.Events, isFinal)
	for i, e := range c.Events {
		if i == first {
			r.foresee(c.Events[i:])
		}
		p.Tell(e)
	}
	return r, nil
}

func isFinal(e search.Event) bool { return e.Trial.Phase == search.PhaseFinal }

// foresee predicts the figures of the finals among the coming events.
func (r replayed) foresee(coming []search.Event) {
	strategy, ok := r.plan.Explainer()
	if !ok {
		return
	}
	for _, e := range coming {
		s := cell{e.Trial.Candidate.Key(), e.Trial.Load}
		if _, done := r.foreseen[s]; done || !isFinal(e) {
			continue
		}
		if p, known := strategy.Predict(e.Trial.Candidate, e.Trial.Load); known {
			r.foreseen[s] = p
		}
	}
}

// explain explains the result from the strategy's final beliefs.
func explain(c Campaign, r Result, all replayed) Explanation {
	x := explainer{replayed: all, campaign: c, result: r, space: c.Profile.Space(c.Facts), own: byCandidate(atLoads(c.Events))}
	x.strategy, _ = x.plan.Explainer()
	explanation := Explanation{Subjects: x.subjects(), Untried: x.untried()}
	if winner, ok := r.Winner(); ok && isScored(winner) {
		explanation.Knobs, explanation.Barred = x.knobs(winner), x.barred(winner)
		if explanation.Barred != nil {
			explanation.Subjects[0].Bottleneck = bottleneck.Memory
		}
	}
	if x.strategy != nil {
		explanation.Dropped = x.strategy.Dropped()
		if more := r.Verdict.More; r.ByBestLoad() && r.Verdict.Satisfies() && !math.IsInf(more, 1) {
			explanation.Untried.Gain = &more
		}
	}
	return explanation
}

// subjects explains the best, the second best, the confirmed ones, and the default.
func (x explainer) subjects() []Subject {
	var list []Subject
	for i, c := range x.result.Configs {
		if c.Best != nil && !c.CurveOnly && (i < 2 || c.Best.Confirmed || c.Candidate.IsDefault()) {
			list = append(list, x.subject(c))
		}
	}
	return list
}

func (x explainer) subject(c Config) Subject {
	s := Subject{Name: c.Name, Load: c.Best.Load, IsHighest: c.Best.Load.Level() >= slices.Max(x.space.Load.Levels)}
	measured := x.measured(c)
	if !x.space.IsSeveral() || x.space.IsPipeline() { // times of different models have no common parts
		s.Breakdown, s.Latencies = bottleneck.New(measured, c.Setup.Instances), measured.Latencies()
	}
	if s.Stages = bottleneck.Stages(measured, servings(c)); s.Stages != nil && s.Breakdown != nil {
		s.Breakdown.Busy = bottleneck.Busy(s.Stages)
	}
	s.Bottleneck = bottleneck.Of(s.Breakdown, c.Best.Flags)
	if limiting, ok := bottleneck.Limiting(s.Stages); ok && limiting.Utilization() >= bottleneck.Saturated && s.Bottleneck != bottleneck.Client {
		s.Bottleneck = bottleneck.Compute
	}
	best := x.result.Configs[0]
	if best.Name != c.Name && best.Satisfies() && c.Satisfies() && isScored(best) && isScored(c) && x.result.AreComparable(*best.Best, *c.Best) {
		change := x.change(best, c)
		s.Change = &change
	}
	for _, p := range confirmedPoints(x.campaign.Header, c.Points) {
		if p.Load.BatchSize == s.Load.BatchSize && p.Load.Level() > s.Load.Level() && isScored(c) {
			s.Higher = &Higher{p.Load, x.result.Goal.Objective.Gain(c.Best.Score.Value, p.Score.Value), p.Misses}
			break
		}
	}
	x.predict(c, measured, &s)
	return s
}

// servings lists the stages of a pipeline's configuration.
func servings(c Config) []bottleneck.Serving {
	var list []bottleneck.Serving
	for _, p := range c.Parts {
		if !p.Calls {
			list = append(list, bottleneck.Serving{Model: p.Model, Instances: p.Setup.Instances})
		}
	}
	return list
}

// isScored reports whether a configuration has all metrics of the objective, at as many loads as
// the ranking needs.
func isScored(c Config) bool { return !math.IsInf(c.Score.Value, 0) }

// measured joins the trials that the figures of a configuration's best point come from (see
// points).
func (x explainer) measured(c Config) measure.Measurement {
	var parts []measure.Measurement
	for _, e := range x.own[c.Candidate.Key()] {
		t, m := e.Trial, e.Measurement
		isFinal := t.Phase == search.PhaseFinal && t.Fresh
		if m.Failure == nil && t.Load == c.Best.Load && isFinal == c.Best.Confirmed {
			parts = append(parts, m)
		}
	}
	return joinMeasurements(parts)
}

// predict fills in the predictions of a subject's metrics, beside the figures of its own windows.
// The final estimates are no test of a prediction, since they rest on it.
//
// For a confirmed configuration the predictions are those from before the finals. Otherwise the
// beliefs already contain the figures, so only the simulation is a prediction.
func (x explainer) predict(c Config, measured measure.Measurement, s *Subject) {
	if x.strategy == nil {
		return
	}
	known, ok := x.foreseen[cell{c.Candidate.Key(), s.Load}]
	if isTest := ok && c.Best.Confirmed; !isTest {
		if known, ok = x.strategy.Predict(c.Candidate, s.Load); !ok {
			return
		}
		for i := range known.Values {
			known.Values[i].Believed = nil
		}
	}
	figures := x.result.Goal.Estimates(measured, metricsOf(x.result.Goal, s.Load.Mix))
	for _, v := range known.Values {
		own, ok := figures[v.Metric]
		own = s.Load.Bounded(v.Metric, own)
		if ok && (v.Simulated != nil || v.Believed != nil) {
			s.Predictions = append(s.Predictions, Prediction{v.Metric, v.Simulated, v.Believed, own})
		}
	}
	curve := ServiceCurve(known.Service)
	s.Curve = &curve
}

// knobs returns how much each knob matters. It uses the verdict's choices for measured values, and
// the strategy's beliefs for others.
func (x explainer) knobs(winner Config) []search.KnobEffect {
	var believed []search.KnobEffect
	if x.strategy != nil && x.result.ByBestLoad() { // its beliefs are about best loads
		believed = x.strategy.Effects(winner.Candidate)
	}
	var list []search.KnobEffect
	for _, k := range x.space.Knobs {
		effect := search.KnobEffect{Knob: k.Name, Chosen: x.space.Value(winner.Candidate, k.Name)}
		for _, v := range k.Values {
			if v == effect.Chosen || effect.Chosen == "" {
				continue
			}
			other, isMeasured := x.measuredEffect(winner, k.Name, v)
			if !isMeasured {
				other = believedEffect(believed, k.Name, v)
			}
			effect.Others = append(effect.Others, other)
		}
		if len(effect.Others) > 0 {
			list = append(list, effect)
		}
	}
	slices.SortStableFunc(list, func(a, b search.KnobEffect) int { return cmp.Compare(b.Size(), a.Size()) })
	return list
}

// believedEffect returns the strategy's belief about a value of a knob.
func believedEffect(believed []search.KnobEffect, knob string, v search.Value) search.Effect {
	for _, k := range believed {
		i := slices.IndexFunc(k.Others, func(e search.Effect) bool { return e.Value == v })
		if k.Knob == knob && i >= 0 {
			return k.Others[i]
		}
	}
	return search.Effect{Value: v, Basis: search.BasisUnknown}
}

// measuredEffect compares the winner with the best measured configuration that has another value of
// a knob. It takes the first in the result's order, and the same figures. It returns false if no
// such configuration was measured.
func (x explainer) measuredEffect(winner Config, knob string, v search.Value) (search.Effect, bool) {
	for _, c := range x.result.Configs { // best first
		mayLead := c.Best != nil && !c.CurveOnly && !c.FailedFinals && isScored(c)
		if !mayLead || x.space.Value(c.Candidate, knob) != v || !x.result.AreComparable(*winner.Best, *c.Best) {
			continue
		}
		e := search.Effect{Value: v, Basis: search.BasisMeasured}
		if c.Satisfies() || len(c.Best.Misses) == 0 {
			e.Change = x.change(winner, c)
		} else {
			e.Misses = c.Best.Misses
		}
		return e, true
	}
	return search.Effect{}, false
}

// change returns the relative change of the objective from the best to another configuration. The
// verdict's change is preferred, since it knows how the two errors correlate. Otherwise it is the
// change between the means that rank them.
func (x explainer) change(best, c Config) measure.Estimate {
	if c.Choice != nil && best.Choice != nil {
		return c.Choice.Against
	}
	return changeOf(x.result.Goal, best, c)
}

// barred finds the best configuration that was measured to be better than the winner and misses
// only the limit on memory.
func (x explainer) barred(winner Config) *Barred {
	if !x.result.ByBestLoad() {
		return nil
	}
	isOther := func(m search.Miss) bool { return m.Constraint.Metric != measure.Memory }
	best, most := (*Barred)(nil), winner.Best.Score.Value
	for _, c := range x.result.Configs {
		for _, p := range c.Points {
			isComparable := !c.CurveOnly && !c.FailedFinals && x.result.AreComparable(*winner.Best, p)
			if !isComparable || len(p.Misses) == 0 || slices.ContainsFunc(p.Misses, isOther) || p.Score.Value <= most {
				continue
			}
			most = p.Score.Value
			best = &Barred{c.Name, p.Load, x.result.Goal.Objective.Gain(winner.Best.Score.Value, most), p.Misses}
		}
	}
	return best
}

// untried counts the candidates that were not measured.
func (x explainer) untried() Untried {
	tried := map[string]bool{}
	for _, e := range x.campaign.Events {
		t := e.Trial
		isOfSpace := t.Phase != search.PhaseLoadCurve || x.space.Has(t.Candidate)
		if !t.Candidate.IsDefault() && t.Phase != search.PhaseService && isOfSpace {
			tried[t.Candidate.Key()] = true
		}
	}
	all, _ := x.plan.Candidates().Len()
	u := Untried{Candidates: all, Measured: len(tried), Skipped: x.plan.Skipped()}
	rest := u.Candidates - u.Measured
	for _, f := range u.Skipped {
		rest -= f.Count
	}
	rest = max(rest, 0) // some may be counted in both
	if x.strategy != nil {
		u.Predicted = rest
	} else {
		u.Unreached = rest
	}
	return u
}
