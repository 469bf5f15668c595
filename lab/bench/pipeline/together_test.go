package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/lab/peers"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

func TestJointProfile(t *testing.T) {
	t.Parallel()
	b := &bench{options: options{server: onTriton, output: "/out", models: "/models", together: 10 * time.Minute}, peers: &peers.Peers{Triton: "/peers/tritonserver"}}
	of := search.Facts{Cores: 2, BaseInstances: 1, Batching: true}
	facts := search.Facts{Cores: 2, Parts: map[string]search.Facts{encoder: of, "ranker": of, "direction": of}}
	for several, want := range map[int]struct {
		output         string
		configurations int
	}{
		2: {"/out/triton-together-search", 8 * 2 * 2},      // on shared and on divided cores
		3: {"/out/triton-together-search-of-3", 8 * 2 * 2}, // on shared cores alone
	} {
		b.several = several
		p, err := spec.ParseProfile("/out/p.yaml", []byte(b.joint(shortTogether, plan.Colocation)))
		if err != nil {
			t.Fatal(err)
		}
		if p.Search.Budget.Time != 10*time.Minute || p.Runner.Server != "/peers/tritonserver" || p.Output != want.output {
			t.Errorf("%d models: the profile is %+v", several, p)
		}
		if n, _ := p.Space(facts).Candidates().Len(); n != want.configurations {
			t.Errorf("%d models: %d configurations, want %d", several, n, want.configurations)
		}
	}
	for _, of := range traffics(3) {
		if _, err := spec.ParseProfile("/out/p.yaml", []byte(b.single(of))); err != nil {
			t.Error(err)
		}
	}
}

// Wherever it begins, a ladder ends within a stair of the scale at which the limit is crossed. Where measurements are
// noisy, the mean of many ladders is that scale.
func TestLadder(t *testing.T) {
	t.Parallel()
	walk := func(from float64, margin func(scale float64) float64) (float64, error) {
		l := ladder{at: from}
		for l.goesOn() {
			l.take(margin(l.at))
		}
		return l.carried()
	}
	sum := 0.0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		want, slope := math.Exp(2*r.Float64()), 1+5*r.Float64()
		from := want * math.Exp(2*r.Float64()-1)
		got, err := walk(from, func(scale float64) float64 { return slope * math.Log(scale/want) })
		if err != nil || math.Abs(math.Log(got/want)) > math.Log(stair) {
			t.Errorf("seed %d: %v, %v, want %v", seed, got, err, want)
		}
		got, err = walk(from, func(scale float64) float64 { return slope*math.Log(scale/want) + 0.2*r.NormFloat64() })
		if err != nil {
			t.Fatal(err)
		}
		sum += math.Log(got / want)
	}
	if math.Abs(sum/400) > 0.01 {
		t.Errorf("noisy ladders are off by %v", sum/400)
	}
	if _, err := walk(1, func(float64) float64 { return -1 }); err == nil {
		t.Error("a limit that is never missed has a scale")
	}
}

// The encoder is at 40 of 50 ms, and the ranker at 12 of 10 ms.
func TestLatenciesOf(t *testing.T) {
	t.Parallel()
	const report = `{"levels": [{"latency": {"p99": {"value": 0.04}}, "others": [{"model": "ranker", "latency": {"p99": {"value": 0.012}}}]}]}`
	if got, err := latenciesOf([]byte(report), traffics(2)); err != nil || !slices.Equal(got, []float64{0.04, 0.012}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, report := range []string{"", `{"levels": []}`, `{"levels": [{"latency": {}, "others": [{"latency": {}}]}]}`} {
		if _, err := latenciesOf([]byte(report), traffics(2)); err == nil {
			t.Errorf("%q has latencies", report)
		}
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	// The ensemble gains a factor of 2, and its stage alone one of 2.5.
	text := factors(onTriton, []string{ensemble, encoder}, [2][][]float64{{{50, 50, 50}, {60, 60, 60}}, {{100, 100, 100}, {150, 150, 150}}})
	if !strings.Contains(text, "| search | 50.0 | 100.0 | **2.000**") || !strings.Contains(text, "over that of encoder alone: **0.800**") {
		t.Error(text)
	}
	list := []contender{{name: "a"}, {name: "b"}}
	text = carriedTable(onTriton, list, [][]float64{{4, 4, 4}, {5, 5, 5}}, traffics(2), checked{3.9, []float64{0.049, 0.009}, []float64{0.041, 0.008}})
	if !strings.Contains(text, "| b | 5.000 | **0.800**") || !strings.Contains(text, "encoder p99 49.00 (41.00) ms of 50ms, ranker p99 9.00 (8.00) ms of 10ms.") {
		t.Error(text)
	}
}
