package guided

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/queuesim"
)

func newSmall(t *testing.T, change func(*search.Settings)) *Guided {
	t.Helper()
	s := small(0.05)
	if change != nil {
		change(&s)
	}
	return New(s, search.NewLedger(s.Goal), s.Space.Candidates())
}

// Of precision × threads there are 6 engines; 4 instances of 4 threads, and 3, are more than twice the 4 cores, so 4 × 4 + 2 × 2 pools
// remain.
func TestGroup(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	if len(g.engines) != 6 || len(g.pools) != 20 {
		t.Errorf("%d engines and %d pools, want 6 and 20", len(g.engines), len(g.pools))
	}
	members := 0
	for _, e := range g.engines {
		if !slices.IsSortedFunc(e.pools, func(a, b *pool) int { return a.instances - b.instances }) {
			t.Errorf("the pools of %v are not in the order of their instances", e.values)
		}
		for _, p := range e.pools {
			g.fill(p)
			members += len(p.members)
			if p.maxBatch != 32 {
				t.Errorf("%s has a largest batch of %d, want 32", p.key, p.maxBatch)
			}
		}
	}
	if candidates := g.settings.Space.Candidates().All(); members != len(candidates) {
		t.Errorf("%d of %d candidates are in pools", members, len(candidates))
	}
	want := "precision=fp32 intra_op_threads=4 instance_count=2 max_batch_size=4 max_queue_delay=0us"
	if g.twin.Key() != want {
		t.Errorf("the default is the same as %q, want %q", g.twin.Key(), want)
	}
	if p := g.byKey["default"]; p == nil || p.instances != 2 || p.threads != 4 {
		t.Errorf("the default's pool is %+v", p)
	}
}

func TestDefaultJoinsItsPool(t *testing.T) {
	t.Parallel()
	g := newSmall(t, func(s *search.Settings) { s.Space.Facts.Base[search.KnobMaxBatchSize] = "5" })
	p := g.byKey["default"]
	if p != nil {
		g.fill(p)
	}
	if p == nil || !slices.ContainsFunc(p.members, search.Candidate.IsDefault) || !g.twin.IsDefault() {
		t.Errorf("a default with a batch of its own is not in the pool that is its process: %+v", p)
	}
	g = newSmall(t, func(s *search.Settings) { s.Space.Facts.Base[search.KnobIntraOpThreads] = "3" })
	if p := g.byKey["default"]; p != nil {
		t.Errorf("a default with threads of its own is taken for pool %s", p.key)
	}
}

func TestServiceTimesOfWindows(t *testing.T) {
	t.Parallel()
	latency := histogram(100, 0.012, 0.012)
	w := measure.Window{Sub: []measure.SubWindow{{Requests: 100, Latency: latency}}, Server: measure.ServerStats{
		Requests: 100, Inferences: 400, Executions: 98,
		Queue: 100 * time.Millisecond, ComputeInput: 50 * time.Millisecond, ComputeOutput: 50 * time.Millisecond, ComputeInfer: time.Second,
		Batches: []measure.BatchStat{{Size: 4, Executions: 96, ComputeInfer: 768 * time.Millisecond}, {Size: 8, Executions: 2, ComputeInfer: 32 * time.Millisecond}},
	}}
	// 768 ms / 96 = 8 ms for a batch of 4, and 0.5 ms each of input and output; 12 − 9 − 1 of queue = 2 ms elsewhere.
	seconds, _, overhead, ok := serviceTime(w, 4)
	if !ok || math.Abs(seconds-0.009) > 1e-9 || math.Abs(overhead-0.002) > 2e-5 {
		t.Errorf("a batch takes %v s and %v s elsewhere (%v), want 0.009 and 0.002", seconds, overhead, ok)
	}
	w.Server = measure.ServerStats{}
	if seconds, _, overhead, _ = serviceTime(w, 4); math.Abs(seconds-0.012) > 2e-5 || overhead != 0 {
		t.Errorf("without the server's statistics a batch takes %v s and %v s elsewhere, want 0.012 and 0", seconds, overhead)
	}
	if _, _, _, ok = serviceTime(measure.Window{}, 4); ok {
		t.Error("an empty window tells a time")
	}
}

