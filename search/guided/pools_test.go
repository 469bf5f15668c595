package guided

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/guided/predict"
	"tuner/search/guided/service"
	"tuner/search/guided/tuning"
	"tuner/search/queuesim"
	"tuner/search/standings"
)

func newSmall(t *testing.T, change func(*search.Settings)) *Guided {
	t.Helper()
	s := small(0.05)
	if change != nil {
		change(&s)
	}
	return New(s, standings.NewLedger(s.Goal), s.Space.Candidates())
}

// Precision × threads gives 6 engines. 4 instances of 4 threads, and 3, exceed twice the 4 cores,
// so 4 × 4 + 2 × 2 pools remain.
func TestGroup(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	if len(g.pools.Engines()) != 6 || len(g.pools.All()) != 20 {
		t.Errorf("%d engines and %d pools, want 6 and 20", len(g.pools.Engines()), len(g.pools.All()))
	}
	members := 0
	for _, e := range g.pools.Engines() {
		if !slices.IsSortedFunc(e.Pools(), func(a, b *pools.Pool) int { return a.Instances() - b.Instances() }) {
			t.Errorf("the pools of %v are not in the order of their instances", e.Values())
		}
		for _, p := range e.Pools() {
			g.pools.Fill(p)
			members += len(p.Members())
			if p.MaxBatch() != 32 {
				t.Errorf("%s has a largest batch of %d, want 32", p.Key(), p.MaxBatch())
			}
		}
	}
	if candidates := g.settings.Space.Candidates().All(); members != len(candidates) {
		t.Errorf("%d of %d candidates are in pools", members, len(candidates))
	}
	want := "precision=fp32 intra_op_threads=4 instance_count=2 max_batch_size=4 max_queue_delay=0us"
	if g.pools.InPool(search.Candidate{}).Key() != want {
		t.Errorf("the default is the same as %q, want %q", g.pools.InPool(search.Candidate{}).Key(), want)
	}
	if p, ok := g.pools.Default(); !ok || p.Instances() != 2 || p.Threads() != 4 {
		t.Errorf("the default's pool is %+v", p)
	}
}

func TestDefaultJoinsItsPool(t *testing.T) {
	t.Parallel()
	g := newSmall(t, func(s *search.Settings) { s.Space.Facts.Base[search.KnobMaxBatchSize] = "5" })
	p, ok := g.pools.Default()
	if ok {
		g.pools.Fill(p)
	}
	if !ok || !slices.ContainsFunc(p.Members(), search.Candidate.IsDefault) || !g.pools.InPool(search.Candidate{}).IsDefault() {
		t.Errorf("a default with a batch of its own is not in the pool that is its process: %+v", p)
	}
	g = newSmall(t, func(s *search.Settings) { s.Space.Facts.Base[search.KnobIntraOpThreads] = "3" })
	if p, ok := g.pools.Default(); ok {
		t.Errorf("a default with threads of its own is taken for pool %s", p.Key())
	}
}

// openWith makes a pool ready with the machine's service times.
func (m machine) openWith(g *Guided, p *pools.Pool) {
	c := m.curve(g, p.Settings())
	*p.Engine().Alone() = service.New(c.Sizes, m.curve(g, p.Engine().Pools()[0].Settings()).Alone, []float64{c.Spread}, 1)
	if p.Instances() > 1 {
		*p.Together() = service.New(c.Sizes, c.Crowded, []float64{c.Spread}, 1)
	}
	g.predictor.Refresh(p)
}

// The outline of a pool with known service times bounds its cells. No simulated cell has a higher
// throughput or a shorter wait, apart from random errors.
func TestOutlineBoundsTheSimulation(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	m := typical(1, 0.05)
	for _, e := range g.pools.Engines()[:3] {
		for _, p := range e.Pools() {
			m.openWith(g, p)
			curve, o := g.predictor.Curve(p), g.predictor.Outline(p)
			for _, batch := range []int{1, 8, 32} {
				for _, level := range []float64{1, 3, 16, 64} {
					b := queuesim.Batcher{Instances: p.Instances(), MaxBatch: batch, Dynamic: batch > 1}
					r := queuesim.Simulate(b, curve, g.settings.Space.Load.At(level), queuesim.Options{})
					bound := g.predictor.Bound(o, o.UpTo(batch), level)
					if r.Throughput > 1.03*bound.Throughput {
						t.Errorf("%s, batch %d at %v: %.1f/s, above the bound of %.1f", p.Key(), batch, level, r.Throughput, bound.Throughput)
					}
					if r.Mean < bound.Wait/1.03 {
						t.Errorf("%s, batch %d at %v: waits %.5f s, below the bound of %.5f", p.Key(), batch, level, r.Mean, bound.Wait)
					}
				}
			}
		}
	}
}

