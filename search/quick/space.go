package quick

import (
	"slices"
	"strconv"

	"tuner/search"
)

// dimensions is the number of knobs that the hill climb searches: max_batch_size and
// instance_count, in that order.
const dimensions = 2

// coordinate is a point of the climb: an index into each dimension's ascending values.
type coordinate [dimensions]int

// plus adds a step within the bounds.
func (t terrain) plus(c, step coordinate) coordinate {
	for i := range c {
		c[i] = min(max(c[i]+step[i], 0), len(t.values[i])-1)
	}
	return c
}

// distance returns the square of the Euclidean distance.
func distance(a, b coordinate) int {
	sum := 0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum
}

// terrain maps coordinates to candidates.
type terrain struct {
	space  search.Space
	values [dimensions][]search.Value // a knob that is not searched has one: its fixed value
	fixed  search.Candidate           // the values of all other knobs
}

var climbed = [dimensions]string{search.KnobMaxBatchSize, search.KnobInstanceCount}

// newTerrain fixes every other knob at its first value that some candidate keeps. A knob that folds
// for small batches, such as a delay, need not fold for larger ones. It returns false if the space
// has no candidate.
func newTerrain(s search.Space, candidates *search.Candidates) (terrain, bool) {
	first, ok := candidates.First()
	if !ok {
		return terrain{}, false
	}
	t := terrain{space: s, fixed: first}
	members := candidates.Members(first)
	for _, k := range s.Knobs {
		isKept := func(v search.Value) bool {
			return slices.ContainsFunc(members, func(m search.Candidate) bool { own, _ := m.Get(k.Name); return own == v })
		}
		if i := slices.IndexFunc(k.Values, isKept); i >= 0 {
			t.fixed = t.fixed.With(k.Name, k.Values[i])
		}
	}
	for i, knob := range climbed {
		t.values[i] = []search.Value{""}
		for _, k := range s.Knobs {
			if k.Name == knob {
				t.values[i] = slices.SortedFunc(slices.Values(k.Values), byNumber)
			}
		}
	}
	return t, true
}

func byNumber(a, b search.Value) int {
	x, _ := strconv.Atoi(string(a)) // the folding rules reject values that are not numbers
	y, _ := strconv.Atoi(string(b))
	return x - y
}

// start returns the first coordinate that has a candidate: the smallest batch, and for it the
// fewest instances.
func (t terrain) start() coordinate {
	for a := range t.values[0] {
		for b := range t.values[1] {
			if _, legal := t.candidate(coordinate{a, b}); legal {
				return coordinate{a, b}
			}
		}
	}
	return coordinate{}
}

// candidate returns the candidate at a coordinate; false if its combination is left out.
func (t terrain) candidate(at coordinate) (search.Candidate, bool) {
	c := t.fixed
	for i, knob := range climbed {
		if v := t.values[i][at[i]]; v != "" {
			c = c.With(knob, v)
		}
	}
	c, illegal := t.space.Canonical(c)
	return c, illegal == ""
}

// level returns the load at which the climb measures a candidate: 2 · max_batch_size ·
// instance_count requests in flight, within the load axis. For request rates it is the middle
// level, since the formula does not apply to them.
func (t terrain) level(c search.Candidate) float64 {
	if levels := t.space.Load.Levels; t.space.Load.Rate {
		return levels[(len(levels)-1)/2]
	}
	return t.space.Load.AtLeast(t.space.Knee(c))
}

// radius is the extent of a home's neighbourhood.
const radius = 3

// neighbourhood lists the coordinates within the radius of home, home first, in Model Analyzer's
// order. The nearest in the first dimension come first, then in the second, and up before down.
func (t terrain) neighbourhood(home coordinate) []coordinate {
	var near []coordinate
	for a := range radius + 1 {
		for b := range radius + 1 {
			for _, step := range []coordinate{{a, b}, {a, -b}, {-a, b}, {-a, -b}} {
				c := coordinate{home[0] + step[0], home[1] + step[1]}
				if distance(c, home) <= radius*radius && t.contains(c) && !slices.Contains(near, c) {
					near = append(near, c)
				}
			}
		}
	}
	return near
}

// adjacent lists the coordinates that differ from home by one step of one dimension, down before
// up.
func (t terrain) adjacent(home coordinate) []coordinate {
	var near []coordinate
	for i := range home {
		for _, step := range []int{-1, 1} {
			c := home
			c[i] += step
			if t.contains(c) {
				near = append(near, c)
			}
		}
	}
	return near
}

func (t terrain) contains(c coordinate) bool {
	for i := range c {
		if c[i] < 0 || c[i] >= len(t.values[i]) {
			return false
		}
	}
	return true
}
