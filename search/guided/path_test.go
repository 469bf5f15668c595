package guided

import (
	"math"
	"sync"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/queuesim"
)

// Where a batch takes microseconds, what leads to the server is what ends the throughput, and what is predicted of it without that would be wrong by an
// order of magnitude. Most of 12 campaigns end within 3 % of the best all the same.
func TestFindsTheBestOfQuickModels(t *testing.T) {
	t.Parallel()
	const seeds = 12
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
		t.Logf("seed %d: regret %.3f within %v s, %d trials, path %.1f µs", seed, regret, limit, len(events), 1e6*g.path)
	}
	if good < seeds*3/4 {
		t.Errorf("%d of %d campaigns end within 3 %% of the best", good, seeds)
	}
}

// The next campaign on the same machine knows the path before its first trial, and one on another machine does not.
func TestPathOfAnEarlierCampaign(t *testing.T) {
	t.Parallel()
	m := typical(1, 10)
	m.quick, m.path = 1000, 30e-6
	first, events := m.run(t, 30)
	first.learnPath()
	for _, isSame := range []bool{true, false} {
		m.settings.Earlier = []search.Earlier{{From: "first", Same: isSame, Events: events}}
		g := New(m.settings, search.NewLedger(m.settings.Goal), m.settings.Space.Candidates())
		want := 0.0
		if isSame {
			want = first.path
		}
		if g.path != want || first.path == 0 {
			t.Errorf("same machine %t: the path takes %v s, then %v", isSame, g.path, first.path)
		}
		if g.Ask(); g.path != want {
			t.Errorf("same machine %t: after a decision the path takes %v s, then %v", isSame, g.path, first.path)
		}
	}
}

// A delay does nothing where there are always enough requests waiting, unless those in flight are on the path to the server.
func TestDelaysBeyondThePath(t *testing.T) {
	t.Parallel()
	for _, path := range []float64{0, 30e-6} {
		g := newSmall(t, nil)
		g.path = path
		p := g.pools[0]
		p.batchers = []batcher{{queue: queuesim.Batcher{Dynamic: true, MaxBatch: 4}}, {queue: queuesim.Batcher{Dynamic: true, MaxBatch: 4, Delay: time.Millisecond}}}
		waiting := float64(2 * 4 * p.instances)
		for at, level := range []float64{waiting, waiting + 1} {
			for i, b := range p.batchers {
				want := b.queue.Delay == 0 || at == 0 || path > 0
				if got := g.isUseful(cell{p, setting{i, level}}); got != want {
					t.Errorf("path %v s: at %v in flight a delay of %v is useful: %t, want %t", path, level, b.queue.Delay, got, want)
				}
			}
		}
	}
}

// A trial tells of the path what was used beyond the service times of its batches: here one of 2 takes 30 µs.
func TestPathOfTrials(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	window := func(engine, client time.Duration) measure.Window {
		return measure.Window{Duration: 100 * ms, Requests: 1000, EngineCPU: engine, ClientCPU: client,
			Server: measure.ServerStats{Requests: 1000, Inferences: 1000, Executions: 500, ComputeInfer: time.Hour}}
	}
	for _, tc := range []struct {
		name    string
		threads int
		windows []measure.Window
		want    float64 // s; 0: not told
	}{
		{"two windows", 2, []measure.Window{window(50*ms, 20*ms), window(30*ms, 20*ms)}, 30e-6},
		{"a device computes", 0, []measure.Window{window(50*ms, 20*ms)}, 70e-6},
		{"nearly all is computing", 2, []measure.Window{window(30*ms, 3*ms)}, 0},
		{"more was computed than used", 4, []measure.Window{window(30*ms, 20*ms)}, 0},
		{"the server is on another machine", 2, []measure.Window{window(0, 20*ms)}, 0},
		{"nothing was executed", 2, []measure.Window{{EngineCPU: ms, ClientCPU: ms}}, 0},
	} {
		p := &pool{threads: tc.threads, instances: 1, curve: queuesim.Curve{Sizes: []int{1, 2, 4}, Alone: []float64{20e-6, 30e-6, 50e-6}}}
		rate, path, ok := pathOf(p, measure.Measurement{Windows: tc.windows})
		if ok != (tc.want > 0) || ok && (rate != 10_000 || math.Abs(path/tc.want-1) > 1e-9) {
			t.Errorf("%s: %v at %v requests/s (%t), want %v", tc.name, path, rate, ok, tc.want)
		}
	}
}

// Threads that spin or switch add to what a trial uses: where two in three trials are disturbed, the path is what the others tell, and what trials with
// few requests use is no matter.
func TestPathIsOfUndisturbedTrials(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	p := g.pools[0]
	p.threads, p.batchers = 1, []batcher{}
	p.curve = queuesim.Curve{Sizes: []int{1, 2}, Alone: []float64{100e-6, 150e-6}}
	enter := func(requests int, path time.Duration) {
		w := measure.Window{Duration: time.Second, Requests: requests, EngineCPU: time.Duration(requests) * (100*time.Microsecond + path), ClientCPU: 1,
			Server: measure.ServerStats{Requests: requests, Inferences: requests, Executions: requests}}
		p.tracks = append(p.tracks, &track{measurement: measure.Measurement{Windows: []measure.Window{w}}})
	}
	for range 5 {
		enter(1000, 40*time.Microsecond)
		enter(1100, 70*time.Microsecond)
		enter(900, 90*time.Microsecond)
		enter(500, 20*time.Microsecond)
	}
	g.learnPath()
	if math.Abs(g.path/40e-6-1) > steps {
		t.Errorf("the path takes %.1f µs, want 40", 1e6*g.path)
	}
}