// The bound of a pool for which one instance is known holds for its real figures on the machine.
func TestExpectedOutlineBoundsTheMeasuredOne(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	m := typical(1, 0.05)
	for _, e := range g.pools.Engines() {
		alone := m.curve(g, e.Pools()[0].Settings())
		expected := map[*pools.Pool]predict.Outline{}
		for _, p := range e.Pools() {
			expected[p] = g.predictor.ExpectedOutline(p, alone)
		}
		for _, p := range e.Pools() {
			m.openWith(g, p)
			bound, measured := expected[p], g.predictor.Outline(p)
			for i := range bound.Most {
				if measured.Most[i] > 1.001*bound.Most[i] {
					t.Errorf("%s: batches of %d reach %.1f/s, above the bound of %.1f", p.Key(), bound.Sizes[i], measured.Most[i], bound.Most[i])
				}
			}
		}
	}
}

// Effects of knobs multiply on the machine, so after one engine for each value the others are
// known.
func TestForecastsOfAnAdditiveModel(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	m := typical(1, 0.05)
	for {
		e := g.pools.Unexplored(g.pools.Experience())
		if e == nil {
			break
		}
		c := m.curve(g, e.Pools()[0].Settings())
		*e.Alone() = service.New(c.Sizes, c.Alone, []float64{0.05}, 1)
	}
	g.predictor.ForecastEngines()
	open := 0
	for _, e := range g.pools.Engines() {
		if e.IsOpen() {
			open++
			continue
		}
		want := m.curve(g, e.Pools()[0].Settings())
		f, _ := g.predictor.Forecast(e)
		for i, s := range f.Curve.Alone {
			if ratio := s / want.Alone[i]; math.Abs(ratio-1) > 0.05 {
				t.Errorf("engine %v: a batch of %d is expected to take %.5f s, it takes %.5f", e.Values(), f.Curve.Sizes[i], s, want.Alone[i])
			}
		}
		if f.Deviation > 0.5 || f.Deviation < math.Sqrt(tuning.Default().Engines.Rest) {
			t.Errorf("engine %v: the deviation is %.2f", e.Values(), f.Deviation)
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
	for _, e := range g.pools.Engines() {
		if e.Values()[0] == "int8" && failed < tuning.Default().Engines.Hopeless {
			failed++
			for _, p := range e.Pools() {
				p.Fail("no")
			}
		}
	}
	known := g.pools.Experience()
	for _, e := range g.pools.Engines() {
		if got := known.IsHopeless(e); got != (e.Values()[0] == "int8") {
			t.Errorf("engine %v is hopeless: %v", e.Values(), got)
		}
	}
}

// If batches of more than eight hang, their sizes are out. The times of smaller ones are known, so
// none is requested again.
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
	if failed > len(g.pools.Engines())+2 { // once in each, and by the search for the default's load
		t.Errorf("%d of %d trials failed", failed, len(events))
	}
	best := g.Ranked()[0]
	if batch := g.pools.Queue(best.Candidate).MaxBatch; !best.Point.Passes() || batch > 8 || len(best.Measurement.Windows) == 0 {
		t.Errorf("best is %v, which passes: %t, after %d trials", best.Candidate, best.Point.Passes(), len(events))
	}
}

// An untried value is tried with working ones, although an engine that always fails is nearer to
// the default's.
func TestUnexploredIsNotHopeless(t *testing.T) {
	t.Parallel()
	g := newSmall(t, func(s *search.Settings) {
		s.Space.Knobs[1].Values = []search.Value{"1", "2", "3", "4"}
		s.Space.Facts.Base[search.KnobPrecision] = "int8"
	})
	for _, e := range g.pools.Engines() {
		switch precision, threads := e.Values()[0], e.Values()[1]; {
		case precision == "int8" && threads != "3":
			for _, p := range e.Pools() {
				p.Fail("no")
			}
		case precision == "fp32" && threads == "4":
			e.Alone().Record(search.Event{Trial: search.Trial{Sizes: []int{1}}, Measurement: measure.Measurement{Windows: []measure.Window{serviceWindowOf(1, 0.01)}}})
		}
	}
	if e := g.pools.Unexplored(g.pools.Experience()); e == nil || !slices.Equal(e.Values(), []search.Value{"fp32", "3"}) {
		t.Errorf("next is %+v, want fp32 with 3 threads", e)
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	axis := search.LoadAxis{Levels: []float64{1, 4, 40}, Any: true}
	want := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 21, 24, 28, 32, 37, 40}
	if diff := cmp.Diff(want, levels(axis, tuning.Default().Loads.Ratio)); diff != "" {
		t.Errorf("any level (-want +got):\n%s", diff)
	}
	axis.Any = false
	if diff := cmp.Diff([]float64{1, 4, 40}, levels(axis, tuning.Default().Loads.Ratio)); diff != "" {
		t.Errorf("fixed levels (-want +got):\n%s", diff)
	}
}

// servedFirst plays a campaign up to its first service trial, whose first size has the given window. It returns that trial's
// event too.
func servedFirst(first measure.Window) (*Guided, search.Event) {
	m := typical(1, 0.05)
	g := New(m.settings, standings.NewLedger(m.settings.Goal), m.settings.Space.Candidates())
	next := g.Ask()
	for next.Trial.Phase != search.PhaseService {
		g.Tell(m.answer(g, next.Trial, 0))
		next = g.Ask()
	}
	e := m.answer(g, next.Trial, 1)
	e.Measurement.Windows[0] = first
	g.Tell(e)
	return g, e
}

// In a service trial the smallest size got no answer while larger ones did. The search continues.
func TestUnluckyServiceWindow(t *testing.T) {
	t.Parallel()
	g, _ := servedFirst(measure.Window{Duration: 200 * time.Millisecond})
	if next := g.Ask(); next.Stop {
		t.Errorf("the search is over: %s", next.Why)
	}
}

// The times of the smallest sizes are implausible, and the trial that measures them again gets no answer. They were
// served before, so they are not out, and the search continues in the other pools.
func TestUnluckyRepetition(t *testing.T) {
	t.Parallel()
	g, e := servedFirst(serviceWindowOf(1, 1e-6))
	again := g.Ask()
	if diff := cmp.Diff([]int{1, 2}, again.Trial.Sizes); diff != "" || again.Trial.Phase != search.PhaseService {
		t.Fatalf("it does not measure the sizes again (-want +got):\n%s", diff)
	}
	e = search.Event{Trial: again.Trial, Elapsed: e.Elapsed + time.Second}
	e.Measurement.Windows = slices.Repeat([]measure.Window{{Duration: 200 * time.Millisecond}}, again.Trial.Windows)
	g.Tell(e)
	p, _ := g.poolOf(again.Trial.Candidate)
	if p.Refuses(1) || p.HasFailed() {
		t.Errorf("a batch of one is refused: %t; the pool has failed: %q", p.Refuses(1), p.Failure())
	}
	if next := g.Ask(); next.Stop {
		t.Errorf("the search is over: %s", next.Why)
	}
}

// Sizes that are out are not measured again, however implausible their times are: where requests are of several
// shapes, some of a size may have a time.
func TestRefusedSizesAreNotRepeated(t *testing.T) {
	t.Parallel()
	g, e := servedFirst(serviceWindowOf(1, 1e-6))
	p, _ := g.poolOf(e.Trial.Candidate)
	p.RuleOutBatches(1, 0)
	if again, more := g.opener.repeat(); more {
		t.Errorf("it measures the sizes %v again", again.Trial.Sizes)
	}
}

// Windows in which no request ended, such as by chance at a low rate, carry no information, and
// rule out nothing else.
func TestEmptyWindows(t *testing.T) {
	t.Parallel()
	m := typical(1, 0.05)
	g, events := m.run(t, 20)
	i := slices.IndexFunc(events, func(e search.Event) bool { return e.Trial.Phase == search.PhaseSearch })
	e := events[i]
	p, _ := g.poolOf(e.Trial.Candidate)
	at, _ := p.Find(e.Trial.Candidate.Key())
	e.Trial.Load, e.Measurement = measure.Load{Concurrency: 1, BatchSize: 1}, measure.Measurement{Windows: []measure.Window{{Duration: time.Second}}}
	g.Tell(e)
	if !p.IsDead(pools.Setting{Batcher: at, Level: 1}) || p.IsDead(pools.Setting{Batcher: at, Level: 2}) {
		t.Errorf("out at level 1: %v, want true; at level 2: %v, want false", p.IsDead(pools.Setting{Batcher: at, Level: 1}), p.IsDead(pools.Setting{Batcher: at, Level: 2}))
	}
}

// A service trial that omitted slow sizes rules out nothing. Larger batches serve at loads where
// they are small, and the best is found.
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
	for _, p := range g.pools.All() {
		for i := range p.Batchers() {
			if p.IsDead(pools.Setting{Batcher: i, Level: 1}) {
				t.Errorf("%v is out at one request in flight", p.Batchers()[i].Candidate)
			}
		}
	}
	if regret := m.regret(t, g, limit); regret > 0.05 {
		t.Errorf("the answer misses %.3f of the best", regret)
	}
}
