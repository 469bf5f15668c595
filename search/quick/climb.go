package quick

import (
	"math"

	"tuner/search"
)

// minKnown is the number of measured neighbours from which a fast step is computed.
const minKnown = 3

// strides are the thresholds of a step vector's parts for steps of 1, 2 and 3.
var strides = [...]float64{0.09, 0.3, 1.0}

// result is what the climb knows of a coordinate that it measured. It is not valid when the trial failed or the
// combination is left out.
type result struct {
	point search.Point
	valid bool
}

func (r result) passes() bool { return r.valid && r.point.Passes() }

// climb is Model Analyzer's hill climb, as a state machine: at says what to measure next until done, learn takes the
// result.
type climb struct {
	terrain    terrain
	objective  search.Objective
	results    map[coordinate]result
	visits     map[coordinate]int // how often a coordinate became home
	home       coordinate
	at         coordinate
	best       coordinate
	slow       bool // measure every adjacent neighbour before the next step
	homePassed bool // some home was within the constraints
	done       bool
}

func newClimb(t terrain, o search.Objective) *climb {
	start := t.start()
	return &climb{terrain: t, objective: o, results: map[coordinate]result{}, visits: map[coordinate]int{}, home: start, at: start, best: start}
}

// learn enters the result of the coordinate that was to be measured, and moves on.
func (c *climb) learn(r result) {
	if best, known := c.results[c.best]; r.valid && (!known || !best.valid || c.improves(best, r)) {
		c.best = c.at
	}
	c.results[c.at] = r
	if c.at == c.home && r.passes() {
		c.homePassed = true
	}
	switch {
	case c.at == c.home && (!r.valid || (!r.passes() && c.homePassed)):
		c.stepBack()
	case c.known():
		c.step()
	default:
		c.explore()
	}
}

// improves reports whether b beats a: within the constraints, else nearer to them.
func (c *climb) improves(a, b result) bool {
	if a.passes() != b.passes() {
		return b.passes()
	}
	return c.weight(a, b, !a.passes()) > 0
}

// weight is the relative advantage of b over a, b's minus a's over their mean for an objective of one metric; or by how
// much less b misses the constraints.
func (c *climb) weight(a, b result, byConstraints bool) float64 {
	switch {
	case byConstraints:
		return a.point.Violation() - b.point.Violation()
	case !a.point.Scored || !b.point.Scored:
		return 0
	}
	ratio := 1 + c.objective.Gain(a.point.Score, b.point.Score)
	return 2 * (ratio - 1) / (ratio + 1)
}

// stepBack goes to the neighbour nearest to the best coordinate so far, and walks slowly from there.
func (c *climb) stepBack() {
	nearest := c.home
	for i, n := range c.terrain.neighbourhood(c.home) {
		if i == 0 || distance(n, c.best) < distance(nearest, c.best) {
			nearest = n
		}
	}
	c.done = nearest == c.home
	c.move(nearest, true)
}

// step makes a new home, and ends the climb where it stays or has been twice.
func (c *climb) step() {
	next := c.fastHome
	if c.isSlow() {
		next = c.slowHome
	}
	home := next()
	c.done = home == c.home || c.visits[home] >= 2
	c.move(home, false)
}

func (c *climb) move(home coordinate, slow bool) {
	c.home, c.at, c.slow = home, home, slow
	c.visits[home]++
}

// explore chooses another neighbour to measure, or ends the climb.
func (c *climb) explore() {
	next, ok := c.unseen()
	if c.isSlow() {
		next, ok = c.unmeasured(c.terrain.adjacent(c.home))
	}
	c.at, c.done = next, !ok
}

// neighbours lists the validly measured coordinates around home.
func (c *climb) neighbours() []coordinate {
	var valid []coordinate
	for _, n := range c.terrain.neighbourhood(c.home) {
		if n != c.home && c.results[n].valid {
			valid = append(valid, n)
		}
	}
	return valid
}

// isSlow reports whether the limits of the constraints pass through the neighbourhood, or a step back has just been made.
func (c *climb) isSlow() bool {
	home, measured := c.results[c.home]
	if c.slow || !measured {
		return c.slow
	}
	for _, n := range c.neighbours() {
		if c.results[n].passes() != home.passes() {
			return true
		}
	}
	return false
}

// known reports whether enough is measured around home for a step.
func (c *climb) known() bool {
	if c.isSlow() {
		_, missing := c.unmeasured(c.terrain.adjacent(c.home))
		return !missing
	}
	return len(c.neighbours()) >= minKnown
}

func (c *climb) unmeasured(among []coordinate) (coordinate, bool) {
	for _, n := range among {
		if _, measured := c.results[n]; !measured {
			return n, true
		}
	}
	return coordinate{}, false
}

// unseen is the unmeasured neighbour with the most values, dimension by dimension, that no measured neighbour has.
func (c *climb) unseen() (coordinate, bool) {
	var seen [dimensions]map[int]bool
	for i := range seen {
		seen[i] = map[int]bool{}
		for _, n := range c.neighbours() {
			seen[i][n[i]] = true
		}
	}
	var best coordinate
	most := -1
	for _, n := range c.terrain.neighbourhood(c.home) {
		count := 0
		for i := range n {
			if !seen[i][n[i]] {
				count++
			}
		}
		if _, measured := c.results[n]; !measured && count > most {
			best, most = n, count
		}
	}
	return best, most >= 0
}

// slowHome is the best coordinate within the constraints among home and its neighbours.
func (c *climb) slowHome() coordinate {
	best := c.home
	for _, n := range c.neighbours() {
		if r := c.results[n]; r.passes() && c.improves(c.results[best], r) {
			best = n
		}
	}
	return best
}

// fastHome follows the mean advantage of the neighbours over home, dimension by dimension.
func (c *climb) fastHome() coordinate {
	home := c.results[c.home]
	var sum, offsets [dimensions]float64
	for _, n := range c.neighbours() {
		weight := c.weight(home, c.results[n], !home.passes())
		for i := range n {
			switch offset := float64(n[i] - c.home[i]); {
			case offset > 0:
				sum[i], offsets[i] = sum[i]+weight, offsets[i]+offset
			case offset < 0:
				sum[i], offsets[i] = sum[i]-weight, offsets[i]-offset
			}
		}
	}
	var step coordinate
	for i := range sum {
		if offsets[i] > 0 {
			step[i] = stride(sum[i] / offsets[i])
		}
	}
	return c.terrain.plus(c.home, step)
}

// stride turns a part of the step vector into a number of steps.
func stride(x float64) int {
	n := 0
	for _, bound := range strides {
		if math.Abs(x) > bound {
			n++
		}
	}
	if x < 0 {
		return -n
	}
	return n
}
