package guided

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/belief"
	"tuner/search/guided/pace"
	"tuner/search/guided/pools"
	"tuner/search/guided/tuning"
	"tuner/search/posterior"
	"tuner/search/standings"
)

// typical returns a machine with the errors that were measured on real servers.
func typical(seed uint64, limit float64) machine {
	return machine{settings: small(limit), seed: seed, poolError: 0.08, cellError: 0.03, noise: 0.05, tail: 0.3, simulated: &sync.Map{}}
}

// played is a campaign of at most 120 trials on a typical machine.
type played struct {
	limit  float64 // s, on p99
	events []search.Event
	ranked []standings.Standing
	served int     // windows of the search
	regret float64 // see machine.regret
}

// typicals are the campaigns of the seeds 0 to 19, in turns at a tight limit on p99 and without one. Several tests
// look at them, and each takes a second.
var typicals [20]struct {
	once sync.Once
	played
}

var typicalsSimulated sync.Map // see machine.simulated

func ofTypical(seed uint64) machine {
	m := typical(seed, []float64{0.02, 10}[seed%2])
	m.simulated = &typicalsSimulated
	return m
}

func playTypical(t *testing.T, seed uint64) played {
	t.Helper()
	c := &typicals[seed]
	c.once.Do(func() {
		m := ofTypical(seed)
		limit := *m.settings.Goal.Constraints[0].Max
		g, events := m.run(t, 120)
		c.played = played{limit, events, g.Ranked(), g.schedule.served, m.regret(t, g, limit)}
	})
	return c.played
}

// At a tight limit on p99 and without one, most of 20 campaigns end within 2 % of the best feasible
// cell, after 1 % of the cells.
func TestFindsTheBest(t *testing.T) {
	t.Parallel()
	seeds, good, served := len(typicals), 0, 0
	for seed := range uint64(seeds) {
		c := playTypical(t, seed)
		served += c.served
		if len(c.ranked) == 0 || !c.ranked[0].Point.Passes() {
			t.Errorf("seed %d: nothing passes after %d trials", seed, len(c.events))
			continue
		}
		if c.regret <= 0.02 {
			good++
		}
		t.Logf("seed %d: regret %.3f within %v s, %d trials, %v at %v", seed, c.regret, c.limit, len(c.events), c.ranked[0].Candidate.Describe(), c.ranked[0].Load)
	}
	if good < seeds*3/4 {
		t.Errorf("%d of %d campaigns end within 2 %% of the best", good, seeds)
	}
	if served > seeds*100 {
		t.Errorf("%d windows in a campaign, of 4,000 cells", served/seeds)
	}
}

// An immediate second window of a cell meets the same drift, and carries less information than the
// first. So no cell is measured more than four times in a row.
func TestNoCellIsMeasuredOnAndOn(t *testing.T) {
	t.Parallel()
	_, events := typical(7, 0.02).run(t, 100)
	streak, challenges := 0, 0
	for i, e := range events {
		if e.Trial.Phase != search.PhaseSearch {
			continue
		}
		challenges++
		if before := events[i-1].Trial; before.Candidate.Key() == e.Trial.Candidate.Key() && before.Load == e.Trial.Load {
			streak++
		} else {
			streak = 0
		}
		if streak > 3 {
			t.Errorf("trial %d: %s at %v is measured %d times in a row", i, e.Trial.Candidate, e.Trial.Load, streak+1)
		}
	}
	if challenges < 20 {
		t.Errorf("only %d windows", challenges)
	}
}