func TestSuspects(t *testing.T) {
	t.Parallel()
	check := func(times []float64, want []int) {
		t.Helper()
		s := service{sizes: []int{1, 2, 4, 8}, times: times}
		if diff := cmp.Diff(want, s.suspects()); diff != "" {
			t.Errorf("of the times %v (-want +got):\n%s", times, diff)
		}
	}
	check([]float64{1, 2, 4, 8}, nil)
	check([]float64{1, 1, 1, 1}, nil)
	check([]float64{1, 1.2, 4, 4.1}, []int{2, 4}) // more than twice as long
	check([]float64{1, 2, 1.5, 3}, []int{2, 4})   // shorter
}

func TestRepeatedServiceTimesKeepTheShorter(t *testing.T) {
	t.Parallel()
	event := func(sizes []int, seconds ...float64) search.Event {
		e := search.Event{Trial: search.Trial{Sizes: sizes}}
		for i, s := range seconds {
			e.Measurement.Windows = append(e.Measurement.Windows, serviceWindowOf(sizes[i], s))
		}
		return e
	}
	var s service
	s.enter(event([]int{1, 2, 4}, 0.001, 0.009, 0.003))
	s.enter(event([]int{2, 4}, 0.002, 0.004))
	if diff := cmp.Diff([]float64{0.001, 0.002, 0.003}, s.times); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	check := func(client, most int, want ...int) {
		t.Helper()
		g := &Guided{settings: search.Settings{Space: search.Space{Load: search.LoadAxis{BatchSize: client}}}}
		if diff := cmp.Diff(want, g.sizes(most)); diff != "" {
			t.Errorf("of client batches of %d up to %d (-want +got):\n%s", client, most, diff)
		}
	}
	check(1, 1, 1)
	check(1, 8, 1, 2, 4, 8)
	check(1, 12, 1, 2, 4, 8, 12)
	check(4, 32, 4, 8, 16, 32)
	check(3, 8, 3, 6, 8)
}

// A pool whose service times are known is bounded by its outline: no simulated cell does more, or waits less, but for chance.
func TestOutlineBoundsTheSimulation(t *testing.T) {
	t.Parallel()
	g := newSmall(t, func(s *search.Settings) {
		s.Goal.Constraints = append(s.Goal.Constraints, search.Constraint{Metric: measure.LatencyAvg, Max: new(float64)})
	})
	m := typical(1, 0.05)
	logs := make([]float64, len(g.models)) // throughput, p99, mean
	for _, e := range g.engines[:3] {
		for _, p := range e.pools {
			p.curve = m.curve(g, p.settings)
			p.outline = g.measuredOutline(p)
			for _, batch := range []int{1, 8, 32} {
				for _, level := range []float64{1, 3, 16, 64} {
					b := queuesim.Batcher{Instances: p.instances, MaxBatch: batch, Dynamic: batch > 1}
					r := queuesim.Simulate(b, p.curve, g.settings.Space.Load.At(level), queuesim.Options{})
					g.atBest(p.outline, p.outline.upTo(batch), level, logs)
					if most := math.Exp(logs[0]); r.Throughput > 1.03*most {
						t.Errorf("%s, batch %d at %v: %.1f/s, above the bound of %.1f", p.key, batch, level, r.Throughput, most)
					}
					if least := math.Exp(logs[2]); r.Mean < least/1.03 {
						t.Errorf("%s, batch %d at %v: waits %.5f s, below the bound of %.5f", p.key, batch, level, r.Mean, least)
					}
				}
			}
		}
	}
}

// The bound of a pool of which one instance is known holds for what the machine really does with it.
func TestExpectedOutlineBoundsTheMeasuredOne(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	m := typical(1, 0.05)
	for _, e := range g.engines {
		alone := m.curve(g, e.pools[0].settings)
		for _, p := range e.pools {
			p.curve = m.curve(g, p.settings)
			expected, measured := g.expectedOutline(p, alone), g.measuredOutline(p)
			for i := range expected.most {
				if measured.most[i] > 1.001*expected.most[i] {
					t.Errorf("%s: batches of %d reach %.1f/s, above the bound of %.1f", p.key, expected.sizes[i], measured.most[i], expected.most[i])
				}
			}
		}
	}
}

