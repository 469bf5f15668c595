package guided

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/standings"
)

func TestLongestBatch(t *testing.T) {
	t.Parallel()
	at := func(metric measure.Metric, most float64) search.Constraint {
		return search.Constraint{Metric: metric, Max: &most}
	}
	check := func(name string, want, budget time.Duration, limits ...search.Constraint) {
		t.Helper()
		g := newSmall(t, func(s *search.Settings) { s.Goal.Constraints, s.Budget.Time = limits, budget })
		if got := g.opener.longest(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	check("no limit, no budget", 0, 0)
	check("a part of the budget", 300*time.Millisecond, time.Minute)
	check("the limit", 50*time.Millisecond, time.Minute, at(measure.LatencyP99, 0.050))
	check("the tightest", 40*time.Millisecond, 0, at(measure.LatencyP99, 0.050), at(measure.LatencyAvg, 0.040))
	check("what is no latency of every batch", 0, 0, at(measure.LatencyP50, 0.010), at(measure.QueueTime, 0.001), at(measure.Memory, 1))
}

// opened tells a search the service trials of some sizes of an engine that it asks for.
func (m machine) opened(t *testing.T, g *Guided, sizes ...int) *pools.Pool {
	t.Helper()
	next := g.Ask()
	if next.Trial.Phase != search.PhaseService {
		t.Fatalf("the first action is %+v", next)
	}
	e := search.Event{Trial: next.Trial}
	e.Trial.Sizes = sizes
	g.Tell(m.answer(g, e.Trial, 0))
	p, _ := g.poolOf(next.Trial.Candidate)
	return p
}

// A pool with only two requested sizes gets the rest of its curve before its first load. A curve
// that was broken off, or whose next size takes too long, does not continue.
func TestPricedCurvesAreCompleted(t *testing.T) {
	t.Parallel()
	m := typical(1, 0.05)
	check := func(limit float64, asked, want []int) {
		t.Helper()
		m.settings.Goal.Constraints = []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}}
		g := New(m.settings, standings.NewLedger(m.settings.Goal), m.settings.Space.Candidates())
		p := m.opened(t, g, asked...)
		more, ok := g.opener.complete(p)
		if diff := cmp.Diff(want, more.Trial.Sizes); diff != "" || ok != (want != nil) {
			t.Errorf("within %g s, after %v (-want +got):\n%s", limit, asked, diff)
		}
		if ok {
			before := g.before(search.Action{Trial: search.Trial{Candidate: p.Members()[0], Phase: search.PhaseSearch}})
			if before.Trial.Phase != search.PhaseService {
				t.Errorf("a load comes before the rest of the curve: %+v", before)
			}
		}
	}
	check(10, []int{1, 2}, []int{4, 8, 16, 32})
	check(10, []int{1, 2, 4, 8, 16, 32}, nil)
	check(0.0001, []int{1, 2}, nil)
}

// The curve of an earlier campaign under a tighter limit is measured again up to the sizes that the
// looser one allows. Until then it does not rule out larger batches. Under the same limit it is
// used unchanged.
func TestShortCurveOfAnEarlierCampaign(t *testing.T) {
	t.Parallel()
	const tight = 0.002
	m := typical(1, tight)
	then := New(m.settings, standings.NewLedger(m.settings.Goal), m.settings.Space.Candidates())
	trial := then.Ask().Trial
	first := m.answer(then, trial, 0)
	if n := len(first.Measurement.Windows); n == len(trial.Sizes) || n == 0 {
		t.Fatalf("the earlier campaign measured %d of %v", n, trial.Sizes)
	}
	for _, limit := range []float64{tight, 1} {
		m.settings.Goal.Constraints = []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}}
		m.settings.Earlier = []search.Earlier{{From: "then", Same: true, Events: []search.Event{first}}}
		g := New(m.settings, standings.NewLedger(m.settings.Goal), m.settings.Space.Candidates())
		p, _ := g.poolOf(trial.Candidate)
		if largest := g.predictor.Outline(p).Sizes[len(g.predictor.Outline(p).Sizes)-1]; largest != 32 {
			t.Errorf("within %g s batches go up to %d, want 32", limit, largest)
		}
		more, ok := g.opener.complete(p)
		if wants := limit > tight; ok != wants || wants && !slices.Equal(more.Trial.Sizes, g.pools.Sizes(p)) {
			t.Fatalf("within %g s the curve goes on: %v, with %v", limit, ok, more.Trial.Sizes)
		}
		if !ok {
			continue
		}
		g.Tell(m.answer(g, more.Trial, 1))
		if s := p.ServiceTimes(); s.Largest() != 32 || s.IsInherited() || s.Trials() != 1 {
			t.Errorf("the new curve goes up to %d after %d trials, and is old: %v", s.Largest(), s.Trials(), s.IsInherited())
		}
		if again, ok := g.opener.complete(p); ok {
			t.Errorf("the new curve goes on with %v", again.Trial.Sizes)
		}
	}
}

// If launches and curves take most of a short budget, engines are priced with two sizes each. A
// pool gets its first load when each value of each engine knob has been tried. With enough time,
// the first curve is measured completely.
func TestShortBudgetPricesFirst(t *testing.T) {
	t.Parallel()
	check := func(budget time.Duration, sizes int) []search.Event {
		m := typical(1, 0.05)
		m.settings.Budget.Time = budget
		_, events := m.run(t, 12)
		first := slices.IndexFunc(events, func(e search.Event) bool { return e.Trial.Phase == search.PhaseService })
		if got := events[first].Trial.Sizes; len(got) != sizes {
			t.Errorf("within %v the first curve is asked for %v, want %d sizes", budget, got, sizes)
		}
		return events[first:]
	}
	check(time.Hour, 6)
	seen := map[search.Value]bool{}
	for _, e := range check(40*time.Second, 2) {
		if e.Trial.Phase == search.PhaseSearch {
			break
		}
		for _, knob := range []string{search.KnobPrecision, search.KnobIntraOpThreads} {
			v, _ := e.Trial.Candidate.Get(knob)
			seen[v] = true
		}
	}
	if len(seen) != 5 { // fp32 and int8; 1, 2 and 4 threads
		t.Errorf("%d values were tried before the first load", len(seen))
	}
}

// An unstarted pool is a rival although its prediction is too uncertain to be trusted, since it may
// be better.
func TestUnknownPoolsAreRivals(t *testing.T) {
	t.Parallel()
	m := typical(1, 0.05)
	g := New(m.settings, standings.NewLedger(m.settings.Goal), m.settings.Space.Candidates())
	m.opened(t, g, 1, 2, 4, 8, 16, 32)
	rivals, isOpen := g.Rivals()
	if isOpen {
		t.Error("engines that are forecast count as unknown")
	}
	for _, p := range g.pools.All() {
		isListed := false
		for _, r := range rivals {
			isListed = isListed || r.Candidate.PoolKey() == p.Key()
		}
		if !isListed {
			t.Errorf("%s is no rival", p.Key())
		}
	}
}
