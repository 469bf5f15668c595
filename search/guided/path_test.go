package guided

import (
	"sync"
	"testing"

	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/standings"
)

// If a batch takes microseconds, the path to the server limits the throughput. A prediction without
// it would be wrong by an order of magnitude. Most of 6 campaigns still end within 3 % of the
// best.
func TestFindsTheBestOfQuickModels(t *testing.T) {
	t.Parallel()
	const seeds = 6
	good, simulated := 0, &sync.Map{}
	for seed := range uint64(seeds) {
		limit := []float64{0.0006, 10}[seed%2]
		m := typical(seed, limit)
		m.quick, m.path, m.simulated = 1000, 30e-6, simulated
		g, events := m.run(t, 120)
		regret := m.regret(t, g, limit)
		if regret <= 0.03 {
			good++
		}
		t.Logf("seed %d: regret %.3f within %v s, %d trials, path %.1f µs", seed, regret, limit, len(events), 1e6*g.predictor.Path())
	}
	if good < seeds*3/4 {
		t.Errorf("%d of %d campaigns end within 3 %% of the best", good, seeds)
	}
}

// The next campaign on the same machine knows the path before its first trial; one on another
// machine does not.
func TestPathOfAnEarlierCampaign(t *testing.T) {
	t.Parallel()
	m := typical(1, 10)
	m.quick, m.path = 1000, 30e-6
	first, events := m.run(t, 30)
	first.updatePath()
	for _, isSame := range []bool{true, false} {
		m.settings.Earlier = []search.Earlier{{From: "first", Same: isSame, Events: events}}
		g := New(m.settings, standings.NewLedger(m.settings.Goal), m.settings.Space.Candidates())
		want := 0.0
		if isSame {
			want = first.predictor.Path()
		}
		if g.predictor.Path() != want || first.predictor.Path() == 0 {
			t.Errorf("same machine %t: the path takes %v s, then %v", isSame, g.predictor.Path(), first.predictor.Path())
		}
		if g.Ask(); g.predictor.Path() != want {
			t.Errorf("same machine %t: after a decision the path takes %v s, then %v", isSame, g.predictor.Path(), first.predictor.Path())
		}
	}
}

// A delay has no effect if enough requests always wait, unless the requests in flight are on the
// path to the server.
func TestDelaysBeyondThePath(t *testing.T) {
	t.Parallel()
	for _, path := range []float64{0, 30e-6} {
		g := newSmall(t, nil)
		p := g.pools.All()[0]
		typical(1, 0.05).openWith(g, p)
		g.predictor.SetPath(path)
		waiting := float64(2 * 4 * p.Instances())
		for at, level := range []float64{waiting, waiting + 1} {
			for i, b := range p.Batchers() {
				if b.Queue.MaxBatch != 4 {
					continue
				}
				want := b.Queue.Delay == 0 || at == 0 || path > 0
				if got := g.surveyor.isUseful(pools.Cell{Pool: p, Setting: pools.Setting{Batcher: i, Level: level}}); got != want {
					t.Errorf("path %v s: at %v in flight a delay of %v is useful: %t, want %t", path, level, b.Queue.Delay, got, want)
				}
			}
		}
	}
}