func TestReplayRepeatsTheCampaign(t *testing.T) {
	t.Parallel()
	m := typical(3, 0.03)
	m.settings.Budget = search.Budget{Time: 90 * time.Second}
	_, events := m.run(t, 60)
	candidates := m.settings.Space.Candidates()
	for cut := 3; cut < len(events); cut += 7 {
		ledger := standings.NewLedger(m.settings.Goal)
		g := New(m.settings, ledger, candidates)
		for _, e := range events[:cut] { // like a resumed campaign, which asks nothing before the end of the journal
			if e.Trial.Phase != search.PhaseService {
				ledger.Add(e)
			}
			g.Tell(e)
		}
		if events[cut].Trial.Phase == search.PhaseDefault {
			continue
		}
		first, second := text(t, g.Ask().Trial), text(t, g.Ask().Trial)
		if want := text(t, events[cut].Trial); first != want || second != want {
			t.Fatalf("after %d events the replay asks for\n%s\nthen\n%s\nthe campaign asked for\n%s", cut, first, second, want)
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A throughput that is random at each load, unlike any queue's, has residuals with a standard
// deviation of 0.7 within each pool.
func TestDropsWrongPredictions(t *testing.T) {
	t.Parallel()
	m := typical(1, 10)
	m.chaos = 0.7
	g, _ := m.run(t, 60)
	st := g.statement()
	if len(st.Dropped) == 0 {
		t.Error("the predictions of throughput are kept")
	}
	if text := strings.Join(g.Notes(), "\n"); !strings.Contains(text, "does not predict throughput") {
		t.Errorf("the statement does not say so:\n%s", text)
	}
	good := typical(1, 10)
	g, _ = good.run(t, 60)
	if st := g.statement(); len(st.Dropped) > 0 {
		t.Errorf("right predictions of %v are dropped", st.Dropped)
	}
	noisy := typical(1, 0.05)
	// as beside a neighbour: the variation between trials of one cell carries no information about
	// the simulation
	noisy.noise = 0.35
	g, _ = noisy.run(t, 60)
	if st := g.statement(); len(st.Dropped) > 0 {
		t.Errorf("predictions of %v are dropped, since trials scatter", st.Dropped)
	}
}

// The space has neither the default's threads nor an equally good value.
func TestKnowsADefaultOutsideTheSpace(t *testing.T) {
	t.Parallel()
	m := typical(1, 10)
	m.settings.Space.Knobs = []search.Knob{
		{Name: search.KnobIntraOpThreads, Scope: search.ScopePool, Values: []search.Value{"1"}},
		{Name: search.KnobInstanceCount, Scope: search.ScopePool, Values: []search.Value{"1"}},
		{Name: search.KnobMaxBatchSize, Scope: search.ScopeBatcher, Values: []search.Value{"1", "2"}},
	}
	g, _ := m.run(t, 40)
	if best := g.Ranked()[0]; !best.Candidate.IsDefault() || len(best.Measurement.Windows) == 0 {
		t.Fatalf("the best is %+v", best)
	}
}

// The shortest service time is 1.2 ms, the highest throughput some 3,000/s. The search ends for
// every requirement beyond that. By then it has measured the effect of each value of an engine knob
// (four engines, and the default's pool), and the nearest cell. Nothing is measured again to
// confirm it.
func TestStopsWhereNothingCanSatisfy(t *testing.T) {
	t.Parallel()
	least, most := 1e5, 1e7
	for name, constraints := range map[string][]search.Constraint{
		"p99, a little": {atMost(measure.LatencyP99, 0.0009)},
		"p99":           {atMost(measure.LatencyP99, 0.0001)},
		"p99, by far":   {atMost(measure.LatencyP99, 1e-9)},
		"throughput":    {{Metric: measure.Throughput, Min: &least}},
		"memory":        {{Metric: measure.Memory, Max: &most}},
		"both":          {{Metric: measure.Throughput, Min: &least}, atMost(measure.LatencyP99, 0.0001)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := typical(1, 1)
			m.settings.Goal.Constraints = constraints
			g, events := m.run(t, 400)
			// A percentile that is a quarter below the shortest service time is not practically
			// impossible before cells of each pool were measured.
			ending, loads, most := "nothing can satisfy the constraints; nearest is", 2, tuning.Default().Beliefs.Possible
			if name == "p99, a little" {
				loads = 5
			}
			next := g.Ask()
			if !next.Stop || !strings.Contains(next.Why, ending) {
				t.Errorf("after %d trials the search goes on, or ends with %q", len(events), next.Why)
			}
			seen := map[string]int{}
			for _, e := range events {
				if e.Trial.Phase == search.PhaseSearch {
					seen[text(t, e.Trial)]++
				}
			}
			if len(events) > 20 || len(seen) > loads {
				t.Errorf("%d trials, at %d loads in the search, for an answer that service times show", len(events), len(seen))
			}
			for trial, n := range seen {
				if n > 1 {
					t.Errorf("%d times, although it cannot satisfy the constraints: %s", n, trial)
				}
			}
			st := g.statement()
			sentences := strings.Join(g.Notes(), "\n")
			for _, want := range []string{"nearest is ", "The highest probability of any configuration to satisfy the constraints is "} {
				if !strings.Contains(sentences, want) {
					t.Errorf("the statement lacks %q:\n%s", want, sentences)
				}
			}
			if st.Chance > most {
				t.Errorf("the statement is %+v", st)
			}
		})
	}
}

func atMost(m measure.Metric, limit float64) search.Constraint {
	return search.Constraint{Metric: m, Max: &limit}
}

// Infeasible cells are ordered by their miss, not by their score, so that the finals confirm the
// nearest: load 1.
func TestNearestIsRankedFirst(t *testing.T) {
	t.Parallel()
	g, _ := typical(1, 1e-9).run(t, 400)
	ranked := g.Ranked()
	for _, s := range ranked[1:] {
		if len(s.Measurement.Windows) > 0 && s.Point.Violation() < ranked[0].Point.Violation() {
			t.Errorf("%v at %v misses by %.3g, less than the first, %v at %v, by %.3g", s.Candidate, s.Load, s.Point.Violation(),
				ranked[0].Candidate, ranked[0].Load, ranked[0].Point.Violation())
		}
	}
	if ranked[0].Load.Concurrency != 1 {
		t.Errorf("the nearest is at %v", ranked[0].Load)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	refuse := func(stage measure.Stage, when func(search.Trial) bool) func(search.Trial) *measure.Failure {
		return func(trial search.Trial) *measure.Failure {
			if when(trial) {
				return &measure.Failure{Stage: stage, Reason: "no"}
			}
			return nil
		}
	}
	has := func(c search.Candidate, knob string, value search.Value) bool {
		v, _ := c.Get(knob)
		return v == value
	}
	batch := func(c search.Candidate) int {
		v, _ := c.Get(search.KnobMaxBatchSize)
		n, err := v.Int()
		if err != nil {
			n = 4 // the default's
		}
		return n
	}
	check := func(name string, fail func(search.Trial) *measure.Failure, isOut func(s standings.Standing, failed []search.Trial) bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := typical(2, 0.05)
			m.fail = fail
			g, events := m.run(t, 400)
			if !g.Ask().Stop {
				t.Fatalf("no end after %d trials", len(events))
			}
			var failed []search.Trial
			seen := map[string]int{}
			for _, e := range events {
				if e.Measurement.Failure != nil {
					failed = append(failed, e.Trial)
					seen[text(t, e.Trial)]++
				}
			}
			if len(failed) == 0 {
				t.Error("nothing failed")
			}
			for trial, n := range seen {
				if n > 1 {
					t.Errorf("%d times, although it fails: %s", n, trial)
				}
			}
			for i, s := range g.Ranked() {
				if s.Point.Passes() && isOut(s, failed) {
					t.Errorf("%v is believed in at %v", s.Candidate, s.Load)
				}
				if i == 0 && s.Point.Passes() && len(s.Measurement.Windows) == 0 {
					t.Errorf("%v is the best at %v, where it never served", s.Candidate, s.Load)
				}
			}
		})
	}
	check("everything", refuse(measure.StageStart, func(search.Trial) bool { return true }), func(standings.Standing, []search.Trial) bool { return true })
	check("a value", refuse(measure.StageLoad, func(trial search.Trial) bool { return has(trial.Candidate, search.KnobPrecision, "int8") }),
		func(s standings.Standing, _ []search.Trial) bool {
			return has(s.Candidate, search.KnobPrecision, "int8")
		})
	check("instances", refuse(measure.StageStart, func(trial search.Trial) bool { return has(trial.Candidate, search.KnobInstanceCount, "2") }),
		func(s standings.Standing, _ []search.Trial) bool {
			return has(s.Candidate, search.KnobInstanceCount, "2")
		})
	check("high loads", refuse(measure.StageHang, func(trial search.Trial) bool { return trial.Load.Concurrency > 12 }),
		func(s standings.Standing, failed []search.Trial) bool {
			// batches at most as large, at a load at most as high, hung in the same engine process
			return slices.ContainsFunc(failed, func(f search.Trial) bool {
				return f.Candidate.PoolKey() == s.Candidate.PoolKey() && batch(f.Candidate) <= batch(s.Candidate) && f.Load.Concurrency <= s.Load.Concurrency
			})
		})
}

// With one engine in the space, a first process that does not start does not rule out the others.
func TestSingleEngineIsTriedAgain(t *testing.T) {
	t.Parallel()
	m := typical(1, 0.05)
	m.settings.Space.Knobs = slices.DeleteFunc(m.settings.Space.Knobs, func(k search.Knob) bool { return pools.IsEngineKnob(k.Name) })
	failed := ""
	m.fail = func(trial search.Trial) *measure.Failure {
		if trial.Phase == search.PhaseService && (failed == "" || failed == trial.Candidate.PoolKey()) {
			failed = trial.Candidate.PoolKey()
			return &measure.Failure{Stage: measure.StageStart, Reason: "no"}
		}
		return nil
	}
	_, events := m.run(t, 100)
	measured := func(e search.Event) bool {
		return e.Trial.Phase == search.PhaseSearch && e.Trial.Candidate.PoolKey() != failed
	}
	if failed == "" || !slices.ContainsFunc(events, measured) {
		t.Errorf("%d trials, none of them of another pool than %q, which failed", len(events), failed)
	}
}

// A configuration that has served is ruled out by two failed launches, but not by one.
func TestFailedLaunchOfWhatServed(t *testing.T) {
	t.Parallel()
	m := typical(1, 0.05)
	g, events := m.run(t, 200)
	best := g.Ranked()[0]
	p, _ := g.poolOf(best.Candidate)
	e := search.Event{Trial: m.settings.Trial(best.Candidate, best.Point.Level, search.PhaseFinal), Elapsed: events[len(events)-1].Elapsed}
	e.Measurement.Failure = &measure.Failure{Stage: measure.StageStart, Reason: "no"}
	for times, isOut := range []bool{false, true} {
		g.Confirm(e)
		if got := p.HasFailed(); got != isOut {
			t.Errorf("after %d launches that failed the pool is out: %v", times+1, got)
		}
	}
}

// If another pool is not affordable, the best cell in the running process is asked for, and the
// first choice stays the same.
func TestAskWithin(t *testing.T) {
	t.Parallel()
	m := typical(1, 0.05)
	for most := 5; most < 60; most++ {
		g, events := m.run(t, most)
		first, running := g.Ask(), events[len(events)-1].Trial.Candidate.PoolKey()
		if first.Stop || first.Trial.Candidate.PoolKey() == running {
			continue
		}
		within := g.AskWithin(func(trial search.Trial) bool { return trial.Candidate.PoolKey() == running })
		if text(t, g.Ask()) != text(t, first) {
			t.Fatalf("after %d trials Ask has changed its mind", most)
		}
		if nothing := g.AskWithin(func(search.Trial) bool { return false }); !nothing.Stop {
			t.Errorf("after %d trials nothing can be afforded, and asked for is %v", most, nothing.Trial)
		}
		if !within.Stop {
			if within.Trial.Candidate.PoolKey() != running {
				t.Errorf("after %d trials asked for is %v, which does not run", most, within.Trial)
			}
			return
		}
	}
	t.Error("nothing in the running process was ever worth a trial beside another pool")
}

func TestOtherGoalsAndSpaces(t *testing.T) {
	t.Parallel()
	term := func(metric measure.Metric, weight float64) search.Term {
		return search.Term{Metric: metric, Weight: weight}
	}
	check := func(name string, change func(*search.Settings)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := typical(4, 0.05)
			change(&m.settings)
			g, events := m.run(t, 400)
			next := g.Ask()
			t.Logf("%d trials: %s\n%s", len(events), next.Why, strings.Join(g.Notes(), "\n"))
			if !next.Stop {
				t.Errorf("no end after %d trials", len(events))
			}
			if ranked := g.Ranked(); len(ranked) == 0 || !ranked[0].Point.Passes() {
				t.Errorf("nothing passes: %+v", ranked)
			}
		})
	}
	check("one load", func(s *search.Settings) { s.Space.Load = search.LoadAxis{Levels: []float64{8}, BatchSize: 1} })
	check("fixed levels", func(s *search.Settings) { s.Space.Load.Any = false })
	check("rates", func(s *search.Settings) {
		s.Space.Load = search.LoadAxis{Rate: true, Levels: []float64{50, 100, 200, 400, 800}, BatchSize: 1}
	})
	check("any rate", func(s *search.Settings) {
		s.Space.Load = search.LoadAxis{Rate: true, Any: true, Levels: []float64{50, 800}, BatchSize: 1}
	})
	check("client batches", func(s *search.Settings) {
		s.Space.Load.BatchSize = 4
		s.Goal.Constraints = nil
	})
	check("no batching", func(s *search.Settings) {
		s.Space.Facts.Batching = false
		s.Space.Facts.BaseMaxBatchSize = 0
		s.Space.Facts.Base[search.KnobMaxBatchSize] = "0"
	})
	check("batcher only", func(s *search.Settings) { s.Space.Knobs = s.Space.Knobs[3:] })
	check("engine only", func(s *search.Settings) { s.Space.Knobs = s.Space.Knobs[:2] })
	check("no knobs", func(s *search.Settings) { s.Space.Knobs = nil })
	check("latency", func(s *search.Settings) {
		least := 300.0
		s.Goal.Objective.Terms = []search.Term{term(measure.LatencyP99, 1)}
		s.Goal.Constraints = []search.Constraint{{Metric: measure.Throughput, Min: &least}}
	})
	check("weights", func(s *search.Settings) {
		s.Goal.Objective.Terms = []search.Term{term(measure.Throughput, 10), term(measure.LatencyP99, 5)}
	})
	check("cost", func(s *search.Settings) {
		s.Goal.Objective.Terms, s.Goal.Price = []search.Term{term(measure.Cost, 1)}, 0.4
		s.Space.Load = search.LoadAxis{Rate: true, Any: true, Levels: []float64{50, 800}, BatchSize: 1}
	})
	check("another percentile", func(s *search.Settings) {
		s.Goal.Constraints = []search.Constraint{{Metric: "latency_p97.5", Max: s.Goal.Constraints[0].Max}}
	})
	check("energy that nothing predicts", func(s *search.Settings) {
		most := 1.0 // J; the machine takes 100 W
		s.Goal.Objective.Terms = []search.Term{term(measure.Throughput, 1), term(measure.Energy, 1)}
		s.Goal.Constraints = append(s.Goal.Constraints, search.Constraint{Metric: measure.Energy, Max: &most})
	})
	check("memory", func(s *search.Settings) {
		most := 3.2e8 // of two instances: the machine takes 100 MB and 100 MB for each
		s.Goal.Constraints = append(s.Goal.Constraints, search.Constraint{Metric: measure.Memory, Max: &most})
	})
}

