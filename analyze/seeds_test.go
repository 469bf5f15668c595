package analyze_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// figure is a row of a table: infer/s and a latency percentile in µs at a concurrency.
type figure struct {
	concurrency int
	throughput  float64
	latency     int
}

// given adds trials with the figures of a table.
func given(b *analyzetest.Builder, c search.Candidate, table ...figure) {
	for _, f := range table {
		for range 3 { // a single trial is drawn towards its neighbours, since it may share their error
			b.Given(c, f.concurrency, f.throughput, time.Duration(f.latency)*time.Microsecond)
		}
	}
}

// unlimited returns the usual profile without constraints.
func unlimited() string {
	return strings.Replace(analyzetest.Profile, "constraints: {latency_p99: {max: 50ms}}\n", "", 1)
}

// These are the figures of Triton's optimization guide for inception_graphdef on one GPU. With p95
// ≤ 50 ms, dynamic batching with one instance is the best. Without a limit, two instances are.
// "Batch 1" means no dynamic batching.
func TestOptimizationGuide(t *testing.T) {
	t.Parallel()
	b := analyzetest.New(t, unlimited())
	batching, two, both := analyzetest.Candidate(1, 1, 8), analyzetest.Candidate(2, 1, 1), analyzetest.Candidate(2, 1, 8)
	given(b, search.Candidate{}, figure{1, 62.6, 21371}, figure{2, 73.2, 34381}, figure{3, 73.2, 50298}, figure{4, 73.4, 65569})
	given(b, batching, figure{1, 66.8, 19785}, figure{2, 80.8, 30732}, figure{3, 118, 32968}, figure{4, 165.2, 32974}, figure{5, 194.4, 33035},
		figure{6, 217.6, 34258}, figure{7, 249.8, 34522}, figure{8, 272, 35988})
	given(b, two, figure{1, 70.6, 19547}, figure{2, 106.6, 23532}, figure{3, 110.2, 36649}, figure{4, 108.6, 43588})
	given(b, both, figure{16, 289.6, 59817})
	limit := 0.050
	within := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP95, Max: &limit}}}
	check := func(name string, o analyze.Options, want search.Candidate, concurrency int, gain float64) {
		t.Helper()
		best, ok := mustAnalyze(t, b, o).Winner()
		if !ok || best.Candidate.Key() != want.Key() || best.Best.Load.Concurrency != concurrency {
			t.Fatalf("%s: the best is %s (%v), want %v at concurrency %d", name, best.Name, best.Candidate, want, concurrency)
		}
		if math.Abs(best.Gain.Value/gain-1) > 0.005 {
			t.Errorf("%s: the gain is %.3f, want %.3f", name, best.Gain.Value, gain)
		}
	}
	// the default keeps the limit up to concurrency 2
	check("p95 ≤ 50 ms", analyze.Options{Goal: &within}, batching, 8, 272/73.2)
	check("without a limit", analyze.Options{}, both, 16, 289.6/73.4)
	check("at a given load", analyze.Options{At: spec.At{Load: measure.Load{Concurrency: 2}}}, two, 2, 106.6/73.2)
}

// tutorial is the sweep of the tutorial of OLive and Model Analyzer: 5 preferred batch sizes × 5
// numbers of instances × 8 concurrencies.
//
// The device follows a law under which two instances with batches of 16 are best. A batch of b
// takes 6 ms + 1.5 ms · b. k instances do 1, 1.2, 1.15, 1.1, 1.05 times the throughput of one. The
// model without optimization does 50 infer/s at every load.
func tutorial(t *testing.T) *analyzetest.Builder {
	b := analyzetest.New(t, unlimited())
	concurrencies := []int{1, 2, 4, 8, 16, 32, 64, 128}
	for _, n := range concurrencies {
		b.Given(search.Candidate{}, n, 50, time.Duration(n)*20*time.Millisecond)
	}
	speedup := []float64{0, 1, 1.2, 1.15, 1.1, 1.05}
	for instances := 1; instances <= 5; instances++ {
		for _, preferred := range []int{1, 2, 4, 8, 16} {
			for _, n := range concurrencies {
				batch := min(float64(preferred), max(1, float64(n)/float64(instances)))
				busy := min(instances, n)
				throughput := speedup[busy] * batch / (0.006 + 0.0015*batch)
				b.Given(analyzetest.Candidate(instances, 1, preferred), n, throughput, time.Duration(float64(n)/throughput*float64(time.Second)))
			}
		}
	}
	return b
}

