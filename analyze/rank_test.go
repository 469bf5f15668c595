package analyze

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
)

// plain is of a machine with two cores, and of an objective whose weights add up to 1.
var plain = yardstick{cores: 2, weight: 1}

// configWith makes a configuration with one point; violation 0 satisfies.
func configWith(name string, score, half, violation, memory float64) Config {
	p := Point{Sample: Sample{
		Score:  measure.Estimate{Value: score, Lo: score - half, Hi: score + half},
		Values: map[measure.Metric]measure.Estimate{measure.Memory: {Value: memory}},
	}}
	if violation > 0 {
		p.Misses = []search.Miss{{Violation: violation}}
	}
	c := Config{Name: name, Candidate: search.NewCandidate(search.Setting{Knob: "k", Value: search.Value(name)}), Points: []Point{p}}
	c.Best = &c.Points[0]
	c.Score = c.Best.Score
	return c
}

// randomConfigs makes configurations whose scores are close, so that many tie.
func randomConfigs(r *rand.Rand, n int) []Config {
	configs := make([]Config, n)
	for i := range configs {
		violation := 0.0
		if r.IntN(3) == 0 {
			violation = float64(r.IntN(4)) / 10
		}
		configs[i] = configWith(fmt.Sprintf("m_config_%d", i), float64(r.IntN(20))/300, float64(r.IntN(4))/200,
			violation, float64(r.IntN(3)))
		configs[i].Best.Confirmed = r.IntN(4) == 0
		configs[i].FailedFinals = !configs[i].Best.Confirmed && r.IntN(4) == 0
		if r.IntN(8) == 0 {
			configs[i].Points, configs[i].Best = nil, nil
		}
	}
	return configs
}

func order(configs []Config) []string {
	list := make([]string, len(configs))
	for i, c := range configs {
		list[i] = fmt.Sprint(c.Name, c.TiedWith)
	}
	return list
}

func TestRankDoesNotDependOnTheOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		configs := randomConfigs(r, 2+r.IntN(12))
		want := order(rank(configs, plain, ""))
		shuffled := slices.Clone(configs)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(want, order(rank(shuffled, plain, ""))); diff != "" {
			t.Fatalf("shuffled configurations rank differently (-first +shuffled):\n%s", diff)
		}
	}
}

func TestComparisonsAreTransitive(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 8))
	compare := map[string]func(a, b Config) int{
		"byMerit": byMerit,
		"byCost":  func(a, b Config) int { return byCost(a, b, 2, Setup{}) },
	}
	for range 2000 {
		c := randomConfigs(r, 3)
		if c[0].Best == nil || c[1].Best == nil || c[2].Best == nil {
			continue
		}
		for name, less := range compare {
			if less(c[0], c[1]) < 0 && less(c[1], c[2]) < 0 && less(c[0], c[2]) >= 0 {
				t.Fatalf("%s: a before b before c, but not a before c: %v", name, order(c))
			}
		}
	}
}

// What the strategy believes in decides among confirmed configurations that the figures cannot tell apart, and where none is confirmed among the others.
func TestWhatIsBelievedComesFirst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		score, half, violation float64
		isConfirmed, isBestToo bool // confirmed
		first                  string
	}{
		"within the intervals": {0.95, 0.1, 0, true, true, "believed"},
		"beyond them":          {0.7, 0.1, 0, true, true, "best"},
		"too slow":             {0.95, 0.1, 0.2, true, true, "best"},
		"not confirmed":        {0.95, 0.1, 0, false, true, "best"},
		"none confirmed":       {0.95, 0.1, 0, false, false, "believed"},
		"none, and beyond":     {0.7, 0.1, 0, false, false, "best"},
	} {
		best, other := configWith("best", 1, 0.1, 0, 1), configWith("believed", test.score, test.half, test.violation, 1)
		best.Best.Confirmed, other.Best.Confirmed = test.isBestToo, test.isConfirmed
		ranked := rank([]Config{best, other}, plain, other.Candidate.Key())
		if ranked[0].Name != test.first {
			t.Errorf("%s: %s comes first, want %s", name, ranked[0].Name, test.first)
		}
		if unasked := rank([]Config{best, other}, plain, ""); unasked[0].Name != "best" {
			t.Errorf("%s: %s comes first where nothing is believed", name, unasked[0].Name)
		}
	}
}

