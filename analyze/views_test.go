package analyze

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
)

// pointWith makes a point with throughput in infer/s, p99 in ms and memory in MB.
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
	all := fronts(configs, view{}, goal)
	if len(all) != 4 {
		t.Fatalf("%d fronts", len(all))
	}
	check("three metrics", all[0], "fast@8", "equal@8", "small@8", "fast@1", "small@1")
	check("throughput and latency", all[1], "fast@8", "equal@8", "fast@1")
	check("throughput and memory", all[2], "fast@8", "equal@8", "small@8")
	check("latency and memory", all[3], "fast@1", "small@1")
	check("at one load", fronts(configs, view{at: &measure.Load{Concurrency: 1}}, goal)[0], "fast@1", "small@1")
	if none := fronts(configs[3:], view{}, goal); none != nil {
		t.Errorf("where nothing satisfies the constraints there are the fronts %v", none)
	}
}

// A point is in the front exactly if no other point dominates it by the definition.
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
		for _, p := range newFront(configs, view{}, metrics).Points {
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
