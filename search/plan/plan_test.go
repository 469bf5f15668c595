package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
	"tuner/search/standings"
	"tuner/search/tour"
	"tuner/search/verdict"
)

func TestStrategiesConform(t *testing.T) {
	t.Parallel()
	machine := searchtest.Small()
	for _, name := range plan.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			searchtest.Conform(t, machine, func(s search.Settings) (search.Strategy, error) { return plan.New(name, s) })
		})
	}
}

// newPlan plans a campaign on the machine, for the highest throughput at p99 ≤ 50 ms.
func newPlan(t *testing.T, name string, l searchtest.Landscape, b search.Budget) *plan.Plan {
	t.Helper()
	s := searchtest.Settings(l, 50*time.Millisecond)
	s.Budget = b
	p, err := plan.New(name, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// campaign holds the events and the answer of a whole campaign.
type campaign struct {
	events  []search.Event
	leader  standings.Standing
	leads   bool
	verdict verdict.Verdict
}

// play plays a campaign to its end.
func play(t *testing.T, name string, l searchtest.Landscape, b search.Budget) campaign {
	t.Helper()
	p := newPlan(t, name, l, b)
	c := campaign{events: l.Run(p, 1000)}
	c.leader, c.leads = p.Leader()
	c.verdict = p.Verdict()
	return c
}

var (
	gridOnce sync.Once
	gridsOwn campaign
)

// grid returns the campaign of the strategy grid on the small machine, without a budget. It is
// played once for all tests that look at it, since it takes seconds.
func grid(t *testing.T) campaign {
	t.Helper()
	gridOnce.Do(func() { gridsOwn = play(t, "grid", searchtest.Small(), search.Budget{}) })
	return gridsOwn
}

// optimum returns the highest throughput of any configuration at any load with a latency of at most
// 50 ms.
func optimum(l searchtest.Landscape) float64 {
	best := 0.0
	for _, c := range searchtest.Settings(l, 0).Space.Candidates().All() {
		for n := 1; n <= 64; n++ {
			if throughput, latency := l.Serve(c, measure.Load{Concurrency: n}); latency <= 50*time.Millisecond {
				best = max(best, throughput)
			}
		}
	}
	return best
}

func TestOptimumIsFound(t *testing.T) {
	t.Parallel()
	checked := func(name string, l searchtest.Landscape, atLeast float64, played func(t *testing.T) campaign) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := played(t)
			if !c.leads {
				t.Fatal("no leader")
			}
			got, _ := l.Serve(c.leader.Candidate, c.leader.Load)
			if best := optimum(l); got < atLeast*best {
				t.Errorf("%v at %v has %.0f/s of %.0f/s, after %d trials", c.leader.Candidate, c.leader.Load, got, best, len(c.events))
			}
			// A sweep of 7 loads for each of 180 candidates takes 1260 trials.
			if len(c.events) > 400 {
				t.Errorf("%d trials", len(c.events))
			}
		})
	}
	check := func(name string, l searchtest.Landscape, atLeast float64) {
		checked(name, l, atLeast, func(t *testing.T) campaign { return play(t, name, l, search.Budget{}) })
	}
	check("guided", searchtest.Small(), 0.98)
	checked("grid", searchtest.Small(), 0.98, grid)
	check("random", searchtest.Small(), 0.98)
	slow := searchtest.Small() // a batch of 16 takes 60 ms on one thread: large batches miss the limit
	slow.Fixed, slow.PerItem = 12*time.Millisecond, 3*time.Millisecond
	check("grid", slow, 0.9)
	// Quick searches only batch sizes and instances. It keeps one thread and fp32, the first
	// values. The best of those has 0.6 of int8's throughput.
	check("quick", searchtest.Small(), 0.59)
}

// phases returns the events of a phase.
func phases(events []search.Event, phase search.Phase) []search.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e search.Event) bool { return e.Trial.Phase != phase })
}