func TestTutorial(t *testing.T) {
	t.Parallel()
	chosen := analyzetest.Candidate(2, 1, 16)
	r := mustAnalyze(t, tutorial(t), analyze.Options{Rank: spec.RankTop3Mean})
	best, ok := r.Winner()
	if !ok || best.Candidate.Key() != chosen.Key() || len(r.Configs) != 26 {
		t.Fatalf("the best of %d is %v, want %v of 26", len(r.Configs), best.Candidate, chosen)
	}
	// Batches of 16 take 30 ms: 1.2 · 16 / 0.030 = 640 at concurrency 32, 64 and 128. One instance
	// does 533.3, the default 50. Figures of single trials are drawn slightly towards those of
	// similar configurations.
	if mean := math.Exp(best.Score.Value); math.Abs(mean-640) > 0.01*640 {
		t.Errorf("the mean of the three best is %.2f, want 640", mean)
	}
	if math.Abs(best.Gain.Value-640.0/50) > 0.05*640/50 {
		t.Errorf("the gain over the default is %.2f, want 12.8", best.Gain.Value)
	}
	for _, c := range r.Configs {
		if c.Candidate.Key() == analyzetest.Candidate(1, 1, 16).Key() && math.Abs(math.Exp(best.Score.Value-c.Score.Value)-1.2) > 0.02 {
			t.Errorf("two instances are %.4f × one, want 1.2", math.Exp(best.Score.Value-c.Score.Value))
		}
	}
}

// One lucky figure makes a configuration the best by its best load, but not by the mean of three.
func TestTopMeanIsNotImpressedByOneFigure(t *testing.T) {
	t.Parallel()
	lucky := analyzetest.Candidate(2, 2, 8)
	few := analyzetest.Candidate(1, 2, 16)
	b := tutorial(t)
	for n, throughput := range map[int]float64{32: 500, 64: 900, 128: 500} { // their mean is 633
		b.Given(lucky, n, throughput, 100*time.Millisecond)
	}
	b.Given(few, 64, 2000, 50*time.Millisecond).Given(few, 128, 2000, 50*time.Millisecond)
	if best, _ := mustAnalyze(t, b, analyze.Options{}).Winner(); best.Candidate.Key() != few.Key() {
		t.Errorf("by the best load %v is the best, want %v", best.Candidate, few)
	}
	r := mustAnalyze(t, b, analyze.Options{Rank: spec.RankTop3Mean})
	if best, _ := r.Winner(); best.Candidate.Key() != analyzetest.Candidate(2, 1, 16).Key() {
		t.Errorf("by the mean of three %v is the best", best.Candidate)
	}
	if second := r.Configs[1]; second.Candidate.Key() != lucky.Key() || math.Abs(math.Exp(second.Score.Value)-1900.0/3) > 0.05*1900/3 {
		t.Errorf("the second is %v with a mean of %.1f, want %v with 633.3", second.Candidate, math.Exp(second.Score.Value), lucky)
	}
	// Two loads have no mean of three. Such a configuration comes last, without a gain.
	last := r.Configs[len(r.Configs)-1]
	if last.Candidate.Key() != few.Key() || last.Gain != nil || !math.IsInf(last.Score.Value, -1) {
		t.Errorf("the last is %v (score %v, gain %v), want %v", last.Candidate, last.Score, last.Gain, few)
	}
}
