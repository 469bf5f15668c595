package guided

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"tuner/search"
	"tuner/search/standings"
)

// widened returns the small space with further session entries, the given number of values each,
// and with the given numbers of batch sizes and delays. The machine has 20 pools for each
// combination.
func widened(batches, delays int, values ...int) search.Settings {
	s := small(0.05)
	knob := func(name string, n int, value func(int) search.Value) search.Knob {
		scope, _ := search.KnobScope(name)
		k := search.Knob{Name: name, Scope: scope}
		for i := range n {
			k.Values = append(k.Values, value(i))
		}
		return k
	}
	for i, n := range values {
		s.Space.Knobs = append(s.Space.Knobs, knob(fmt.Sprint("session.", string(rune('a'+i))), n, search.IntValue))
	}
	for i, k := range s.Space.Knobs {
		switch {
		case k.Name == search.KnobMaxBatchSize && batches > 0:
			s.Space.Knobs[i] = knob(k.Name, batches, func(i int) search.Value { return search.IntValue(i + 1) })
		case k.Name == search.KnobMaxQueueDelay && delays > 0:
			s.Space.Knobs[i] = knob(k.Name, delays, func(i int) search.Value { return search.DurationValue(time.Duration(100*i) * time.Microsecond) })
		}
	}
	return s
}

// The kinds of large spaces: 20 pools of the small space × the session entries, and batches ×
// delays in each.
func mixes() map[string]search.Settings {
	return map[string]search.Settings{
		"10⁵ candidates":       widened(0, 0, 8, 8, 7),       // 20·448 pools × 11
		"10⁷: 10⁵ pools × 10²": widened(0, 20, 8, 8, 8, 10),  // 20·5120 × 101
		"10⁷: 10³ pools × 10⁴": widened(100, 101, 7, 7),      // 20·49 × 9,999
		"10⁷: 10⁶ pools × 11":  widened(0, 0, 9, 9, 9, 9, 8), // 20·52,488: not counted
	}
}

func largeMachine(s search.Settings) machine {
	m := typical(1, 0.05)
	m.settings = s
	return m
}

// In a space of 10⁷ candidates the search makes progress like in a small one. Each step of the
// session entries makes the machine faster by 2 %, so the best is far from the default.
func TestLargeSpaces(t *testing.T) {
	t.Parallel()
	for name, s := range mixes() {
		if name == "10⁵ candidates" { // like any small space
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := largeMachine(s)
			m.settings.Budget = search.Budget{Trials: 60}
			g, events := m.run(t, 50)
			ranked := g.Ranked()
			if len(ranked) == 0 || !ranked[0].Point.Passes() {
				t.Fatalf("nothing passes after %d trials", len(events))
			}
			x, _, _ := m.truth(g, ranked[0].Candidate, ranked[0].Load)
			best := 0.0 // of the default within the limit
			for _, level := range g.surveyor.levels {
				if y, _, p99 := m.truth(g, search.Candidate{}, m.settings.Space.Load.At(level)); p99 <= 0.05 {
					best = max(best, y)
				}
			}
			t.Logf("%d pools, %.2f × the default after %d trials: %v", len(g.pools.All()), x/best, len(events), ranked[0].Candidate)
			if x < 2*best {
				t.Errorf("%v at %v has %.0f/s, the default %.0f/s", ranked[0].Candidate, ranked[0].Load, x, best)
			}
			all, _ := g.settings.Space.Candidates().Len()
			if st := g.statement(); st.Unseen == 0 || st.Unseen >= all || !strings.Contains(strings.Join(g.Notes(), ""), "never looked at") {
				t.Errorf("%d of %d candidates are said not to be looked at", st.Unseen, all)
			}
			replay(t, m, events)
		})
	}
}

// replay tells the first events to another search, as a resumed campaign does, and compares its
// actions.
func replay(t *testing.T, m machine, events []search.Event) {
	t.Helper()
	cut := len(events) - 5
	ledger := standings.NewLedger(m.settings.Goal)
	g := New(m.settings, ledger, m.settings.Space.Candidates())
	for _, e := range events[:cut] {
		if e.Trial.Phase != search.PhaseService {
			ledger.Add(e)
		}
		g.Tell(e)
	}
	if got, want := text(t, g.Ask().Trial), text(t, events[cut].Trial); got != want {
		t.Errorf("after %d events the replay asks for\n%s\nthe campaign asked for\n%s", cut, got, want)
	}
}

// A journal may contain trials of pools that this search would not have considered.
func TestLargeSpaceMeetsForeignTrials(t *testing.T) {
	t.Parallel()
	m := largeMachine(widened(0, 0, 9, 9, 9, 9, 8))
	ledger := standings.NewLedger(m.settings.Goal)
	g := New(m.settings, ledger, m.settings.Space.Candidates())
	far := search.NewCandidate(search.Setting{Knob: search.KnobPrecision, Value: "int8"}, search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"},
		search.Setting{Knob: search.KnobInstanceCount, Value: "2"}, search.Setting{Knob: search.KnobMaxBatchSize, Value: "8"}, search.Setting{Knob: search.KnobMaxQueueDelay, Value: "0us"})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		far = far.With("session."+name, "7")
	}
	if _, known := g.pools.ByKey(far.PoolKey()); known {
		t.Fatalf("%v is near the default", far)
	}
	e := m.answer(g, m.settings.Trial(far, 8, search.PhaseSearch), 1)
	ledger.Add(e)
	g.Tell(e)
	p, ok := g.pools.ByKey(far.PoolKey())
	if !ok || len(p.Histories()) != 1 || len(p.Engine().Pools()) != 4 {
		t.Fatalf("the pool of %v is %+v", far, p)
	}
	if beside := far.With("session.a", "6").PoolKey(); true {
		if _, known := g.pools.ByKey(beside); !known {
			t.Errorf("the search does not look beside the best: %s", beside)
		}
	}
}

// BenchmarkDecision makes one decision after 40 trials. It reports the memory of the search with
// its candidates.
func BenchmarkDecision(b *testing.B) {
	for name, s := range mixes() {
		b.Run(name, func(b *testing.B) {
			m := largeMachine(s)
			before := heap()
			ledger := standings.NewLedger(s.Goal)
			g := New(s, ledger, s.Space.Candidates())
			for i := range 40 {
				e := m.answer(g, g.Ask().Trial, i)
				if e.Trial.Phase != search.PhaseService {
					ledger.Add(e)
				}
				g.Tell(e)
			}
			b.ReportAllocs()
			for b.Loop() {
				g.next = nil
				g.Ask()
			}
			b.ReportMetric(float64(heap()-before)/1e6, "MB")
			n, _ := g.settings.Space.Candidates().Len()
			b.ReportMetric(float64(n), "candidates")
			b.ReportMetric(float64(len(g.pools.All())), "pools")
			runtime.KeepAlive(g)
		})
	}
}

// heap returns the live heap in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
