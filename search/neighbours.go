package search

import (
	"iter"
	"slices"
)

// A strategy that cannot look at a whole space looks at the neighbours of known candidates.

// Near yields the combinations whose engines differ from home's in `distance` knobs, each with all
// numbers of instances, and whether each is a pool: most may be illegal. Those of one engine are
// neighbours. Folding may yield a pool again, or a nearer one. A knob that home does not set has the
// default configuration's value, or else the first.
func (c *Candidates) Near(home Candidate, distance int) iter.Seq2[Candidate, bool] {
	return func(yield func(Candidate, bool) bool) {
		knobs := slices.DeleteFunc(slices.Clone(c.pools.knobs), func(k int) bool { return c.knob(k).Name == KnobInstanceCount })
		values := c.rules.none()
		if c.Batchers() == 0 || c.pools.size() == 0 {
			return
		}
		var turn func(rest []int, changes int) bool // reports whether to continue
		turn = func(rest []int, changes int) bool {
			switch {
			case changes > len(rest):
				return true
			case len(rest) == 0:
				return c.eachInstances(values, yield)
			}
			k, own := rest[0], c.place(home, rest[0])
			values[k] = c.knob(k).Values[own]
			if !turn(rest[1:], changes) {
				return false
			}
			for i, v := range c.knob(k).Values {
				if values[k] = v; changes > 0 && i != own && !turn(rest[1:], changes-1) {
					return false
				}
			}
			return true
		}
		turn(knobs, distance)
	}
}

// eachInstances yields the combinations of an engine with numbers of instances, and reports whether to
// continue.
func (c *Candidates) eachInstances(engine []Value, yield func(Candidate, bool) bool) bool {
	counts, at := []Value{""}, c.rules.index[KnobInstanceCount]
	if _, has := c.rules.index[KnobInstanceCount]; has {
		counts = c.knob(at).Values
	}
	for _, n := range counts {
		values := slices.Clone(engine)
		if n != "" {
			values[at] = n
		}
		if pool, isLegal := c.pool(values); !yield(pool, isLegal) {
			return false
		}
	}
	return true
}

func (c *Candidates) knob(k int) Knob { return c.rules.space.Knobs[k] }

// place returns the index of a candidate's value among a knob's values. If the candidate does not
// set the knob, it is the index of the default's value, or else 0.
func (c *Candidates) place(of Candidate, k int) int {
	v, set := of.Get(c.knob(k).Name)
	if !set {
		v, _ = c.rules.space.Facts.base(c.knob(k).Name)
	}
	return max(slices.Index(c.knob(k).Values, v), 0)
}

// Coarse yields members of a pool that are spread evenly over the values of the batcher's knobs,
// including each knob's first and last value. There are about `most` at most. Folding may yield one
// again.
func (c *Candidates) Coarse(pool Candidate, most int) iter.Seq[Candidate] {
	chosen := c.thinned(most)
	return func(yield func(Candidate) bool) {
		values := c.rules.values(pool)
		var turn func(rest []int) bool
		turn = func(rest []int) bool {
			if len(rest) == 0 {
				return c.yieldMember(values, yield)
			}
			for _, v := range chosen[rest[0]] {
				if values[rest[0]] = v; !turn(rest[1:]) {
					return false
				}
			}
			return true
		}
		turn(c.batchers.knobs)
	}
}

// thinned chooses values of the batcher's knobs, by the knobs' indices. It halves the values of the
// knob that has most, until there are few enough combinations.
func (c *Candidates) thinned(most int) map[int][]Value {
	counts := map[int]int{}
	product := 1
	for _, k := range c.batchers.knobs {
		counts[k] = len(c.knob(k).Values)
		product = times(product, counts[k])
	}
	for product > most {
		longest := slices.MaxFunc(c.batchers.knobs, func(a, b int) int { return counts[a] - counts[b] })
		if counts[longest] <= 2 {
			break
		}
		counts[longest] = (counts[longest] + 1) / 2
		product = 1
		for _, n := range counts {
			product = times(product, n)
		}
	}
	chosen := map[int][]Value{}
	for k, n := range counts {
		list := c.knob(k).Values
		for i := range n {
			chosen[k] = append(chosen[k], list[i*(len(list)-1)/max(n-1, 1)])
		}
	}
	return chosen
}

// Beside yields the candidate, and the members of its pool that differ in one of the batcher's
// knobs. They are 1, 2, 4 … values away. Folding may yield one again.
func (c *Candidates) Beside(member Candidate) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		home := c.rules.values(member)
		for _, k := range c.batchers.knobs {
			home[k] = c.knob(k).Values[c.place(member, k)]
		}
		if !c.yieldMember(home, yield) {
			return
		}
		for _, k := range c.batchers.knobs {
			list, at := c.knob(k).Values, c.place(member, k)
			for far := 1; far < len(list); far *= 2 {
				for _, i := range []int{at - far, at + far} {
					values := slices.Clone(home)
					if i < 0 || i >= len(list) {
						continue
					}
					if values[k] = list[i]; !c.yieldMember(values, yield) {
						return
					}
				}
			}
		}
	}
}

// yieldMember yields the canonical candidate of a combination of a legal pool with any settings of
// the batcher, if it is legal. It reports whether to continue.
func (c *Candidates) yieldMember(combination []Value, yield func(Candidate) bool) bool {
	values := slices.Clone(combination)
	if v := c.batchers.fold(values); v.illegal != "" {
		return true
	}
	member := c.rules.candidate(values)
	return member.IsDefault() || yield(member)
}