// inFinals tells a plan the results of a machine after change has modified them, and returns the
// finals.
func inFinals(p *plan.Plan, l searchtest.Landscape, change func(t search.Trial, throughput *float64, latency *time.Duration)) []search.Event {
	var finals []search.Event
	for n := range 1000 {
		next := p.Ask()
		if next.Stop {
			break
		}
		throughput, latency := l.Serve(next.Trial.Candidate, next.Trial.Load)
		change(next.Trial, &throughput, &latency)
		e := search.Event{
			Trial: next.Trial, Measurement: searchtest.Measured(next.Trial, throughput, latency), Elapsed: time.Duration(n+1) * 3 * time.Second,
		}
		if e.Measurement.Launch = n; next.Trial.Phase == search.PhaseFinal {
			finals = append(finals, e)
		}
		p.Tell(e)
	}
	return finals
}

// The answer and the default are measured on at least two fresh launches each.
func TestFinals(t *testing.T) {
	t.Parallel()
	c := grid(t)
	finals := phases(c.events, search.PhaseFinal)
	trials := map[string]int{}
	for _, e := range finals {
		trials[e.Trial.Candidate.Key()]++
		if !e.Trial.Fresh || e.Trial.Window != 2*time.Second || e.Measurement.Times.Launch == 0 {
			t.Errorf("final trial %+v is not a long one on a fresh launch", e.Trial)
		}
	}
	v := c.verdict
	if v.Recommended == nil || v.Recommended.Fresh < 2 || v.Default.Fresh < 2 {
		t.Errorf("answer %v and default %v, want two fresh launches of each", v.Recommended, v.Default)
	}
	if len(finals) > 12 {
		t.Errorf("%d finals without any noise: %v", len(finals), trials)
	}
}

// If the leader misses the limit by a tenth on every fresh launch, the answer is a lower load that
// keeps it there.
func TestFinalsLowerALoadThatWasTooHigh(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	limit := 20 * time.Millisecond
	s := searchtest.Settings(l, limit)
	s.Budget.Time = time.Hour
	p, err := plan.New("grid", s)
	if err != nil {
		t.Fatal(err)
	}
	inFinals(p, l, func(trial search.Trial, _ *float64, latency *time.Duration) {
		if trial.Phase == search.PhaseFinal {
			*latency = *latency * 11 / 10
		}
	})
	answer := p.Verdict().Recommended
	if answer == nil || answer.Fresh < 2 {
		t.Fatalf("the answer is %+v", answer)
	}
	if _, latency := l.Serve(answer.Candidate, answer.Load); latency*11/10 > limit {
		t.Errorf("%v at %v has %v in the finals", answer.Candidate, answer.Load, latency*11/10)
	}
}

// A default appeared ten times slower in the search, as on a temporarily busy machine. It is
// compared at its real best load, so that the gain over it is not overstated.
func TestFinalsRaiseALoadThatWasTooLow(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	limit := 40 * time.Millisecond
	s := searchtest.Settings(l, limit)
	s.Budget.Time = time.Hour
	p, err := plan.New("grid", s)
	if err != nil {
		t.Fatal(err)
	}
	inFinals(p, l, func(trial search.Trial, _ *float64, latency *time.Duration) {
		if trial.Candidate.IsDefault() && trial.Phase == search.PhaseDefault {
			*latency *= 10
		}
	})
	throughputAt := func(n int) float64 {
		x, latency := l.Serve(search.Candidate{}, measure.Load{Concurrency: n, BatchSize: 1})
		if latency > limit {
			return 0
		}
		return x
	}
	best := 0.0 // throughput of the default at its best load within the limit
	for n := 1; n <= 64; n++ {
		best = max(best, throughputAt(n))
	}
	if base := p.Verdict().Default; throughputAt(base.Load.Concurrency) < 0.9*best {
		t.Errorf("the default is compared at %v: %.0f of the %.0f infer/s that it bears", base.Load, throughputAt(base.Load.Concurrency), best)
	}
}

