package verdict_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// If the default keeps the limits at no measured load, the headline names these loads as long as
// another one may keep the limits.
func TestDefaultMissesTheLimitsAsFarAsMeasured(t *testing.T) {
	t.Parallel()
	within := limit(measure.LatencyP99, 0.050)
	check := func(name, want string, constraints []search.Constraint, base func(b *beliefs)) {
		t.Helper()
		b := &beliefs{}
		base(b)
		b.add(candidate("instance_count", "2"), 16, 700, 0.040, 1e8, 0.01, 0.02)
		o := options(constraints...)
		o.Space.Load = search.LoadAxis{Levels: []float64{1, 2, 4, 8, 16, 32}, Any: true, BatchSize: 1}
		v := verdict.Decide(b, o)
		_, got, _ := strings.Cut(v.Headline(verdict.Words{Goal: o.Goal}), "the default")
		if v.State != verdict.Proven || got != want {
			t.Errorf("%s: %s, %q, want %q", name, v.State, got, want)
		}
	}
	p99 := []search.Constraint{within}
	check("lower loads are left", " does not keep at the measured loads, from concurrency 9 on.", p99, func(b *beliefs) {
		b.add(candidate(), 16, 160, 0.095, 1e8, 0.01, 0.02)
		b.add(candidate(), 9, 150, 0.0553, 1e8, 0.01, 0.02)
		b.add(candidate(), 12, 155, 0.070, 1e8, 0.01, 0.02)
	})
	check("the lowest load misses it", " does not keep.", p99, func(b *beliefs) {
		b.add(candidate(), 9, 150, 0.0753, 1e8, 0.01, 0.02)
		b.add(candidate(), 1, 100, 0.070, 1e8, 0.01, 0.02)
	})
	// ln(0.0506/0.050) = 0.0119 is 0.6 deviations: a probability of 27 %
	check("the lowest load hardly misses it", " probably does not keep.", p99, func(b *beliefs) {
		b.add(candidate(), 1, 100, 0.0506, 1e8, 0.01, 0.02)
	})
	check("the lowest load keeps it", "'s throughput [6.86, 7.14] within p99 ≤ 50 ms.", p99, func(b *beliefs) {
		b.add(candidate(), 9, 150, 0.0553, 1e8, 0.01, 0.02)
		b.add(candidate(), 1, 100, 0.020, 1e8, 0.001, 0.02)
	})
	least := 500.0
	rate := search.Constraint{Metric: measure.Throughput, Min: &least}
	check("higher loads are left", " does not keep at the measured loads, up to concurrency 8.", []search.Constraint{rate}, func(b *beliefs) {
		b.add(candidate(), 8, 300, 0.040, 1e8, 0.01, 0.02)
		b.add(candidate(), 4, 200, 0.030, 1e8, 0.01, 0.02)
	})
	check("loads between are left", " does not keep at the measured loads, up to concurrency 2 and from concurrency 9 on.",
		[]search.Constraint{within, rate}, func(b *beliefs) {
			b.add(candidate(), 2, 300, 0.010, 1e8, 0.01, 0.02)
			b.add(candidate(), 9, 600, 0.0553, 1e8, 0.01, 0.02)
		})
	check("none is left between", " does not keep.", []search.Constraint{within, rate}, func(b *beliefs) {
		b.add(candidate(), 2, 300, 0.010, 1e8, 0.01, 0.02)
		b.add(candidate(), 3, 600, 0.0653, 1e8, 0.01, 0.02)
	})
	check("no load cures it", " does not keep.", []search.Constraint{limit(measure.Memory, 1.5e8)}, func(b *beliefs) {
		b.add(candidate(), 8, 300, 0.040, 3e8, 0.01, 0.02)
	})
}

// There are loads to try if and only if the default is not likely to keep the limits at any measured
// load, and none of the measured ones lies among them.
func TestUnseenLoadsWereNotMeasured(t *testing.T) {
	t.Parallel()
	seen := 0
	for seed := range uint64(1000) {
		b, r := random(seed), rand.New(rand.NewPCG(seed, 11))
		o := options(limit(measure.LatencyP99, 0.010*(1+r.Float64())))
		o.Space.Load = search.LoadAxis{Levels: []float64{0.25, 0.5, 1, 2, 4, 8, 16}, BatchSize: 1}
		if r.IntN(2) == 0 {
			o.Space.Load.Levels = o.Space.Load.Levels[2:] // the lowest was measured
		}
		v := verdict.Decide(b, o)
		if v.Unseen == nil {
			continue
		}
		seen++
		for _, c := range v.Choices {
			if c.Candidate.IsDefault() && (c.Holds >= verdict.Likely || v.Unseen.Has(c.Load.Level())) {
				t.Errorf("seed %d: %v is measured with %.2f, and %+v is unseen", seed, c.Load, c.Holds, v.Unseen)
			}
		}
		if o.Space.Load.Levels[0] == 1 {
			t.Errorf("seed %d: the lowest load misses the limit, and %+v is unseen", seed, v.Unseen)
		}
	}
	if seen < 50 {
		t.Errorf("only %d campaigns have unseen loads: the test says little", seen)
	}
}