func TestMemoryLimitKeepsPoolsOut(t *testing.T) {
	t.Parallel()
	m := typical(5, 0.05)
	most := 3.2e8
	m.settings.Goal.Constraints = append(m.settings.Goal.Constraints, search.Constraint{Metric: measure.Memory, Max: &most})
	g, events := m.run(t, 400)
	large := 0
	for _, e := range events {
		if e.Measurement.Memory > int64(most) {
			large++
		}
	}
	if large > 3 { // the line through two numbers of instances gives the others
		t.Errorf("%d of %d trials in pools that are too large", large, len(events))
	}
	if best := g.Ranked()[0]; best.Measurement.Memory > int64(most) {
		t.Errorf("the best takes %d bytes", best.Measurement.Memory)
	}
}

func TestSkippedCountsWhatWasNotStarted(t *testing.T) {
	t.Parallel()
	g, _ := typical(6, 0.05).run(t, 400)
	started := 0
	for _, p := range g.pools.All() {
		if p.IsReady() {
			started += len(p.Members())
		}
	}
	candidates := g.settings.Space.Candidates().All()
	skipped := 0
	for _, f := range g.Skipped() {
		skipped += f.Count
	}
	if started+skipped != len(candidates) || skipped == 0 {
		t.Errorf("%d candidates in pools that were started, %d skipped, of %d", started, skipped, len(candidates))
	}
}

