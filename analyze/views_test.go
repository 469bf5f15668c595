package analyze

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
)

// pointWith is a point with throughput in infer/s, p99 in ms and memory in MB.
func pointWith(concurrency int, throughput, p99, memory float64) Point {
	return Point{Load: measure.Load{Concurrency: concurrency, BatchSize: 1}, Sample: Sample{Values: map[measure.Metric]measure.Estimate{
		measure.Throughput: {Value: throughput}, measure.LatencyP99: {Value: p99 / 1e3}, measure.Memory: {Value: memory * 1e6},
	}}}
}

func TestFronts(t *testing.T) {
	t.Parallel()
	missing := pointWith(1, 900, 1, 1)
	missing.Misses = []search.Miss{{Violation: 1}}
	configs := []Config{
		{Name: "fast", Points: []Point{pointWith(1, 100, 5, 300), pointWith(8, 400, 20, 300), pointWith(16, 390, 40, 300)}},
		{Name: "small", Points: []Point{pointWith(1, 80, 6, 100), pointWith(8, 200, 20, 100)}},
		{Name: "equal", Points: []Point{pointWith(8, 400, 20, 300)}},
		{Name: "forbidden", Points: []Point{missing}},
		{Name: "curve", CurveOnly: true, Points: []Point{pointWith(1, 999, 1, 1)}},
	}
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	check := func(name string, f Front, want ...string) {
		t.Helper()
		var got []string
		for _, p := range f.Points {
			got = append(got, fmt.Sprintf("%s@%d", p.Name, p.Load.Concurrency))
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	all := fronts(configs, goal, nil)
	if len(all) != 4 {
		t.Fatalf("%d fronts", len(all))
	}
	check("three metrics", all[0], "fast@8", "equal@8", "small@8", "fast@1", "small@1")
	check("throughput and latency", all[1], "fast@8", "equal@8", "fast@1")
	check("throughput and memory", all[2], "fast@8", "equal@8", "small@8")
	check("latency and memory", all[3], "fast@1", "small@1")
	check("at one load", fronts(configs, goal, &measure.Load{Concurrency: 1})[0], "fast@1", "small@1")
	if none := fronts(configs[3:], goal, nil); none != nil {
		t.Errorf("where nothing satisfies the constraints there are the fronts %v", none)
	}
}

// A point is in the front exactly when no other one dominates it, by the definition, whatever the figures.
func TestFrontsByDefinition(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	metrics := []measure.Metric{measure.Throughput, measure.LatencyP99, measure.Memory}
	for range 200 {
		var configs []Config
		for i := range 1 + r.IntN(30) {
			configs = append(configs, Config{Name: fmt.Sprintf("m_config_%d", i),
				Points: []Point{pointWith(1, float64(1+r.IntN(6)), float64(1+r.IntN(6)), float64(1+r.IntN(6)))}})
		}
		front := map[string]bool{}
		for _, p := range newFront(configs, metrics, nil).Points {
			front[p.Name] = true
		}
		for _, c := range configs {
			own, _ := valuesOf(c.Points[0], metrics)
			isBeaten := slices.ContainsFunc(configs, func(other Config) bool {
				values, _ := valuesOf(other.Points[0], metrics)
				return values[0] >= own[0] && values[1] <= own[1] && values[2] <= own[2] && !slices.Equal(values, own)
			})
			if front[c.Name] == isBeaten {
				t.Fatalf("%s with %v: in the front %t, beaten %t", c.Name, own, front[c.Name], isBeaten)
			}
		}
	}
}

func TestProbability(t *testing.T) {
	t.Parallel()
	number := func(v float64) *float64 { return &v }
	check := func(name string, c search.Constraint, e measure.Estimate, want float64) {
		t.Helper()
		if got := probability(c, e); math.Abs(got-want) > 1e-4 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	atMost := func(limit float64) search.Constraint { return search.Constraint{Max: number(limit)} }
	e := measure.Estimate{Value: 40, Lo: 36, Hi: 50}
	check("the upper end of the interval: 97.5 % lie below it", atMost(50), e, 0.975)
	check("the lower end", atMost(36), e, 0.025)
	check("the figure itself", atMost(40), e, 0.5)
	// Half of the upper side on log scale is 0.9800 standard deviations: Φ(0.98) = 0.8365.
	check("half-way up", atMost(math.Sqrt(40*50)), e, 0.8365)
	check("a minimum", search.Constraint{Min: number(36)}, e, 0.975)
	check("both", search.Constraint{Min: number(36), Max: number(50)}, e, 0.95)
	single := measure.Estimate{Value: 40, Lo: 40, Hi: 40}
	check("without an interval, kept", atMost(40), single, 1)
	check("without an interval, missed", atMost(39.9), single, 0)
	check("an interval down to nothing", atMost(39), measure.Estimate{Value: 40, Hi: 80}, 0.5)
	check("nothing at all", atMost(1), measure.Estimate{}, 1)

	goal := search.Goal{Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: number(50)}, {Metric: measure.LatencyP95, Max: number(40)}, {Metric: measure.Energy, Max: number(1)}}}
	s := Sample{Chances: chances(map[measure.Metric]measure.Estimate{measure.LatencyP99: e, measure.LatencyP95: e}, goal)}
	if got := s.Chances[2].Probability; got != 0 {
		t.Errorf("what is not known holds with probability %v", got)
	}
	s.Chances = s.Chances[:2]
	if got, want := s.Probability(), 0.975*0.5; math.Abs(got-want) > 1e-4 {
		t.Errorf("both hold with probability %v, want %v", got, want)
	}
	if got := (Sample{}).Probability(); got != 1 {
		t.Errorf("no constraint holds with probability %v", got)
	}
}

// A point satisfies a constraint exactly when that is at least as likely as not.
func TestProbabilityAgreesWithMisses(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	for range 1000 {
		e := measure.Estimate{Value: 1 + r.Float64()}
		e.Lo, e.Hi = e.Value*(1-0.3*r.Float64()), e.Value*(1+0.3*r.Float64())
		limit := 1 + r.Float64()
		c := search.Constraint{Max: &limit}
		if p := probability(c, e); (p >= 0.5) != (c.Violation(e.Value) == 0) || p < 0 || p > 1 {
			t.Fatalf("%v at most %v: probability %v, violation %v", e, limit, p, c.Violation(e.Value))
		}
	}
}

// Ten thousand that cannot be told apart have twenty names each: all of them would be gigabytes.
func TestLargeGroupsOfTies(t *testing.T) {
	t.Parallel()
	configs := make([]Config, 1000)
	for i := range configs {
		configs[i] = configWith(fmt.Sprintf("m_config_%d", i), 1, 0.1, 0, 100)
	}
	ranked := rank(configs, plain, "")
	if last := ranked[999]; len(last.TiedWith) != mostTied || last.TiedWith[0] != ranked[0].Name {
		t.Errorf("the last is tied with %d, first of all %v", len(last.TiedWith), last.TiedWith[:1])
	}
	if !slices.IsSortedFunc(ranked, func(a, b Config) int { return cmp.Compare(a.Rank, b.Rank) }) {
		t.Error("ranks are not ascending")
	}
}
