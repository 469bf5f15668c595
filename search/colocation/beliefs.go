package colocation

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// slowdown is a belief about a model in a cell.
type slowdown struct{ mean, deviation float64 }

// read learns what the trials of a cell show of a model's slowdown. An endless queue only shows that the slowdown is
// at least so large.
func (x *Search) read(model int, c Cell) {
	t, at := x.settings.Tuning, x.site(model, c)
	prior, key := x.margins(c)[x.position(model)], c.key()
	var list []shown
	var endless []float64 // ln of the scales
	for _, o := range x.outcomes {
		if o.Trial.key() != key {
			continue
		}
		log, s := x.settings.Models[model].margin(o.Latencies[model]), math.Log(o.Trial.Scale)
		switch {
		case math.IsNaN(log):
		case log >= t.Overloaded:
			endless = append(endless, s)
		default:
			list = append(list, shown{s, prior.slowdown(s, log)})
		}
	}
	deviation := x.typicalError(model)
	x.residuals[model].remove(at)
	if len(list) > 0 {
		mean, variance := prior.joined(list, deviation)
		x.residuals[model].add(reading{at, mean, variance})
	}
	for _, s := range endless {
		bound := prior.slowdown(s, t.Overloaded)
		if r, ok := x.slowdownAt(model, at).atLeast(bound, deviation/(1+prior.slope(s+bound)), at); ok {
			x.residuals[model].add(r)
		}
	}
}

// margin returns the largest ln(latency/limit); NaN if a latency is not known.
func (m Model) margin(latencies []float64) float64 {
	log := math.Inf(-1)
	for k, l := range m.Limits {
		x := math.Log(max(latencies[k], tiny) / l.Seconds)
		if math.IsNaN(x) {
			return x
		}
		log = max(log, x)
	}
	return log
}

// typicalError returns the root mean square of the errors of a model's latencies so far, on log scale, at least
// Tuning.Reading. All trials have it: of few requests, a low percentile also shows a small error, so that each
// trial's own would weigh the lucky ones most.
func (x *Search) typicalError(model int) float64 {
	sum, n := 0.0, 0
	for _, o := range x.outcomes {
		if o.Errors == nil {
			continue
		}
		for _, e := range o.Errors[model] {
			if e > 0 {
				sum, n = sum+e*e, n+1
			}
		}
	}
	return max(x.settings.Tuning.Reading, math.Sqrt(sum/float64(max(n, 1))))
}

// shown is the slowdown that a trial shows at the logarithm of a scale.
type shown struct{ scale, slowdown float64 }

// joined returns the mean and the variance of a slowdown that trials show. deviation is that of a trial's margin.
// The shape of the margin is wrong, too. The farther the expected margin of a trial is from 0, the more depends on
// it, so that margin itself is the deviation of this error. It is the expected one, since the measured one is near 0
// by luck too. An error ε of the margin is one of ε/(1+slope) of the slowdown: a slower server has longer times, and
// waits that grow with its load.
func (m margin) joined(list []shown, deviation float64) (mean, variance float64) {
	for _, s := range list {
		mean += s.slowdown / float64(len(list))
	}
	const rounds = 3 // what is expected follows from the mean
	for range rounds {
		sum, precision := 0.0, 0.0
		for _, s := range list {
			at := s.scale + mean
			expected, slope := mean+m.of(at), 1+m.slope(at)
			weight := slope * slope / (deviation*deviation + expected*expected)
			sum, precision = sum+weight*s.slowdown, precision+weight
		}
		mean, variance = sum/precision, 1/precision
	}
	return mean, variance
}

// atLeast returns the reading which says that a slowdown is at least a bound, up to an error. With it, mean
// and variance are those of the belief times the probability that the slowdown and the error together exceed
// the bound (assumed density filtering; Minka, A Family of Algorithms for Approximate Bayesian Inference,
// 2001, chapter 3). It returns false if the belief says so already.
func (b slowdown) atLeast(bound, deviation float64, at site) (reading, bool) {
	before := b.deviation * b.deviation
	all := math.Hypot(b.deviation, deviation)
	z := (bound - b.mean) / all
	if z < -4 { // the bound changes less than a thousandth
		return reading{}, false
	}
	hazard := distuv.UnitNormal.Prob(z) / distuv.UnitNormal.CDF(-z) // λ = φ(z)/(1−Φ(z))
	if z > 30 {                                                     // both are too small for a float
		hazard = z + 1/z - 2/(z*z*z)
	}
	mean, after := b.mean+before/all*hazard, before*(1-before/(all*all)*hazard*(hazard-z))
	variance := 1 / (1/after - 1/before)
	return reading{at, variance * (mean/after - b.mean/before), variance}, true
}

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
		known = x.slowdownAt(model, s)
		x.believed[key] = known
	}
	return known
}

func (x *Search) slowdownAt(model int, s site) slowdown {
	mean, deviation := x.residuals[model].believe(s)
	return slowdown{mean, deviation}
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
