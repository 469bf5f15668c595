package quick

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/standings"
)

var throughput = search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}

// plain returns a terrain of the given size in which every coordinate has a candidate.
func plain(batches, instances int) terrain {
	var t terrain
	t.values = [dimensions][]search.Value{make([]search.Value, batches), make([]search.Value, instances)}
	return t
}

// passing returns a result with a throughput within the constraints. failing returns one that
// exceeds them by a share.
func passing(throughput float64) result {
	return result{standings.Point{Score: math.Log(throughput), Scored: true}, true}
}

func failing(throughput, violation float64) result {
	r := passing(throughput)
	r.point.Misses = []search.Miss{{Violation: violation}}
	return r
}

// walk climbs to the end, and returns the coordinates in the order in which they were first
// measured.
func walk(t *testing.T, size terrain, land func(coordinate) result) ([]coordinate, *climb) {
	t.Helper()
	c := newClimb(size, throughput)
	var measured []coordinate
	for steps := 0; !c.done; steps++ {
		if steps > 1000 {
			t.Fatal("the climb does not end")
		}
		if !size.contains(c.at) {
			t.Fatalf("%v is out of bounds", c.at)
		}
		if _, known := c.results[c.at]; !known {
			measured = append(measured, c.at)
		}
		c.learn(land(c.at))
	}
	return measured, c
}

func TestClimb(t *testing.T) {
	t.Parallel()
	check := func(name string, size terrain, land func(coordinate) result, want ...coordinate) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := walk(t, size, land)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error("measured (-want +got):\n" + diff)
			}
		})
	}
	// From the corner, the climb measures the neighbours with two new values each: (0,1), (1,0),
	// (2,2). On level ground the step is zero, and the climb ends.
	check("level ground", plain(8, 5), func(coordinate) result { return passing(100) },
		coordinate{0, 0}, coordinate{0, 1}, coordinate{1, 0}, coordinate{2, 2})
	// Throughput doubles with each step of the first dimension up to 3. The relative differences
	// over the mean are 0 for (0,1), 2/3 for (1,0), 6/5 for (2,2). First component: (2/3 + 6/5)/(1
	// + 2) = 0.62, two steps. Second: (0 + 6/5)/(1 + 2) = 0.4, two steps.
	//
	// At (2,2), 400, three neighbours are known: (0,1) and (0,0) and (1,0). Differences: −6/5, −6/5
	// and −2/3. First component: (6/5 + 6/5 + 2/3)/(2 + 2 + 1) = 0.61, two steps. Second, of (0,1),
	// (0,0), (1,0): (6/5 + 6/5 + 2/3)/(1 + 2 + 2) = 0.61, two steps: (4,4).
	//
	// Its radius contains only (2,2); (4,3) and (5,4) bring two new values each. (2,2) is worse by
	// 2/3: (2/3)/(2 + 1) = 0.22, one step each: (5,4), at the border of the second dimension. There
	// (4,4) and (4,3) are known, and (5,2) is new. All are equal, so the climb ends.
	check("up the first dimension", plain(8, 5),
		func(c coordinate) result { return passing(100 * math.Exp2(float64(min(c[0], 3)))) },
		coordinate{0, 0}, coordinate{0, 1}, coordinate{1, 0}, coordinate{2, 2}, coordinate{4, 4},
		coordinate{4, 3}, coordinate{5, 4}, coordinate{5, 2})
	// There is no other coordinate.
	check("one point", plain(1, 1), func(coordinate) result { return passing(100) }, coordinate{0, 0})
	// The corner itself cannot be measured, and there is no coordinate to step back to.
	check("failing corner", plain(4, 4), func(coordinate) result { return result{} }, coordinate{0, 0})
	// The corner passes, (0,1) does not. Slow mode takes only the adjacent (1,0), which is better
	// and passes. Its adjacent (2,0) and (1,1) fail, so it stays.
	check("slow along a limit", plain(4, 4), func(c coordinate) result {
		if c[1] > 0 || c[0] > 1 {
			return failing(1000, 0.5)
		}
		return passing(100 + 100*float64(c[0]))
	}, coordinate{0, 0}, coordinate{0, 1}, coordinate{1, 0}, coordinate{2, 0}, coordinate{1, 1})
}

func TestClimbFollowsFallingViolations(t *testing.T) {
	t.Parallel()
	// No coordinate passes below 5 in the first dimension, and the violation falls on the way
	// there.
	_, c := walk(t, plain(8, 3), func(at coordinate) result {
		if at[0] >= 5 {
			return passing(100)
		}
		return failing(100, float64(5-at[0]))
	})
	if !c.results[c.best].passes() {
		t.Errorf("the best of the climb is %v, which does not pass", c.best)
	}
}

// Climbs over random ground with failures, limits and holes end.
func TestClimbEnds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		known := map[coordinate]result{}
		land := func(c coordinate) result {
			if _, ok := known[c]; !ok {
				value := 100 * math.Exp(random.NormFloat64())
				known[c] = []result{passing(value), passing(value), failing(value, random.Float64()), {}}[random.IntN(4)]
			}
			return known[c]
		}
		_, c := walk(t, plain(1+random.IntN(8), 1+random.IntN(5)), land)
		for at, r := range c.results {
			if r.passes() && c.improves(c.results[c.best], r) {
				t.Fatalf("%v is better than the best, %v", at, c.best)
			}
		}
	}
}

func TestStride(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]int{0: 0, 0.09: 0, 0.1: 1, 0.3: 1, 0.31: 2, 1: 2, 1.1: 3, 9: 3, -0.05: 0, -0.2: -1, -0.5: -2, -2: -3} {
		if got := stride(x); got != want {
			t.Errorf("stride of %v is %d, want %d", x, got, want)
		}
	}
}
