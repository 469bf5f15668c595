package guided

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/belief"
	"tuner/search/guided/pools"
	"tuner/search/guided/predict"
	"tuner/search/guided/tuning"
	"tuner/search/posterior"
)

// Effects returns the importance of each knob by the beliefs about all cells: the winner's value
// against every other, in the space's order of knobs. It omits knobs that the winner does not set,
// or that have one value.
func (g *Guided) Effects(winner search.Candidate) []search.KnobEffect {
	if len(g.pools.All()) == 0 {
		return nil
	}
	x := effects{g.settings, g.tuning, g.pools, g.predictor, g.beliefs, g.surveyor}
	return x.of(winner, x.bests(g.decide().survey.cells), x.bounds())
}

// effects compares the best cells of the values of knobs.
type effects struct {
	settings  search.Settings
	tuning    tuning.Tuning
	pools     *pools.Pools
	predictor *predict.Predictor
	beliefs   *belief.Beliefs
	surveyor  *surveyor
}

// scoreBound is an upper bound of a score with its deviation.
type scoreBound struct{ score, deviation float64 }

func (x effects) of(winner search.Candidate, bests map[search.Setting]belief.Belief, bounds map[search.Setting]scoreBound) []search.KnobEffect {
	var list []search.KnobEffect
	for _, k := range x.settings.Space.Knobs {
		effect := search.KnobEffect{Knob: k.Name, Chosen: x.settings.Space.Value(winner, k.Name)}
		chosen, known := bests[search.Setting{Knob: k.Name, Value: effect.Chosen}]
		if !known || !x.beliefs.IsTrusted(chosen) {
			continue // no cell to compare the others with
		}
		for _, v := range k.Values {
			if v == effect.Chosen {
				continue
			}
			s := search.Setting{Knob: k.Name, Value: v}
			other, isKnown := bests[s]
			bound, isBounded := bounds[s]
			isBest := x.beliefs.IsTrusted(other) && other.Score >= bound.score // of all with the value, started or not
			switch {
			case isKnown && (isBest || !isBounded):
				effect.Others = append(effect.Others, x.compare(v, chosen, other))
			case isBounded:
				effect.Others = append(effect.Others, search.Effect{
					Value: v, Basis: search.BasisBound, Change: x.change(bound.score-chosen.Score, math.Hypot(bound.deviation, chosen.Deviation())),
				})
			default:
				effect.Others = append(effect.Others, search.Effect{Value: v, Basis: search.BasisUnknown})
			}
		}
		if len(effect.Others) > 0 {
			list = append(list, effect)
		}
	}
	return list
}

// compare returns the effect of a value, whose best is the belief other.
func (x effects) compare(v search.Value, chosen, other belief.Belief) search.Effect {
	e := search.Effect{Value: v, Basis: search.BasisPredicted}
	if chosen.Trials > 0 && other.Trials > 0 {
		e.Basis = search.BasisMeasured
	}
	if !x.beliefs.IsTrusted(other) {
		e.Misses = x.beliefs.Misses(other)
	}
	if len(e.Misses) == 0 {
		e.Change = x.change(other.Score-chosen.Score, math.Sqrt(x.beliefs.Difference(other, chosen)))
	}
	return e
}

// change converts a difference of scores to a relative change of the objective, with a 95 %
// interval.
func (x effects) change(difference, deviation float64) measure.Estimate {
	gain := func(difference float64) float64 { return x.settings.Goal.Objective.Gain(0, difference) }
	lo, hi := posterior.Normal{Mean: difference, Deviation: deviation}.Interval()
	return measure.Estimate{Value: gain(difference), Lo: gain(lo), Hi: gain(hi)}
}

// bests finds, for every value of every knob, the best cell with it in a ready pool, starting from
// existing beliefs. It does not simulate cells whose bounds exclude them as the best of all their
// values.
func (x effects) bests(known []belief.Belief) map[search.Setting]belief.Belief {
	bests := map[search.Setting]belief.Belief{}
	enter := func(b belief.Belief) {
		for _, s := range x.values(b.Batcher().Candidate) {
			if best, ok := bests[s]; !ok || x.surveyor.byBelief(b, best) < 0 {
				bests[s] = b
			}
		}
	}
	for _, b := range known {
		enter(b)
	}
	simulated, trusted := 0, x.beliefs.Confidence()
	for _, u := range x.unmeasured() {
		mayBeBest := slices.ContainsFunc(x.values(u.Batcher().Candidate), func(s search.Setting) bool {
			best, ok := bests[s]
			return !ok || u.feasible >= trusted && (best.Feasible < trusted || u.most > best.Score)
		})
		if !mayBeBest {
			continue
		}
		if simulated++; simulated > x.tuning.Survey.Most {
			break
		}
		enter(x.beliefs.Believe(u.Cell))
	}
	return bests
}

// values returns a candidate's known settings by knob. An unset knob has the default's.
func (x effects) values(c search.Candidate) []search.Setting {
	space := x.settings.Space
	settings := make([]search.Setting, 0, len(space.Knobs))
	for _, k := range space.Knobs {
		if v := space.Value(c, k.Name); v != "" {
			settings = append(settings, search.Setting{Knob: k.Name, Value: v})
		}
	}
	return settings
}

// unmeasured lists the unmeasured cells of ready pools, at their bounds: those that may be trusted
// by score, then the others by feasibility. Unlike a survey it includes cells that equal another,
// since they show that a value does not matter.
func (x effects) unmeasured() []unmeasuredAtBest {
	var list []unmeasuredAtBest
	var best belief.Belief
	for c := range x.surveyor.unmeasured {
		if !c.Pool.IsDead(c.Setting) {
			x.beliefs.FillAtBest(c, &best)
			list = append(list, unmeasuredAtBest{Cell: c, most: best.Score, feasible: best.Feasible})
		}
	}
	slices.SortStableFunc(list, x.surveyor.byFeasibility)
	return list
}

// bounds finds, for every value that needs an engine process, the highest bound of the pools that
// were not started.
func (x effects) bounds() map[search.Setting]scoreBound {
	bounds := map[search.Setting]scoreBound{}
	for _, e := range x.pools.Engines() {
		f, isForecast := x.predictor.Forecast(e)
		for _, p := range e.Pools() {
			if !isForecast || !p.IsUnopened() {
				continue
			}
			settings := slices.DeleteFunc(x.values(p.Settings()), func(s search.Setting) bool {
				return !pools.IsEngineKnob(s.Knob) && s.Knob != search.KnobInstanceCount
			})
			for b := range x.beliefs.Outlook(p, f) {
				if !x.beliefs.IsTrusted(b) {
					continue
				}
				for _, s := range settings {
					if known, ok := bounds[s]; !ok || b.Score > known.score {
						bounds[s] = scoreBound{b.Score, b.Deviation()}
					}
				}
			}
		}
	}
	return bounds
}