// Effects of knobs multiply on the machine, so that after one engine for each value the others are known.
func TestForecastsOfAnAdditiveModel(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	m := typical(1, 0.05)
	for {
		e := g.unexplored(g.experience())
		if e == nil {
			break
		}
		c := m.curve(g, e.pools[0].settings)
		e.alone = service{sizes: c.Sizes, times: c.Alone, spreads: []float64{0.05}}
	}
	g.foresee()
	open := 0
	for _, e := range g.engines {
		if e.isOpen() {
			open++
			continue
		}
		f, want := g.forecasts[e.index], m.curve(g, e.pools[0].settings)
		for i, s := range f.curve.Alone {
			if ratio := s / want.Alone[i]; math.Abs(ratio-1) > 0.05 {
				t.Errorf("engine %v: a batch of %d is expected to take %.5f s, it takes %.5f", e.values, f.curve.Sizes[i], s, want.Alone[i])
			}
		}
		if f.deviation > 0.5 || f.deviation < ownSD {
			t.Errorf("engine %v: the deviation is %.2f", e.values, f.deviation)
		}
	}
	if open != 4 { // the default's, one with another precision, two with other threads
		t.Errorf("%d engines show the effects, want 4", open)
	}
}

func TestValuesThatAlwaysFailAreGivenUp(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	failed := 0
	for _, e := range g.engines {
		if e.values[0] == "int8" && failed < hopeless {
			failed++
			for _, p := range e.pools {
				p.failure = "no"
			}
		}
	}
	known := g.experience()
	for _, e := range g.engines {
		if got := isHopeless(e, known); got != (e.values[0] == "int8") {
			t.Errorf("engine %v is hopeless: %v", e.values, got)
		}
	}
}

// Where batches of more than eight hang, their sizes are out, and what smaller ones take is known: none is asked for again.
func TestLargeBatchesThatFailAreOut(t *testing.T) {
	t.Parallel()
	m := typical(2, 0.05)
	m.most = 8
	g, events := m.run(t, 400)
	failed := 0
	for _, e := range events {
		if e.Measurement.Failure != nil {
			failed++
		}
	}
	if failed > len(g.engines)+2 { // once in each, and by the default's finding its load
		t.Errorf("%d of %d trials failed", failed, len(events))
	}
	best := g.Ranked()[0]
	if batch := g.queue(best.Candidate).MaxBatch; !best.Point.Passes() || batch > 8 || len(best.Measurement.Windows) == 0 {
		t.Errorf("best is %v, which passes: %t, after %d trials", best.Candidate, best.Point.Passes(), len(events))
	}
}

// A value that was not tried is tried with what works, though an engine that always fails is nearer to the default's.
func TestUnexploredIsNotHopeless(t *testing.T) {
	t.Parallel()
	g := newSmall(t, func(s *search.Settings) {
		s.Space.Knobs[1].Values = []search.Value{"1", "2", "3", "4"}
		s.Space.Facts.Base[search.KnobPrecision] = "int8"
	})
	for _, e := range g.engines {
		switch precision, threads := e.values[0], e.values[1]; {
		case precision == "int8" && threads != "3":
			for _, p := range e.pools {
				p.failure = "no"
			}
		case precision == "fp32" && threads == "4":
			e.alone.enter(search.Event{Trial: search.Trial{Sizes: []int{1}}, Measurement: measure.Measurement{Windows: []measure.Window{serviceWindowOf(1, 0.01)}}})
		}
	}
	if e := g.unexplored(g.experience()); e == nil || !slices.Equal(e.values, []search.Value{"fp32", "3"}) {
		t.Errorf("next is %+v, want fp32 with 3 threads", e)
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	axis := search.LoadAxis{Levels: []float64{1, 4, 40}, Any: true}
	want := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 21, 24, 28, 32, 37, 40}
	if diff := cmp.Diff(want, levels(axis)); diff != "" {
		t.Errorf("any level (-want +got):\n%s", diff)
	}
	axis.Any = false
	if diff := cmp.Diff([]float64{1, 4, 40}, levels(axis)); diff != "" {
		t.Errorf("fixed levels (-want +got):\n%s", diff)
	}
}

