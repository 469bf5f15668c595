package guided

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/queuesim"
)

// Predict tells what is known of a configuration at a load; false where the service times of its engine process are not.
func (g *Guided) Predict(c search.Candidate, load measure.Load) (search.Prediction, bool) {
	if len(g.pools) == 0 {
		return search.Prediction{}, false
	}
	g.decide() // it has learned from all events then
	known, found := g.cellOf(c, load)
	if !found {
		return search.Prediction{}, false
	}
	b := g.believe(known)
	curve := b.pool.curve
	x := search.Prediction{Service: search.ServiceTimes{Sizes: curve.Sizes, Alone: curve.Alone, Crowded: curve.Crowded, Overhead: curve.Overhead}}
	simulated := g.simulate(b.cell)
	for k, m := range g.models {
		if m.isKnown {
			believed := posterior.Normal{Mean: b.means[k], Deviation: math.Sqrt(b.residuals[k].Variance)}.Estimate()
			x.Values = append(x.Values, search.Predicted{Metric: m.metric, Simulated: g.simulatedValue(m.metric, simulated), Believed: &believed})
		}
	}
	for _, metric := range []measure.Metric{measure.Throughput, measure.LatencyAvg, measure.LatencyP99} {
		if !slices.ContainsFunc(x.Values, func(e search.Predicted) bool { return e.Metric == metric }) {
			x.Values = append(x.Values, search.Predicted{Metric: metric, Simulated: g.simulatedValue(metric, simulated)})
		}
	}
	return x, true
}

// simulatedValue is a metric by the simulation alone, nil where that does not tell it.
func (g *Guided) simulatedValue(metric measure.Metric, r queuesim.Result) *float64 {
	m := newModel(metric)
	var v float64
	switch {
	case m.isRate():
		v = math.Exp(g.ofRate(metric, r.Throughput))
	case m.isPredicted:
		v = m.predicted(r)
	default:
		return nil
	}
	return &v
}

// Effects says how much each knob matters, by what is believed of all cells: the winner's value against every other, in the space's
// order of knobs. Knobs that the winner leaves alone, or that have one value, are left out.
func (g *Guided) Effects(winner search.Candidate) []search.KnobEffect {
	if len(g.pools) == 0 {
		return nil
	}
	space, bests, bounds := g.settings.Space, g.bests(), g.bounds()
	var list []search.KnobEffect
	for _, k := range space.Knobs {
		effect := search.KnobEffect{Knob: k.Name, Chosen: space.Value(winner, k.Name)}
		chosen, known := bests[search.Setting{Knob: k.Name, Value: effect.Chosen}]
		if !known || chosen.feasible < g.trusted {
			continue // nothing is believed in that the others could be compared with
		}
		for _, v := range k.Values {
			if v == effect.Chosen {
				continue
			}
			s := search.Setting{Knob: k.Name, Value: v}
			other, isKnown := bests[s]
			bound, isBounded := bounds[s]
			isBest := other.feasible >= g.trusted && other.score >= bound.score // of all that has the value, started or not
			switch {
			case isKnown && (isBest || !isBounded):
				effect.Others = append(effect.Others, g.compare(v, chosen, other))
			case isBounded:
				effect.Others = append(effect.Others, search.Effect{
					Value: v, Basis: search.BasisBound, Change: g.change(bound.score-chosen.score, math.Hypot(bound.deviation, chosen.deviation())),
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

// compare is the effect of a value whose best is believed to be other.
func (g *Guided) compare(v search.Value, chosen, other belief) search.Effect {
	e := search.Effect{Value: v, Basis: search.BasisPredicted}
	if chosen.trials > 0 && other.trials > 0 {
		e.Basis = search.BasisMeasured
	}
	if e.Misses = g.standing(other).Point.Misses; len(e.Misses) == 0 {
		variance := g.difference(other, chosen)
		e.Change = g.change(other.score-chosen.score, math.Sqrt(variance))
	}
	return e
}

// change is a difference of scores as a relative change of the objective, with a 95 % interval.
func (g *Guided) change(difference, deviation float64) measure.Estimate {
	gain := func(difference float64) float64 { return g.settings.Goal.Objective.Gain(0, difference) }
	lo, hi := posterior.Normal{Mean: difference, Deviation: deviation}.Interval()
	return measure.Estimate{Value: gain(difference), Lo: gain(lo), Hi: gain(hi)}
}

// mostSimulated is how many cells are simulated to find the best of every value: a second of CPU time at most.
const mostSimulated = 1000

// bests finds, for every value of every knob, the best cell that has it in a ready pool. It simulates no cell whose bounds say that it
// is the best of none of its values.
func (g *Guided) bests() map[search.Setting]belief {
	bests := map[search.Setting]belief{}
	enter := func(b belief) {
		for _, s := range g.values(b.batcher().candidate) {
			if known, ok := bests[s]; !ok || g.byBelief(b, known) < 0 {
				bests[s] = b
			}
		}
	}
	for _, b := range g.decide().survey.beliefs {
		enter(b)
	}
	simulated := 0
	for _, h := range g.outlooks() {
		mayBeBest := slices.ContainsFunc(g.values(h.batcher().candidate), func(s search.Setting) bool {
			known, ok := bests[s]
			return !ok || h.feasible >= g.trusted && (known.feasible < g.trusted || h.most > known.score)
		})
		if !mayBeBest {
			continue
		}
		if simulated++; simulated > mostSimulated {
			break
		}
		enter(g.believe(h.cell))
	}
	return bests
}

// values are the settings of a candidate by knob, the default's where it leaves one alone, as far as these are known.
func (g *Guided) values(c search.Candidate) []search.Setting {
	space := g.settings.Space
	settings := make([]search.Setting, 0, len(space.Knobs))
	for _, k := range space.Knobs {
		if v := space.Value(c, k.Name); v != "" {
			settings = append(settings, search.Setting{Knob: k.Name, Value: v})
		}
	}
	return settings
}

// outlooks lists the cells of ready pools that were not measured, at their bounds: those that may be trusted by their score, then the
// others by their feasibility. Those that are the same as another are there too, unlike in hopes: they tell that a value does not matter.
func (g *Guided) outlooks() []hope {
	var list []hope
	best := belief{means: make([]float64, len(g.models)), residuals: make([]posterior.Residual, len(g.models))}
	for c := range g.unmeasured {
		if !c.pool.isDead(c.setting) {
			g.imagine(c, &best)
			list = append(list, hope{cell: c, most: best.score, feasible: best.feasible})
		}
	}
	slices.SortStableFunc(list, func(a, b hope) int {
		return cmp.Or(cmp.Compare(min(b.feasible, g.trusted), min(a.feasible, g.trusted)), cmp.Compare(b.most, a.most))
	})
	return list
}

// bound is a score that is not surpassed, as far as can be known.
type bound struct{ score, deviation float64 }

// bounds finds, for every value that needs an engine process, the most that pools do with it that were not started.
func (g *Guided) bounds() map[search.Setting]bound {
	bounds := map[search.Setting]bound{}
	for _, e := range g.engines {
		f, isForeseen := g.foreseen(e)
		for _, p := range e.pools {
			if !isForeseen || p.failure != "" || p.isReady() {
				continue
			}
			for b := range g.outlook(p, f) {
				if b.feasible < g.trusted {
					continue
				}
				for _, s := range g.values(p.settings) {
					known, ok := bounds[s]
					if isPool := isEngineKnob(s.Knob) || s.Knob == search.KnobInstanceCount; isPool && (!ok || b.score > known.score) {
						bounds[s] = bound{b.score, b.deviation()}
					}
				}
			}
		}
	}
	return bounds
}