func TestWindowsGrow(t *testing.T) {
	t.Parallel()
	s := newSchedule(search.Settings{Window: time.Second}, nil, tuning.Default())
	// 1.045⁶ = 1.302
	for served, want := range map[int]time.Duration{0: time.Second, 1: 1045 * time.Millisecond, 6: 1302 * time.Millisecond, 600: 4 * time.Second} {
		if s.served = served; s.window() != want {
			t.Errorf("after %d windows the next takes %v, want %v", served, s.window(), want)
		}
	}
}

// Windows of a second: √launch of them, three at most, and one in the process that runs.
func TestADearLaunchIsWorthMoreWindows(t *testing.T) {
	t.Parallel()
	g, _ := typical(1, 0.05).run(t, 20)
	g.schedule.served = 0
	isRunning := 0
	for _, p := range g.pools.All() {
		if !p.IsReady() {
			continue
		}
		c := pools.Cell{Pool: p, Setting: pools.Setting{Level: 1}}
		for launch, want := range map[time.Duration]int{time.Second: 1, 4 * time.Second: 2, 25 * time.Second: 3} {
			g.schedule.launches[p.Engine()] = pace.Mean{}.With(launch)
			if c.Batcher().Candidate.PoolKey() == g.schedule.process.Pool {
				want = 1
				isRunning++
			}
			if got := g.schedule.windows(c); got != want {
				t.Errorf("%s, launched in %v: %d windows, want %d", p.Key(), launch, got, want)
			}
		}
	}
	if isRunning == 0 {
		t.Error("no ready pool's process runs")
	}
}