// Sizes that were left out, and one that had no luck, are not refused: no larger batch is out for them.
func TestRefusedSizes(t *testing.T) {
	t.Parallel()
	failure := &measure.Failure{Stage: measure.StageHang, Reason: "no answer"}
	for name, c := range map[string]struct {
		requests []int
		failure  *measure.Failure
		want     int // 0: none
	}{
		"all answered":            {[]int{9, 9, 9, 9}, nil, 0},
		"broke off":               {[]int{9, 9}, failure, 4},
		"broke off at the first":  {nil, failure, 1},
		"left out":                {[]int{9, 9}, nil, 0},
		"the largest got none":    {[]int{9, 9, 9, 0}, nil, 8},
		"one was unlucky":         {[]int{0, 9, 9, 9}, nil, 0},
		"unlucky, and left out":   {[]int{9, 0}, nil, 2},
		"the largest two refused": {[]int{9, 0, 9, 0}, nil, 8},
	} {
		e := search.Event{Trial: search.Trial{Sizes: []int{1, 2, 4, 8}}, Measurement: measure.Measurement{Failure: c.failure}}
		for _, n := range c.requests {
			e.Measurement.Windows = append(e.Measurement.Windows, measure.Window{Requests: n})
		}
		size, found := refused(e)
		if size != c.want || found != (c.want > 0) {
			t.Errorf("%s: %d, %v, want %d", name, size, found, c.want)
		}
	}
}

// A service trial whose smallest size got no answer, while larger ones did, leaves a search that goes on.
func TestUnluckyServiceWindow(t *testing.T) {
	t.Parallel()
	m := typical(1, 0.05)
	g := New(m.settings, search.NewLedger(m.settings.Goal), m.settings.Space.Candidates())
	next := g.Ask()
	for next.Trial.Phase != search.PhaseService {
		g.Tell(m.answer(g, next.Trial, 0))
		next = g.Ask()
	}
	e := m.answer(g, next.Trial, 1)
	e.Measurement.Windows[0] = measure.Window{Duration: 200 * time.Millisecond}
	g.Tell(e)
	if next := g.Ask(); next.Stop {
		t.Errorf("the search is over: %s", next.Why)
	}
}

// Windows in which nothing ended, as at a low rate by chance, tell nothing, and rule out nothing else.
func TestEmptyWindows(t *testing.T) {
	t.Parallel()
	m := typical(1, 0.05)
	g, events := m.run(t, 20)
	i := slices.IndexFunc(events, func(e search.Event) bool { return e.Trial.Phase == search.PhaseSearch })
	e := events[i]
	p, _ := g.poolOf(e.Trial.Candidate)
	at, _ := p.find(e.Trial.Candidate.Key())
	e.Trial.Load, e.Measurement = measure.Load{Concurrency: 1, BatchSize: 1}, measure.Measurement{Windows: []measure.Window{{Duration: time.Second}}}
	g.Tell(e)
	if !p.isDead(setting{at, 1}) || p.isDead(setting{at, 2}) {
		t.Errorf("out at level 1: %v, want true; at level 2: %v, want false", p.isDead(setting{at, 1}), p.isDead(setting{at, 2}))
	}
}

// Only what joins requests in the same way, or has none to join, is the same as a larger batch at a load that fits into it.
func TestBelowIsAlike(t *testing.T) {
	t.Parallel()
	p := &pool{}
	for _, q := range []queuesim.Batcher{{MaxBatch: 1}, {MaxBatch: 8}, {MaxBatch: 16, Dynamic: true}, {MaxBatch: 32, Dynamic: true}} {
		p.batchers = append(p.batchers, batcher{queue: q})
	}
	for i, want := range []int{0, 1, 1, 16} {
		if got := p.below(p.batchers[i].queue); got != want {
			t.Errorf("below %+v is %d, want %d", p.batchers[i].queue, got, want)
		}
	}
}

// A service trial that left out what takes too long rules out nothing: larger batches serve at loads where they are small, and the best is found.
func TestLongBatchesAreLeftOut(t *testing.T) {
	t.Parallel()
	const limit = 1
	m := typical(1, limit)
	m.slower = math.Log(50) // one inference takes 0.3 s
	m.settings.Budget.Time = 5 * time.Minute
	g, events := m.run(t, 200)
	isCut := func(e search.Event) bool {
		return e.Trial.Phase == search.PhaseService && len(e.Measurement.Windows) < len(e.Trial.Sizes)
	}
	if !slices.ContainsFunc(events, isCut) {
		t.Error("no service trial was cut")
	}
	for _, p := range g.pools {
		for i := range p.batchers {
			if p.isDead(setting{i, 1}) {
				t.Errorf("%v is out at one request in flight", p.batchers[i].candidate)
			}
		}
	}
	if regret := m.regret(t, g, limit); regret > 0.05 {
		t.Errorf("the answer misses %.3f of the best", regret)
	}
}