// A campaign that may end when nothing else is better by half ends before its budget, and gives the
// reason. It continues if Until is then smaller, or unset.
func TestUntil(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	l.Noise = 0.03
	untilIs := func(until float64) *plan.Plan {
		s := searchtest.Settings(l, 40*time.Millisecond)
		s.Budget.Time, s.Until = 10*time.Minute, until
		p, err := plan.New("guided", s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	took, played := map[float64]time.Duration{}, map[float64][]search.Event{}
	for _, until := range []float64{0, 0.5} {
		p := untilIs(until)
		events := l.Run(p, 3000)
		played[until], took[until] = events, events[len(events)-1].Elapsed
		if why := p.Ask().Why; until > 0 && why != "nothing else is better by more than 50 %" {
			t.Errorf("it ends because %q", why)
		}
		if v := p.Verdict(); v.Recommended == nil || v.Recommended.Fresh < 2 {
			t.Errorf("until %v: the answer is %+v", until, v.Recommended)
		}
	}
	if took[0.5] >= took[0] {
		t.Errorf("until 50 %% it takes %v, else %v", took[0.5], took[0])
	}
	for until, goesOn := range map[float64]bool{0.5: false, 0.0001: true, 0: true} {
		p := untilIs(until)
		for _, e := range played[0.5] {
			p.Tell(e)
		}
		if next := p.Ask(); next.Stop == goesOn {
			t.Errorf("until %v: after an end at 50 %% the next action is %+v", until, next)
		}
	}
}

// A choice that the finals refute is not the answer, even if the search preferred it.
func TestWhatTheFinalsRefuteIsNotTheAnswer(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"grid", "random", "quick"} {
		l := searchtest.Small()
		s := searchtest.Settings(l, 50*time.Millisecond)
		s.Space.Load = search.LoadAxis{Levels: []float64{8}, BatchSize: 1}
		s.Space.Knobs = []search.Knob{{Name: search.KnobInstanceCount, Scope: search.ScopePool, Values: []search.Value{"1"}}}
		p, err := plan.New(strategy, s)
		if err != nil {
			t.Fatal(err)
		}
		inFinals(p, l, func(trial search.Trial, throughput *float64, latency *time.Duration) {
			if trial.Phase == search.PhaseFinal {
				*throughput, *latency = *throughput/50, *latency*50
			}
		})
		if v := p.Verdict(); v.Recommended != nil {
			t.Errorf("%s: %v is recommended", strategy, v.Recommended.Candidate)
		}
	}
}

// A configuration that fails on fresh launches is not the answer while any other serves.
func TestWhatFailsInTheFinalsDoesNotLead(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	failed := map[string]bool{}
	l.Fail = func(trial search.Trial) *measure.Failure {
		if trial.Phase != search.PhaseFinal || len(failed) >= 2 && !failed[trial.Candidate.Key()] {
			return nil
		}
		failed[trial.Candidate.Key()] = true
		return &measure.Failure{Stage: measure.StageCrash, Reason: "no"}
	}
	p := newPlan(t, "grid", l, search.Budget{})
	l.Run(p, 3000)
	if answer := p.Verdict().Recommended; answer == nil || len(failed) != 2 || failed[answer.Candidate.Key()] {
		t.Errorf("of %d that failed in the finals, %+v is the answer", len(failed), answer)
	}
}

func TestBudgetLeavesRoomForFinals(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	for _, b := range []search.Budget{{Time: time.Minute}, {Time: 3 * time.Minute}, {Trials: 40}} {
		for _, name := range plan.Names() {
			members := map[string]bool{}
			p := newPlan(t, name, l, b)
			events := l.Run(p, 1000)
			for _, e := range phases(events, search.PhaseFinal) {
				members[e.Trial.Candidate.Key()] = true
			}
			if answer := p.Verdict().Answer(); len(members) < 2 && !answer.Candidate.IsDefault() || !members["default"] {
				t.Errorf("%s, budget %+v: finals of %v, want a comparison with the default", name, b, members)
			}
			if name != "grid" {
				continue // another reason may end it
			}
			if why := p.Ask().Why; !strings.Contains(why, "budget") {
				t.Errorf("budget %+v: the reason for the end is %q", b, why)
			}
			// The remaining time is too short for a further final trial of about 4 s.
			if last := events[len(events)-1]; b.Time > 0 && b.Time-last.Elapsed > 5*time.Second {
				t.Errorf("budget %+v: ended after %v", b, last.Elapsed)
			}
		}
	}
}

func TestLargerBudgetAfterTheFinalsBegan(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	p := newPlan(t, "grid", l, search.Budget{Time: 5 * time.Minute})
	for _, e := range l.Run(newPlan(t, "grid", l, search.Budget{Time: time.Minute}), 1000) {
		p.Tell(e)
	}
	l.Run(p, 1000)
	if next, want := p.Ask(), "an earlier run ended the search: with a smaller budget, a larger until, or at the user's wish"; !next.Stop || next.Why != want {
		t.Errorf("the campaign's last action is %+v, want an end because %s", next, want)
	}
}

func TestPoolThatDoesNotStartIsTriedOnce(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	l.Fail = func(t search.Trial) *measure.Failure {
		if n, _ := t.Candidate.Get(search.KnobInstanceCount); n == "2" {
			return &measure.Failure{Stage: measure.StageStart, Reason: "no space left"}
		}
		return nil
	}
	for _, name := range []string{"grid", "random"} {
		p := newPlan(t, name, l, search.Budget{})
		tried := map[string]int{}
		for _, e := range l.Run(p, 1000) {
			if e.Measurement.Failure != nil {
				tried[e.Trial.Candidate.PoolKey()]++
			}
		}
		// 2 precisions × 3 thread counts with 2 instances. Each pool has 9 candidates: batches of
		// 2, 4, 8, 16 with two delays, and of 1.
		if len(tried) != 6 {
			t.Errorf("%s: %d pools failed, want 6: %v", name, len(tried), tried)
		}
		for pool, n := range tried {
			if n != 1 {
				t.Errorf("%s: %s was tried %d times", name, pool, n)
			}
		}
		skipped := 0
		for _, f := range p.Skipped() {
			skipped += f.Count
			if !strings.HasSuffix(f.Reason, ": no space left") {
				t.Errorf("%s: reason %q does not say why", name, f.Reason)
			}
		}
		if skipped != 6*8 {
			t.Errorf("%s: %d candidates were passed over, want 48", name, skipped)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	for _, b := range []search.Budget{{}, {Time: time.Minute}, {Trials: 12}} {
		p := newPlan(t, "grid", l, b)
		told := 0
		for range 1000 {
			next := p.Ask()
			done, expected := p.Progress()
			if left := p.Remaining(); (left == 0) != next.Stop || (b.Time > 0 && left > b.Time) {
				t.Fatalf("budget %+v: remaining after %d trials is %v, stop %t", b, told, left, next.Stop)
			}
			if done != told || expected < done || (expected == done) != next.Stop || (b.Trials > 0 && expected > b.Trials) {
				t.Fatalf("budget %+v: progress after %d trials is %d of %d, stop %t", b, told, done, expected, next.Stop)
			}
			if next.Stop {
				break
			}
			throughput, latency := l.Serve(next.Trial.Candidate, next.Trial.Load)
			told++
			p.Tell(search.Event{
				Trial: next.Trial, Measurement: searchtest.Measured(next.Trial, throughput, latency),
				Elapsed: time.Duration(told) * time.Second,
			})
		}
	}
}

// Every strategy searches 10^8 × 24 pools until the budget ends, without enumerating them.
func TestHugeSpaceWithABudget(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	s := searchtest.Settings(l, 50*time.Millisecond)
	s.Budget = search.Budget{Trials: 30}
	s.Space.Knobs = slices.Clone(s.Space.Knobs)
	for i := range 8 {
		k := search.Knob{Name: fmt.Sprint("parameters.k", i)}
		for n := range 10 {
			k.Values = append(k.Values, search.IntValue(n))
		}
		s.Space.Knobs = append(s.Space.Knobs, k)
	}
	for _, name := range plan.Names() {
		p, err := plan.New(name, s)
		if err != nil {
			t.Fatal(err)
		}
		if left := p.Remaining(); left <= 0 {
			t.Errorf("%s: %v are left before the first trial", name, left)
		}
		events := l.Run(p, 100)
		leader, ok := p.Leader()
		if len(events) > 30 || len(events) < 20 || !ok || len(phases(events, search.PhaseFinal)) == 0 {
			t.Errorf("%s: %d trials, best is %v, %t", name, len(events), leader.Candidate, ok)
		}
	}
}

func TestDearLaunchesGetMoreWindows(t *testing.T) {
	t.Parallel()
	// 1.5 × (launch + 0.3 s of warm-up) / 2 s, rounded, from 1 to 3.
	for launch, want := range map[time.Duration]int{800 * time.Millisecond: 1, 2400 * time.Millisecond: 2, time.Minute: 3} {
		l := searchtest.Small()
		l.Launch = launch
		for _, e := range phases(l.Run(newPlan(t, "quick", l, search.Budget{}), 1000), search.PhaseFinal) {
			if e.Trial.Windows != want {
				t.Errorf("launches of %v: %d windows in the finals, want %d", launch, e.Trial.Windows, want)
			}
		}
	}
}

// If int8 takes 20 s to launch and fp32 1 s, the expected launch time depends on the launched file.
// The budget is kept to within a window, and the rest of it suffices for finals.
func TestBudgetIsKeptWhereLaunchesDiffer(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	starts := map[search.Value]time.Duration{"int8": 20 * time.Second}
	l.Starts = func(c search.Candidate) time.Duration {
		v, _ := c.Get(search.KnobPrecision)
		return max(starts[v], time.Second)
	}
	for _, name := range plan.Names() {
		for _, budget := range []time.Duration{5 * time.Minute, 8 * time.Minute} {
			events := l.Run(newPlan(t, name, l, search.Budget{Time: budget}), 3000)
			last := events[len(events)-1]
			if last.Elapsed > budget+last.Trial.Window {
				t.Errorf("%s: ended after %v of %v with %v, which took %v to launch", name, last.Elapsed, budget, last.Trial.Candidate, last.Measurement.Times.Launch)
			}
			if finals := phases(events, search.PhaseFinal); len(finals) < 2 {
				t.Errorf("%s, %v: %d finals", name, budget, len(finals))
			}
		}
	}
}

// economist asks for a trial on a fresh launch, and knows one in the running process.
type economist struct{ *tour.Tour }

func (economist) Ask() search.Action { return search.Action{Trial: serving(true)} }

func (economist) AskWithin(affords func(search.Trial) bool) search.Action {
	return search.Action{Trial: serving(false), Stop: !affords(serving(false))}
}

func serving(isFresh bool) search.Trial {
	return search.Trial{Load: measure.Load{Concurrency: 1, BatchSize: 1}, Windows: 1, Window: time.Second, Fresh: isFresh, Phase: search.PhaseSearch}
}

// If the budget has no time left for an expensive launch, the search continues in the running
// process.
func TestRestOfTheBudgetIsUsed(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	l.Launch = 20 * time.Second
	s := searchtest.Settings(l, 50*time.Millisecond)
	s.Budget.Time = time.Minute
	p, err := plan.Around(s, func(l *standings.Ledger, _ *search.Candidates) plan.Explorer {
		return economist{tour.New(s, l, search.PhaseSearch, nil)}
	})
	if err != nil {
		t.Fatal(err)
	}
	events := phases(l.Run(p, 200), search.PhaseSearch)
	dear := slices.ContainsFunc(events, func(e search.Event) bool { return e.Trial.Fresh })
	if len(events) < 2 || dear {
		t.Errorf("%d trials of the search, a dear one among them: %v", len(events), dear)
	}
}

// If no configuration can satisfy the constraints, guided finds this out within a tenth of the
// budget. The finals end after they have confirmed it on two launches of the nearest. The other
// strategies have to try everything. All of them name the constraints that would have to change.
func TestWhatNothingSatisfiesEndsEarly(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	l.Noise = 0.05
	for _, name := range plan.Names() {
		s := searchtest.Settings(l, 100*time.Microsecond)
		s.Budget.Time = 20 * time.Minute
		p, err := plan.New(name, s)
		if err != nil {
			t.Fatal(err)
		}
		events := l.Run(p, 3000)
		last, why := events[len(events)-1], p.Ask().Why
		if name == "guided" && (last.Elapsed > s.Budget.Time/10 || !strings.Contains(why, "nothing can satisfy the constraints")) {
			t.Errorf("guided ends after %v of %v, because %q", last.Elapsed, s.Budget.Time, why)
		}
		trials := map[string]int{}
		for _, e := range phases(events, search.PhaseFinal) {
			trials[e.Trial.Candidate.Key()]++
		}
		for c, n := range trials {
			if n > 2 {
				t.Errorf("%s: %d finals of %s, which clearly misses the constraint", name, n, c)
			}
		}
		if len(trials) == 0 {
			t.Errorf("%s: no finals", name)
		}
		if _, ok := p.Leader(); ok {
			t.Errorf("%s: something leads", name)
		}
		text := strings.Join(p.Statement(), "\n")
		if !strings.Contains(text, "Nothing satisfies the limits. Nearest: ") || !strings.Contains(text, "A constraint would have to give: latency_p99 to ") {
			t.Errorf("%s states:\n%s", name, text)
		}
	}
}

func TestNewNamesEveryMistake(t *testing.T) {
	t.Parallel()
	good := searchtest.Settings(searchtest.Small(), time.Second)
	big := good
	for i := range 20 {
		big.Space.Knobs = append(big.Space.Knobs, search.Knob{Name: fmt.Sprint("k", i), Values: []search.Value{"1", "2", "3"}})
	}
	check := func(name string, s search.Settings, want ...string) {
		t.Helper()
		_, err := plan.New(name, s)
		if err == nil {
			t.Fatalf("%s: no error, want %q", name, want)
		}
		if diff := cmp.Diff(strings.Join(want, "\n"), err.Error()); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
	}
	check("genetic", good, `cannot plan campaign: unknown strategy "genetic"; allowed: ["guided" "grid" "random" "quick"]`)
	// 3^20 × 24 pools, too many to exclude the illegal ones, × 9 settings of the batcher.
	check("grid", big, `cannot plan campaign: the grid has 753145430616 candidates and no budget; give it one, list fewer values or knobs, or choose the strategy guided`)
	batchers := good
	batchers.Space.Knobs = slices.Clone(good.Space.Knobs)
	for i := range batchers.Space.Knobs {
		k := &batchers.Space.Knobs[i]
		for n := range 1000 {
			switch k.Name {
			case search.KnobMaxBatchSize:
				k.Values = append(slices.Clip(k.Values), search.IntValue(100+n))
			case search.KnobMaxQueueDelay:
				k.Values = append(slices.Clip(k.Values), search.DurationValue(time.Second+time.Duration(n)*time.Microsecond))
			}
		}
	}
	check("guided", batchers,
		`cannot plan campaign: the space has 1007010 settings of the batcher for each engine process; list fewer values of max_batch_size, preferred_batch_size or max_queue_delay`)
	check("grid", search.Settings{}, `cannot plan campaign: the goal has no objective`,
		`the load axis has the levels []; allowed: one or more, positive and ascending`,
		`the window is 0s; allowed: a positive length`)
}

// While nothing satisfies the constraints there is nothing to confirm, so the search gets the time
// of the finals, too.
func TestNothingIsKeptForFinalsOfNothing(t *testing.T) {
	t.Parallel()
	const budget = time.Minute
	l := searchtest.Small()
	s := searchtest.Settings(l, time.Microsecond)
	s.Budget.Time = budget
	p, err := plan.New("random", s)
	if err != nil {
		t.Fatal(err)
	}
	searched := phases(l.Run(p, 1000), search.PhaseSearch)
	if last := searched[len(searched)-1].Elapsed; last < budget*85/100 {
		t.Errorf("the search ends after %v of %v", last, budget)
	}
}

// The displayed decision after each trial is nearly the campaign's own. It is learned faster, and
// names the same answer in most cases, with the same figures.
func TestWhatIsShownIsNearlyTheDecision(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	l.Noise = 0.03
	all := l.Run(newPlan(t, "guided", l, search.Budget{Time: 2 * time.Minute}), 1000)
	p := newPlan(t, "guided", l, search.Budget{Time: 2 * time.Minute})
	same, n := 0, 0
	for i, e := range all {
		p.Tell(e)
		if i%3 != 2 {
			continue
		}
		shown, decided := p.SoFar().Answer(), p.Verdict().Answer()
		n++
		if shown.Candidate.Key() != decided.Candidate.Key() || shown.Load != decided.Load {
			continue
		}
		same++
		if d := shown.Score.Mean - decided.Score.Mean; d > 0.03 || d < -0.03 {
			t.Errorf("after %d trials %.3f is shown, and %.3f decided", i+1, shown.Score.Mean, decided.Score.Mean)
		}
	}
	if n < 10 || same < n*8/10 {
		t.Errorf("%d of %d times the same answer is shown", same, n)
	}
}