// A cell is believed to be 10 % worse than the lead and to exceed the limit by 10 %, both within 10
// %. It takes the lead if a trial shows that it is sufficiently faster than believed. Its worth is
// the integral of the gain over the possible results. Treated as independent, the two would give
// several times less.
func TestLessonKnowsThatSpeedHelpsAllMetrics(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	g.learn()
	const deviation = 0.1
	lead, limit := 5.1, math.Log(0.05)
	b := belief.Belief{Score: 5, Variance: deviation * deviation, Means: []float64{5, limit + 0.1}, Residuals: make([]posterior.Residual, 2)}
	b.Level = 8
	for k := range b.Residuals {
		b.Residuals[k].Variance = deviation * deviation
	}
	moves, shortens := math.Sqrt(g.beliefs.Information(0, b, 1)), math.Sqrt(g.beliefs.Information(1, b, 1))
	// it must keep the limit with a probability of 0.95
	room := 1.645 * math.Sqrt(deviation*deviation-shortens*shortens)
	want := 0.0
	const step = 1e-4
	for z := -6.0; z < 6; z += step {
		if gain := 5 + moves*z - lead; gain > 0 && limit+0.1-shortens*z+room <= limit {
			want += gain * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * step
		}
	}
	if got := g.appraiser.lesson(&survey{leader: -1, lead: lead}, b, 1); want == 0 || math.Abs(got-want) > 1e-2*want {
		t.Errorf("the expected gain is %g, want %g", got, want)
	}
}

