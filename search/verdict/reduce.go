package verdict

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/model/precision/recipe"
	"tuner/search"
)

// reduce finds the choices that a simpler one displaces. It does not look at the limits' values, so
// the remaining choices are the same for all limits. Therefore the best of them within a limit can
// only improve as the limit is loosened.
//
// A simpler choice displaces another if it was not displaced itself, is no worse in the objective,
// and no worse in any limited metric. The meaning of "no worse" depends on the benefit of the
// simpler one. The default and the default's precision cost nothing and lose no accuracy, so any
// other choice must be shown to be better. Between others a tie is enough.
//
// A choice that was confirmed on fresh launches counts as simpler than an unconfirmed one; the same
// holds for loads. So among equals the best-known one is the answer, and the others need no
// measurement. A choice with an unknown percentile displaces nothing, unless it is the default. A
// gain over the default must be shown.
func (d *decider) reduce() {
	d.order = make([]int, len(d.choices))
	for i := range d.order {
		d.order[i] = i
	}
	complexities := make([]complexity, len(d.choices))
	d.complexities = complexities
	for i, c := range d.choices {
		complexities[i] = d.complexityOf(c.Candidate)
		complexities[i].isConfirmed = slices.ContainsFunc(d.choices, func(x Choice) bool {
			return x.Fresh >= Confirmed && x.Candidate.Key() == c.Candidate.Key()
		})
	}
	slices.SortFunc(d.order, func(a, b int) int {
		x, y := d.choices[a], d.choices[b]
		return cmp.Or(complexities[a].compare(complexities[b]), cmp.Compare(d.keys[a], d.keys[b]),
			first(x.Fresh >= Confirmed, y.Fresh >= Confirmed), cmp.Compare(x.Load.Level(), y.Load.Level()), cmp.Compare(x.Load.BatchSize, y.Load.BatchSize))
	})
	d.kept, d.lean, d.places = make([]bool, len(d.choices)), make([]bool, len(d.choices)), make([]int, len(d.choices))
	for place, a := range d.order {
		d.places[a] = place
		d.kept[a], d.lean[a] = true, true
		for _, s := range d.order[:place] {
			isOwn := d.keys[s] == d.keys[a]
			isVoid := d.choices[s].IsUnknown() && !complexities[s].isDefault
			if !d.mayLead(s) || isVoid || !d.kept[s] && !(isOwn && d.lean[s]) {
				continue
			}
			if d.displaces(s, a, complexities[s], complexities[a]) {
				d.kept[a] = d.kept[a] && !d.kept[s]
				d.lean[a] = d.lean[a] && !(isOwn && d.lean[s])
			}
		}
	}
}

// displaces reports whether a simpler choice s stands for a.
func (d *decider) displaces(s, a int, simple, other complexity) bool {
	isSame := d.keys[s] == d.keys[a]
	if !isSame && simple.compare(other) == 0 || d.choices[s].Errors > search.MostErrors {
		return false
	}
	mustBeShown := !isSame && (simple.isDefault != other.isDefault || simple.isPrecise != other.isPrecise)
	if mustBeShown {
		if d.scores.difference(a, s).Above(0) >= d.Confidence {
			return false
		}
	} else if d.scores.means[a]-d.scores.means[s] > math.Log1p(Tie)*d.Goal.Objective.Weight() {
		return false
	}
	for k, c := range d.bounds {
		if d.limited[k].isKnown && !d.isNoWorse(k, s, a, c, mustBeShown) {
			return false
		}
	}
	return true
}

// isNeedless reports whether a choice has another precision than the default's, and a choice with
// the default's displaces it and is as likely to keep the limits. That one cannot be needless
// itself.
func (d *decider) isNeedless(i int) bool {
	if d.complexities[i].isPrecise {
		return false
	}
	return slices.ContainsFunc(d.order[:d.places[i]], func(s int) bool {
		return d.complexities[s].isPrecise && d.kept[s] && d.mayLead(s) && d.choices[s].Holds >= d.choices[i].Holds &&
			d.displaces(s, i, d.complexities[s], d.complexities[i])
	})
}

// isNoWorse reports whether s is no worse than a in a limited metric.
func (d *decider) isNoWorse(k, s, a int, c search.Constraint, mustBeShown bool) bool {
	switch isFree := c.Max != nil && math.IsInf(*c.Max, 1); {
	case mustBeShown && isFree && c.Metric == measure.Memory:
		return true // lower precision saves memory, which the goal does not ask for
	case mustBeShown && c.Metric != measure.Memory:
		worse := d.limited[k].difference(s, a)
		if c.Max == nil {
			worse.Mean = -worse.Mean
		}
		return worse.Above(0) < d.Confidence
	}
	worse := d.limited[k].means[s] - d.limited[k].means[a]
	if c.Max == nil {
		worse = -worse
	}
	spread := d.z * (d.limited[k].at(s).Deviation - d.limited[k].at(a).Deviation)
	return worse+spread <= math.Log1p(Tie)
}

// complexity ranks configurations by their distance from the default, nearest first.
type complexity struct {
	isDefault   bool
	isPrecise   bool // it has the default's precision
	isConfirmed bool // at some load
	differences int  // settings that the default does not have
}

func (c complexity) compare(o complexity) int {
	return cmp.Or(first(c.isDefault, o.isDefault), first(c.isPrecise, o.isPrecise),
		first(c.isConfirmed, o.isConfirmed), cmp.Compare(c.differences, o.differences))
}

// first orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func (d *decider) complexityOf(c search.Candidate) complexity {
	of := complexity{isDefault: c.IsDefault(), isPrecise: true}
	for _, s := range c.Settings() {
		base := d.Space.Value(search.Candidate{}, s.Knob)
		if s.Value == base {
			continue
		}
		of.differences++
		if s.Knob == search.KnobPrecision && (base != "" || recipe.IsLossy(string(s.Value))) {
			of.isPrecise = false
		}
	}
	return of
}
