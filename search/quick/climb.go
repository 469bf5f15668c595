package quick

import (
	"math"

	"tuner/search"
	"tuner/search/standings"
)

// minKnown is the least number of measured neighbours for a fast step.
const minKnown = 3

// strides are the thresholds of a step vector's components for steps of 1, 2 and 3.
var strides = [...]float64{0.09, 0.3, 1.0}

// result is the measurement of a coordinate. It is invalid if the trial failed or the combination
// is left out.
type result struct {
	point standings.Point
	valid bool
}

func (r result) passes() bool { return r.valid && r.point.Passes() }

// climb is Model Analyzer's hill climb as a state machine. `at` is the next coordinate to measure
// until `done`, and learn takes the result.
type climb struct {
	terrain    terrain
	objective  search.Objective
	results    map[coordinate]result
	visits     map[coordinate]int // number of times that a coordinate became home
	home       coordinate
	at         coordinate
	best       coordinate
	slow       bool // measure every adjacent neighbour before the next step
	homePassed bool // a home was within the constraints
	done       bool
}

func newClimb(t terrain, o search.Objective) *climb {
	start := t.start()
	return &climb{terrain: t, objective: o, results: map[coordinate]result{}, visits: map[coordinate]int{}, home: start, at: start, best: start}
}

// learn takes the result of the current coordinate, and moves on.
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

// weight returns the relative advantage of b over a. For an objective of one metric it is b's value
// minus a's, divided by their mean. With byConstraints it is the decrease of the violation.
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

// stepBack goes to the neighbour nearest to the best coordinate so far, and walks slowly from
// there.
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

// step chooses a new home. It ends the climb if the home stays, or was visited twice.
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

// neighbours lists the coordinates around home with valid measurements.
func (c *climb) neighbours() []coordinate {
	var valid []coordinate
	for _, n := range c.terrain.neighbourhood(c.home) {
		if n != c.home && c.results[n].valid {
			valid = append(valid, n)
		}
	}
	return valid
}

// isSlow reports whether the constraints pass through the neighbourhood, or the last step was back.
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

// known reports whether enough neighbours of home are measured for a step.
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

// unseen returns the unmeasured neighbour with the most new values: by dimension, those that no
// measured neighbour has.
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

// slowHome returns the best coordinate within the constraints among home and its neighbours.
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

// stride converts a component of the step vector to steps.
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