// The worth of trials of a cell that equals the lead within 10 %: the future mean moves, and its
// part above the lead counts, deviation/√(2π). Trials of a settled cell are worth almost nothing,
// and several trials are worth more than one.
func TestLessonIsWhatTrialsMayChange(t *testing.T) {
	t.Parallel()
	g := newSmall(t, nil)
	g.learn()
	lesson := func(deviation float64, trials int) (got, moves float64) {
		b := belief.Belief{Score: 5, Variance: deviation * deviation, Means: []float64{5, math.Log(0.01)}, Residuals: make([]posterior.Residual, 2)}
		b.Residuals[0].Variance = deviation * deviation
		b.Level = 8
		return g.appraiser.lesson(&survey{leader: -1, lead: 5}, b, trials), math.Sqrt(g.beliefs.Information(0, b, trials))
	}
	vague, moves := lesson(0.1, 1)
	if want := moves / math.Sqrt(2*math.Pi); moves >= 0.1 || math.Abs(vague-want) > 1e-6 {
		t.Errorf("a trial brings %g, want %g", vague, want)
	}
	if settled, _ := lesson(0.01, 1); settled > vague/20 {
		t.Errorf("a trial of a cell that is known ten times as well brings %g, of the other one %g", settled, vague)
	}
	if several, moves := lesson(0.1, 8); several <= vague || moves >= 0.1 {
		t.Errorf("eight trials bring %g, one %g", several, vague)
	}
}
