package colocation

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// slowdown is a belief about a model in a cell.
type slowdown struct{ mean, deviation float64 }

// read returns the slowdown of a model that an outcome shows; false if it shows none.
//
// A latency's error of some deviation is one of the slowdown of deviation/(1+slope): a slower server has
// longer times, and waits that grow with its load. The farther the latency is from its limit, the more
// depends on the shape of the margin. An endless queue only shows that the slowdown is at least so large.
func (x *Search) read(model int, o Outcome) (reading, bool) {
	m, t := x.settings.Models[model], x.settings.Tuning
	log, known := math.Inf(-1), t.Reading
	for k, l := range m.Limits {
		x := math.Log(max(o.Latencies[model][k], tiny) / l.Seconds)
		if math.IsNaN(x) {
			return reading{}, false
		}
		if x > log {
			if log = x; o.Errors != nil {
				known = max(t.Reading, o.Errors[model][k])
			}
		}
	}
	prior, s, at := x.margins(o.Trial.Cell)[x.position(model)], math.Log(o.Trial.Scale), x.site(model, o.Trial.Cell)
	if log >= t.Overloaded {
		return x.believe(model, at).atLeast(prior.slowdown(s, t.Overloaded), at)
	}
	shown := prior.slowdown(s, log)
	deviation := math.Hypot(known, t.Shape*log) / (1 + prior.slope(s+shown))
	return reading{at, shown, deviation * deviation}, true
}

// atLeast returns the reading which says that a slowdown is at least a bound. With it, mean and variance
// are those of the belief that is cut off at the bound (assumed density filtering; Minka, A Family of
// Algorithms for Approximate Bayesian Inference, 2001, chapter 3). It returns false if the belief says so
// already.
func (b slowdown) atLeast(bound float64, at site) (reading, bool) {
	z := (bound - b.mean) / b.deviation
	if z < -4 { // the cut changes less than a thousandth
		return reading{}, false
	}
	// λ = φ(z)/(1−Φ(z)), which is nearly z + 1/z for a belief that is far off
	hazard := z + 1/max(z, 1)
	if z < 8 {
		hazard = distuv.UnitNormal.Prob(z) / distuv.UnitNormal.CDF(-z)
	}
	before := b.deviation * b.deviation
	mean, after := b.mean+b.deviation*hazard, before*max(1-hazard*(hazard-z), leastLeft)
	variance := 1 / (1/after - 1/before)
	return reading{at, variance * (mean/after - b.mean/before), variance}, true
}

// leastLeft is the least share of the variance that a bound leaves. Far out in a belief's tail the cut
// leaves nearly none, but there the belief was wrong.
const leastLeft = 0.25

// position returns the index of a model among those with a load.
func (x *Search) position(model int) int {
	for k, i := range x.models {
		if i == model {
			return k
		}
	}
	return -1
}

// site returns a model's site in a cell.
func (x *Search) site(model int, c Cell) site {
	option := x.settings.Models[model].Options[c.Options[model]]
	s := site{option: c.Options[model], cores: c.of(model), nodes: x.nodesOf(model, c.Cores), pool: option.Pool, doubt: option.Doubt}
	if key := c.key(); x.trials[key] > 0 {
		s.cell = key
	}
	return s
}

// outlook has the margins and slowdowns of a cell's models with a load.
type outlook struct {
	margins   []margin
	slowdowns []slowdown
}

func (x *Search) outlook(c Cell) outlook {
	o := outlook{margins: x.margins(c)}
	for _, i := range x.models {
		o.slowdowns = append(o.slowdowns, x.believe(i, x.site(i, c)))
	}
	return o
}

// believe returns the belief about a model's slowdown at a site.
func (x *Search) believe(model int, s site) slowdown {
	key := believedKey{model, s}
	known, ok := x.believed[key]
	if !ok {
		known.mean, known.deviation = x.residuals[model].believe(s)
		x.believed[key] = known
	}
	return known
}

// holds returns the probability that all models keep their limits at the logarithm of a scale. What two
// models do not have in common makes their errors independent.
func (o outlook) holds(scale float64) float64 {
	p := 1.0
	for k := range o.margins {
		p *= o.chance(k, scale)
	}
	return p
}

// chance returns the probability that one model keeps its limits.
func (o outlook) chance(k int, scale float64) float64 {
	return distuv.UnitNormal.CDF((o.margins[k].most(scale) - o.slowdowns[k].mean) / o.slowdowns[k].deviation)
}

// scale returns the logarithm of the largest scale that all keep with a probability; −Inf if none is.
func (o outlook) scale(confidence float64) float64 {
	high := math.Inf(1)
	for k, m := range o.margins {
		high = min(high, m.highest(o.slowdowns[k].mean-5*o.slowdowns[k].deviation))
	}
	if math.IsInf(high, -1) {
		return high
	}
	const widest = 6
	if o.holds(high-widest) < confidence {
		return math.Inf(-1)
	}
	return solve(high-widest, high, func(s float64) float64 { return confidence - o.holds(s) })
}

// scale returns the logarithm of the largest scale of a cell that is kept with a probability.
func (x *Search) scale(c Cell, confidence float64) float64 { return x.outlook(c).scale(confidence) }

// expected returns nearly scale(c, 0.5), the scale with the mean slowdowns, in a tenth of the time.
func (x *Search) expected(c Cell) float64 {
	least := math.Inf(1)
	margins := x.margins(c)
	for k, i := range x.models {
		least = min(least, margins[k].highest(x.believe(i, x.site(i, c)).mean))
	}
	return least
}

// surplus returns the expected logarithm by which the largest scale exceeds a given one:
// ∫ P(all keep their limits at s) ds from there (expected improvement; Jones, Schonlau and Welch, 1998).
func (o outlook) surplus(scale float64) float64 {
	const step, least = 0.01, 0.002
	sum, last := 0.0, o.holds(scale)
	for s := scale + step; last > least; s += step {
		now := o.holds(s)
		sum += step * (last + now) / 2
		last = now
	}
	return sum
}

// binding returns the index of the model that least surely keeps its limits at a scale.
func (x *Search) binding(o outlook, scale float64) int {
	model, least := -1, math.Inf(1)
	for k, i := range x.models {
		if p := o.chance(k, scale); p < least {
			model, least = i, p
		}
	}
	return model
}