func TestSatisfyingBeforeFailingBeforeUnmeasured(t *testing.T) {
	t.Parallel()
	unmeasured := Config{Name: "m_config_4"}
	got := rank([]Config{
		unmeasured,
		configWith("m_config_0", 9, 0, 0.5, 1), // the best score of all, but far off
		configWith("m_config_1", 1, 0, 0.1, 1),
		configWith("m_config_2", 2, 0, 0, 1),
		configWith("m_config_3", 3, 0, 0, 1),
	}, plain, "")
	var list []string
	var ranks []int
	for _, c := range got {
		list, ranks = append(list, c.Name), append(ranks, c.Rank)
	}
	if diff := cmp.Diff([]string{"m_config_3", "m_config_2", "m_config_1", "m_config_0", "m_config_4"}, list); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4, 0}, ranks); diff != "" {
		t.Errorf("ranks (-want +got):\n%s", diff)
	}
}

func TestTies(t *testing.T) {
	t.Parallel()
	check := func(name string, want []string, configs ...Config) {
		t.Helper()
		if diff := cmp.Diff(want, order(rank(configs, plain, ""))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	check("within 1 %, overlapping: lower memory first",
		[]string{"b[a]", "a[b]"}, configWith("a", 1.005, 0.01, 0, 300), configWith("b", 1, 0.01, 0, 200))
	check("within 1 %, but told apart by the intervals",
		[]string{"a[]", "b[]"}, configWith("a", 1.005, 0.001, 0, 300), configWith("b", 1, 0.001, 0, 200))
	check("overlapping, but more than 1 % apart: noise is no reason to give away 2 %",
		[]string{"a[]", "b[]"}, configWith("a", 1.02, 0.1, 0, 300), configWith("b", 1, 0.1, 0, 200))
	check("a chain: c is tied with b, but not with a, whose group comes first",
		[]string{"b[a]", "a[b]", "c[]"},
		configWith("a", 1.008, 0.1, 0, 300), configWith("b", 1, 0.1, 0, 200), configWith("c", 0.992, 0.1, 0, 100))
	check("failing ones are never tied",
		[]string{"a[]", "b[]"}, configWith("a", 1, 0.1, 0.1, 300), configWith("b", 1, 0.1, 0.1, 200))
}

func TestConfirmedFirst(t *testing.T) {
	t.Parallel()
	seen := func(name string, score, half float64) Config { return configWith(name, score, half, 0, 300) }
	confirmed := func(name string, score, half float64) Config {
		c := configWith(name, score, half, 0, 300)
		c.Best.Confirmed = true
		return c
	}
	check := func(name string, want []string, configs ...Config) {
		t.Helper()
		if diff := cmp.Diff(want, order(rank(configs, plain, ""))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	check("a lucky window of the search does not beat what was confirmed",
		[]string{"a[]", "b[]"}, confirmed("a", 1, 0.03), seen("b", 1.05, 0.03))
	check("beyond both intervals it does",
		[]string{"b[]", "a[]"}, confirmed("a", 1, 0.03), seen("b", 1.5, 0.03))
	check("the tied stay together, and the unconfirmed keep their order",
		[]string{"a[b]", "b[a]", "c[]", "d[]", "e[]"},
		confirmed("a", 1.005, 0.03), confirmed("b", 1, 0.03), seen("c", 1.06, 0.05), seen("d", 1.03, 0.05), seen("e", 0.9, 0.03))
	check("nothing was confirmed: the score decides",
		[]string{"b[]", "a[]"}, seen("a", 1, 0.03), seen("b", 1.05, 0.03))
	failing := configWith("a", 2, 0.03, 0.1, 300)
	failing.Best.Confirmed = true
	check("a confirmed one that misses a constraint does not come first",
		[]string{"b[]", "a[]"}, failing, seen("b", 1.05, 0.03))
}

// What did not serve on fresh launches comes behind all others within the constraints, however good the figures of the search are.
func TestFailedFinalsComeLast(t *testing.T) {
	t.Parallel()
	seen := func(name string, score float64) Config { return configWith(name, score, 0.01, 0, 300) }
	confirmed := func(name string, score float64) Config {
		c := seen(name, score)
		c.Best.Confirmed = true
		return c
	}
	failed := func(name string, score float64) Config {
		c := seen(name, score)
		c.FailedFinals = true
		return c
	}
	missing := configWith("c", 9, 0.01, 0.1, 300)
	check := func(name string, want []string, believed string, configs ...Config) {
		t.Helper()
		if diff := cmp.Diff(want, order(rank(configs, plain, believed))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	check("far better than all others", []string{"a[]", "b[]", "c[]"}, "", confirmed("a", 1), seen("b", 0.5), failed("c", 9))
	check("as good as what was confirmed", []string{"a[]", "b[]"}, "", confirmed("a", 1), failed("b", 1.001))
	check("before what misses a constraint", []string{"b[]", "c[]"}, "", failed("b", 1), missing)
	check("like among like", []string{"a[]", "b[c]", "c[b]"}, "", seen("a", 0.1), failed("b", 1), failed("c", 1.001))
	check("believed to be the best", []string{"a[]", "b[]"}, failed("b", 0).Candidate.Key(), seen("a", 1), failed("b", 1.001))
	base := failed("default", 2)
	base.Candidate = search.Candidate{}
	check("the default too", []string{"a[]", "default[]"}, "", seen("a", 1), base)
}

// window is a second of n requests that all took the same time.
func window(n int, latency time.Duration) measure.Window {
	latencies := slices.Repeat([]time.Duration{latency}, n)
	h := measure.NewHistogram(latencies)
	return measure.Window{
		Duration: time.Second, Requests: n, Inferences: n, Sub: []measure.SubWindow{{Requests: n, Latency: h}},
	}
}

// With these weights a ranking by differences relative to each pair's mean, as Model Analyzer's, runs in a circle: the
// first beats the second, the second the third, and the third the first.
func TestWeightedObjectiveHasNoCircles(t *testing.T) {
	t.Parallel()
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{
		{Metric: measure.Throughput, Weight: 3}, {Metric: measure.LatencyP99, Weight: 2},
	}}}
	var configs []Config
	for i, m := range []struct {
		rate    int
		latency time.Duration
	}{{150, 2 * time.Millisecond}, {300, 8 * time.Millisecond}, {800, 80 * time.Millisecond}} {
		c := Config{Name: fmt.Sprint(i), Points: []Point{{
			Sample: newSample([]measure.Measurement{{Windows: []measure.Window{window(m.rate, m.latency)}}}, goal, nil),
		}}}
		c.Best = &c.Points[0]
		c.Score = c.Best.Score
		configs = append(configs, c)
	}
	// 3 ln 150 − 2 ln 0.002 = 27.46; 3 ln 300 − 2 ln 0.008 = 26.77; 3 ln 800 − 2 ln 0.080 = 25.11.
	for i, want := range []float64{27.46, 26.77, 25.11} {
		if got := configs[i].Best.Score.Value; math.Abs(got-want) > 0.01 {
			t.Errorf("score %d is %.2f, want %.2f", i, got, want)
		}
	}
	for _, p := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		ranked := rank([]Config{configs[p[0]], configs[p[1]], configs[p[2]]}, plain, "")
		if got := ranked[0].Name + ranked[1].Name + ranked[2].Name; got != "012" {
			t.Errorf("insertion order %v ranks %s, want 012", p, got)
		}
	}
}

func TestBestPoint(t *testing.T) {
	t.Parallel()
	point := func(concurrency int, score, half, violation float64, confirmed bool) Point {
		p := configWith("", score, half, violation, 0).Points[0]
		p.Load, p.Confirmed = measure.Load{Concurrency: concurrency}, confirmed
		return p
	}
	check := func(name string, want int, points ...Point) {
		t.Helper()
		if got := bestPoint(points, false); got.Load.Concurrency != want {
			t.Errorf("%s: best is at %v, want concurrency %d", name, got.Load, want)
		}
	}
	check("the best score that satisfies", 4,
		point(2, 1, 0, 0, false), point(4, 2, 0, 0, false), point(8, 3, 0, 0.1, false))
	check("none satisfies: the nearest", 2, point(2, 1, 0, 0.1, false), point(4, 2, 0, 0.2, false))
	check("a confirmed point goes before one that may be luck", 4,
		point(4, 2, 0.1, 0, true), point(8, 2.05, 0.1, 0, false))
	check("a point that is better beyond both intervals stays", 8,
		point(4, 2, 0.1, 0, true), point(8, 2.5, 0.1, 0, false))
	check("a confirmed point that misses a constraint does not count", 4,
		point(4, 2, 0.1, 0, false), point(8, 2, 0.1, 0.1, true))
	misses := func(p Point, c search.Constraint, value float64) Point {
		p.Misses = []search.Miss{{Constraint: c, Value: value, Violation: 0.04}}
		return p
	}
	limit := 0.050
	atMost := search.Constraint{Metric: measure.LatencyP99, Max: &limit}
	slow := misses(point(8, 2, 0.1, 0, true), atMost, 0.052)
	check("fresh launches miss a latency: what only the search saw at a higher load is refuted", 4,
		point(4, 1.5, 0.1, 0, false), slow, point(9, 2.1, 0.1, 0, false))
	check("nothing else keeps the constraints: the nearest", 8, slow, point(9, 2.1, 0.1, 0, false))
	check("what only the search saw refutes nothing", 9,
		point(4, 1.5, 0.1, 0, false), misses(point(8, 2, 0.1, 0, false), atMost, 0.052), point(9, 2.1, 0.1, 0, false))
	dear := search.Constraint{Metric: measure.Cost, Max: &limit}
	check("a higher load is cheaper", 9, misses(point(8, 2, 0.1, 0, true), dear, 0.052), point(9, 2.1, 0.1, 0, false))
	if got := bestPoint([]Point{slow, point(9, 2.1, 0.1, 0, false)}, true); got.Load.Concurrency != 9 {
		t.Errorf("the default's best is at %v: it must not be understated", got.Load)
	}
	tuned := []Point{point(4, 2, 0.1, 0, true), point(8, 2.05, 0.1, 0, false)}
	if got := bestPoint(tuned, true); got.Load.Concurrency != 8 {
		t.Errorf("the default's best is at %v: it must not be understated", got.Load)
	}
	if got := bestPoint(nil, false); got != nil {
		t.Errorf("best of no points is %v", got)
	}
}

func TestGainKnowsTheSpreadBetweenLaunches(t *testing.T) {
	t.Parallel()
	point := func(half float64, confirmed bool, trials ...float64) Point {
		p := Point{Confirmed: confirmed}
		p.Score, p.TrialScores = measure.Estimate{Value: 1, Lo: 1 - half, Hi: 1 + half}, trials
		return p
	}
	check := func(name string, want float64, a, b Point) {
		t.Helper()
		if got := differenceHalf(a, b); math.Abs(got-want) > 1e-4 {
			t.Errorf("%s: half-width is %.5f, want %.5f", name, got, want)
		}
	}
	check("one trial each: 0.03 and 0.04 at right angles", 0.05, point(0.03, true, 1), point(0.04, true, 2))
	check("not confirmed: repeats in one engine say nothing about launches", 0.05,
		point(0.03, false, 0.9, 1.1), point(0.04, true, 1.9, 2.1))
	// Both variances are 0.02, so is the pooled one; with two degrees of freedom t is 4.3027, and
	// 4.3027 · √(0.02 · (1/2 + 1/2)) = 0.60849.
	check("launches differ more than windows", 0.60849, point(0.03, true, 0.9, 1.1), point(0.04, true, 1.9, 2.1))
	check("launches agree", 0.05, point(0.03, true, 1, 1), point(0.04, true, 2, 2))
}

// Weights of 10 and 5 ask for the same as 2 and 1: what is tied, and so what comes first, does not depend on their scale.
func TestTiesDoNotDependOnTheScaleOfWeights(t *testing.T) {
	t.Parallel()
	for _, scale := range []float64{0.01, 1, 5} {
		goal := search.Goal{Objective: search.Objective{Terms: []search.Term{
			{Metric: measure.Throughput, Weight: 2 * scale}, {Metric: measure.LatencyP99, Weight: scale}}}}
		config := func(name string, gain, memory float64) Config { // over the first
			return configWith(name, 3*scale*gain, 3*scale*0.1, 0, memory)
		}
		ranked := rank([]Config{config("a", 0, 300), config("b", -0.005, 200), config("c", -0.02, 100)}, newYardstick(nil, goal, 2), "")
		if diff := cmp.Diff([]string{"b[a]", "a[b]", "c[]"}, order(ranked)); diff != "" {
			t.Errorf("with weights times %v (-want +got):\n%s", scale, diff)
		}
	}
}

// A recording may have loads of both kinds: their order is one all the same.
func TestLoadsOfBothKindsHaveAnOrder(t *testing.T) {
	t.Parallel()
	loop, rate := measure.Load{Concurrency: 4, BatchSize: 1}, measure.Load{RequestRate: 4, BatchSize: 1}
	if a, b := compareLoads(loop, rate), compareLoads(rate, loop); a*b != -1 {
		t.Errorf("%v and %v compare as %d, and the other way round as %d", loop, rate, a, b)
	}
}
