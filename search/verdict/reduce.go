package verdict

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/model/precision/recipe"
	"tuner/search"
)

// reduce finds the choices that a simpler one displaces. It does not look at the limits' values, so the
// choices that are left are the same whatever the limits: the best of them within a limit can only get
// better as the limit is loosened.
//
// A choice is displaced by a simpler one that was not displaced itself, is no worse in the objective,
// and no worse in any metric that is limited. What "no worse" asks for depends on what the simpler one
// saves. The default and the default's precision cost nothing and lose no accuracy, so anything else
// must be shown to be better. Between others a tie is enough. What was confirmed on fresh launches counts as
// simpler than what was not, and a load that was as simpler than one that was not: among equals the one that is
// known best is the answer, and none of the others has to be measured for it. What has an unknown percentile displaces nothing but by being the default:
// against that a gain has to be shown.
func (d *decider) reduce() {
	d.order = make([]int, len(d.choices))
	for i := range d.order {
		d.order[i] = i
	}
	complexities := make([]complexity, len(d.choices))
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
	gain := d.scores.difference(a, s)
	mustBeShown := !isSame && (simple.isDefault != other.isDefault || simple.isPrecise != other.isPrecise)
	if mustBeShown {
		if gain.Above(0) >= d.Confidence {
			return false
		}
	} else if gain.Mean > math.Log1p(Tie)*d.Goal.Objective.Weight() {
		return false
	}
	for k, c := range d.bounds {
		if d.limited[k].isKnown && !d.isNoWorse(k, s, a, c, mustBeShown) {
			return false
		}
	}
	return true
}

// isNoWorse reports whether s is no worse than a in a limited metric.
func (d *decider) isNoWorse(k, s, a int, c search.Constraint, mustBeShown bool) bool {
	worse := d.limited[k].difference(s, a)
	if c.Max == nil {
		worse.Mean = -worse.Mean
	}
	switch isFree := c.Max != nil && math.IsInf(*c.Max, 1); {
	case mustBeShown && isFree && c.Metric == measure.Memory:
		return true // lower precision saves memory that nobody has asked to save
	case mustBeShown && c.Metric != measure.Memory:
		return worse.Above(0) < d.Confidence
	}
	spread := d.z * (d.limited[k].at(s).Deviation - d.limited[k].at(a).Deviation)
	return worse.Mean+spread <= math.Log1p(Tie)
}

// complexity is how far a configuration is from the default, the least first.
type complexity struct {
	isDefault   bool
	isPrecise   bool // it serves the default's precision
	isConfirmed bool // at some load
	differences int  // settings that the default does not have
}

func (c complexity) compare(o complexity) int {
	return cmp.Or(first(c.isDefault, o.isDefault), first(c.isPrecise, o.isPrecise),
		first(c.isConfirmed, o.isConfirmed), cmp.Compare(c.differences, o.differences))
}

// first orders what is true before what is not.
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
