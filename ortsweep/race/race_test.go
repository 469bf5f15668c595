package race

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/ort/sessionoption"
	"tuner/search"
)

// machine is a simulated machine. A candidate's figure is its true speed times the machine's drift,
// the luck of its session, and the noise of the window.
type machine struct {
	speed   func(search.Candidate) float64 // infer/s; 0: it does not start
	random  *rand.Rand
	noise   float64 // standard deviation of the log for a window of the shortest length
	spread  float64 // standard deviation of the log between sessions
	phase   float64 // of the drift
	shares  bool    // one engine process serves all candidates of an artifact, one after the other
	launch  time.Duration
	session time.Duration // session creation time, without the launch
	extra   time.Duration // additional time of every trial
	longer  bool          // windows of slow candidates are longer, as in package runner
	elapsed time.Duration
	alive   []simEngine // most recently used last
	luck    map[string]float64
	trials  int
}

// simEngine is a live engine process, with the key of its candidate.
type simEngine struct{ name, serves string }

// Additional times of a simulated trial if each candidate has its own engine process.
const (
	simLaunch = 1200 * time.Millisecond
	simExtra  = 350 * time.Millisecond
	simAlive  = 10
	simWindow = 250 * time.Millisecond
)

func newMachine(seed uint64, speed func(search.Candidate) float64) *machine {
	random := rand.New(rand.NewPCG(seed, 99))
	return &machine{speed: speed, random: random, noise: 0.03, spread: 0.01, phase: random.Float64() * 6, luck: map[string]float64{},
		launch: simLaunch, extra: simExtra}
}

// measure runs a trial.
func (m *machine) measure(t Trial) Outcome {
	m.trials++
	if t.Fresh {
		m.alive = nil
	}
	key := t.Candidate.Key()
	e := simEngine{name: key}
	if m.shares {
		e.name = t.Candidate.ArtifactKey()
	}
	if at := slices.IndexFunc(m.alive, func(live simEngine) bool { return live.name == e.name }); at >= 0 {
		e = m.alive[at]
		m.alive = slices.Delete(m.alive, at, at+1)
	} else {
		m.elapsed += m.launch
	}
	if e.serves != key {
		m.elapsed += m.session
		m.luck[key] = m.spread * m.random.NormFloat64()
		e.serves = key
	}
	speed := m.speed(t.Candidate)
	window := m.lasting(t.Window, speed)
	m.elapsed += m.extra + window
	if speed == 0 {
		return Outcome{Failure: "it does not start", Elapsed: m.elapsed}
	}
	m.alive = append(m.alive, e)
	m.alive = m.alive[max(0, len(m.alive)-simAlive):]
	// Half of the noise's variance does not depend on the window's length, since disturbances last
	// tenths of a second.
	share := 0.5 + 0.5*float64(simWindow)/float64(window)
	drift := 0.10 * math.Sin(m.phase+m.elapsed.Seconds()/20)
	log := drift + m.luck[key] + m.noise*math.Sqrt(share)*m.random.NormFloat64()
	return Outcome{Value: speed * math.Exp(log), Elapsed: m.elapsed}
}

// lasting returns the length of a window: at least five executions, and thirty if three times the
// requested length is enough.
func (m *machine) lasting(asked time.Duration, speed float64) time.Duration {
	if !m.longer || speed == 0 {
		return asked
	}
	execution := time.Duration(float64(time.Second) / speed)
	asked = max(asked, 5*execution)
	return min(max(asked, 30*execution), 3*asked)
}

// run runs a race on a machine to the end.
func run(t *testing.T, s Settings, m *machine) Result {
	t.Helper()
	r := New(s)
	for range 100_000 {
		a := r.Ask()
		if a.Stop {
			return r.Result()
		}
		r.Tell(m.measure(a.Trial))
	}
	t.Fatal("the race does not end")
	return Result{}
}

func knob(name string, values ...search.Value) search.Knob {
	scope, _ := search.KnobScope(name)
	return search.Knob{Name: name, Scope: scope, Values: values}
}

// usual reports whether a setting has the default value.
func usual(s search.Setting) bool {
	return slices.Contains([]string{"precision=fp32", "execution_provider=cpu", "execution_mode=sequential", "graph_optimization=all",
		"allow_spinning=true", "memory_arena=true", "memory_pattern=true"}, s.Knob+"="+string(s.Value))
}

// canonical drops default settings, and inter-op threads without parallel execution.
func canonical(c search.Candidate) (search.Candidate, string) {
	mode, _ := c.Get(sessionoption.ExecutionMode)
	settings := slices.DeleteFunc(c.Settings(), func(s search.Setting) bool {
		return usual(s) || s.Knob == sessionoption.InterOpThreads && mode != "parallel"
	})
	if len(settings) == 0 {
		return search.Candidate{}, ""
	}
	return search.NewCandidate(settings...), ""
}

// minilm is a space like that of MiniLM on two cores: threads 1, 2 or unset, and seven knobs with
// two values. It has 3·2⁷ = 384 distinct candidates.
func minilm(budget time.Duration, seed uint64) Settings {
	return Settings{
		Knobs: []search.Knob{
			knob(search.KnobExecutionProvider, "openvino"), knob(search.KnobPrecision, "int8"), knob(search.KnobIntraOpThreads, "1", "2"),
			knob(sessionoption.ExecutionMode, "parallel"), knob(sessionoption.GraphOptimization, "extended"), knob(sessionoption.AllowSpinning, "false"),
			knob(sessionoption.MemoryArena, "false"), knob(sessionoption.MemoryPattern, "false"),
		},
		Canonical: canonical, HigherBetter: true, Budget: budget, Window: simWindow, Seed: seed,
	}
}

// landscape draws true speeds with interactions that were observed. int8 is 2.3 times faster on cpu
// and slower on openvino. One thread halves the speed, but less for int8. The small knobs have
// small effects.
func landscape(random *rand.Rand) func(search.Candidate) float64 {
	provider := math.Log(0.9 + 0.3*random.Float64())
	int8 := math.Log(1.3 + random.Float64())
	thread1 := math.Log(0.55 + 0.6*random.Float64())
	thread1int8 := 0.2 * random.Float64()
	small := map[string]float64{}
	for _, name := range []string{"intra_op_threads=2", "execution_mode=parallel", "graph_optimization=extended", "allow_spinning=false",
		"memory_arena=false", "memory_pattern=false"} {
		small[name] = 0.04 * random.NormFloat64()
	}
	return func(c search.Candidate) float64 {
		log := 0.0
		_, quantized := c.Get(search.KnobPrecision)
		_, openvino := c.Get(search.KnobExecutionProvider)
		threads, _ := c.Get(search.KnobIntraOpThreads)
		switch {
		case quantized && openvino:
			log += provider - 0.4
		case quantized:
			log += int8
		case openvino:
			log += provider
		}
		if threads == "1" {
			log += thread1
			if quantized {
				log += thread1int8
			}
		}
		for _, s := range c.Settings() {
			log += small[s.Knob+"="+string(s.Value)]
		}
		return 100 * math.Exp(log)
	}
}

// every lists the distinct candidates of a space.
func every(s Settings) []search.Candidate {
	all := []search.Candidate{{}}
	seen := map[string]bool{"default": true}
	for _, k := range s.Knobs {
		for _, c := range all {
			for _, v := range k.Values {
				if with, _ := s.Canonical(c.With(k.Name, v)); !seen[with.Key()] {
					seen[with.Key()] = true
					all = append(all, with)
				}
			}
		}
	}
	return all
}

// In at least 95 % of the races, a sweep finds an answer within 2 % of that of an exhaustive
// measurement. It takes at most a fifth of its time. An exhaustive measurement has a launch and
// five windows of a second for each candidate.
func TestRaceFindsNearlyTheBest(t *testing.T) {
	t.Parallel()
	const races = 200
	found, slowest := 0, 0.0
	var misses []string
	for seed := range uint64(races) {
		random := rand.New(rand.NewPCG(seed, 7))
		speed := landscape(random)
		s := minilm(3*time.Minute, seed)
		all := every(s)
		exhaustive := time.Duration(len(all)) * (simLaunch + 5*(simExtra+time.Second))
		best := 0.0
		for _, c := range all {
			best = max(best, speed(c))
		}
		m := newMachine(seed, speed)
		result := run(t, s, m)
		slowest = max(slowest, m.elapsed.Seconds()/exhaustive.Seconds())
		if m.elapsed > s.Budget {
			t.Errorf("race %d took %v of its budget of %v", seed, m.elapsed, s.Budget)
		}
		if speed(result.Winner) >= 0.98*best {
			found++
		} else {
			misses = append(misses, fmt.Sprintf("%d: %.1f %% below: %s; %s", seed, 100*(1-speed(result.Winner)/best), result.Winner, result.Why))
		}
	}
	t.Logf("found in %d of %d, in at most %.1f %% of the exhaustive time", found, races, 100*slowest)
	if found < races*95/100 || slowest > 0.2 {
		t.Errorf("found in %d of %d races, longest %.2f of the exhaustive time\n%s", found, races, slowest, strings.Join(misses[:min(5, len(misses))], "\n"))
	}
}

// If nothing matters, noise wins in at most 5 % of the races, as the intervals promise. Two
// finalists, chosen by their figures, are measured again.
func TestNothingBeatsTheDefault(t *testing.T) {
	t.Parallel()
	const races = 200
	wrong := 0
	for seed := range uint64(races) {
		m := newMachine(seed, func(search.Candidate) float64 { return 100 })
		if result := run(t, minilm(2*time.Minute, seed), m); !result.Winner.IsDefault() {
			wrong++
		}
	}
	t.Logf("noise won %d of %d", wrong, races)
	if wrong > races*5/100 {
		t.Errorf("noise won %d of %d races", wrong, races)
	}
}

// A small space races at once, and every candidate gets a verdict.
func TestSmallSpaceRacesAtOnce(t *testing.T) {
	t.Parallel()
	s := Settings{Knobs: []search.Knob{knob(search.KnobPrecision, "fp32", "int8"), knob(search.KnobIntraOpThreads, "1", "2")},
		Canonical: canonical, HigherBetter: true, Budget: time.Minute, Window: simWindow, Seed: 1}
	m := newMachine(1, func(c search.Candidate) float64 {
		speed := 100.0
		if _, quantized := c.Get(search.KnobPrecision); quantized {
			speed *= 2
		}
		if threads, _ := c.Get(search.KnobIntraOpThreads); threads == "1" {
			speed *= 0.6
		}
		return speed
	})
	result := run(t, s, m)
	verdicts := map[string]Verdict{}
	for _, st := range result.Standings {
		verdicts[st.Candidate.Key()] = st.Verdict
	}
	if p, _ := result.Winner.Get(search.KnobPrecision); p != "int8" || !result.Confirmed {
		t.Errorf("winner is %s (%s)", result.Winner, result.Why)
	}
	for key, want := range map[string]Verdict{"default": Slower, "intra_op_threads=1": Dropped, "precision=int8 intra_op_threads=1": Dropped} {
		if verdicts[key] != want {
			t.Errorf("%s is %q, want %q", key, verdicts[key], want)
		}
	}
	if len(result.Standings) != 6 { // 2 precisions × threads unset, 1, 2
		t.Errorf("%d standings, want 6", len(result.Standings))
	}
}

func TestFailuresAreStandings(t *testing.T) {
	t.Parallel()
	s := Settings{Knobs: []search.Knob{knob(search.KnobIntraOpThreads, "1", "2")}, Canonical: canonical, HigherBetter: true,
		Budget: time.Minute, Window: simWindow, Seed: 1}
	result := run(t, s, newMachine(1, func(c search.Candidate) float64 {
		if threads, _ := c.Get(search.KnobIntraOpThreads); threads == "2" {
			return 0
		}
		return 100
	}))
	last := result.Standings[len(result.Standings)-1]
	if last.Candidate.Key() != "intra_op_threads=2" || last.Verdict != Failed || last.Reason != "it does not start" {
		t.Errorf("the failing candidate stands as %+v", last)
	}
}

func TestBrokenDefaultEndsTheRace(t *testing.T) {
	t.Parallel()
	result := run(t, minilm(time.Minute, 1), newMachine(1, func(search.Candidate) float64 { return 0 }))
	if result.Broken != "it does not start" || result.Confirmed {
		t.Errorf("result is %+v", result)
	}
}

// The race is a function of settings, seed and outcomes.
func TestRaceIsDeterministic(t *testing.T) {
	t.Parallel()
	speed := landscape(rand.New(rand.NewPCG(3, 7)))
	a := run(t, minilm(time.Minute, 3), newMachine(3, speed))
	b := run(t, minilm(time.Minute, 3), newMachine(3, speed))
	if diff := cmp.Diff(a, b, cmp.Comparer(func(a, b search.Candidate) bool { return a.Key() == b.Key() })); diff != "" {
		t.Errorf("two races differ:\n%s", diff)
	}
}

// After any interruption, the race has a result. Before the finals it is not called confirmed.
func TestInterruptedRaceHasAResult(t *testing.T) {
	t.Parallel()
	speed := landscape(rand.New(rand.NewPCG(4, 7)))
	r, m := New(minilm(time.Minute, 4)), newMachine(4, speed)
	for !r.Ask().Stop {
		before := r.Result()
		if before.Confirmed || before.Why == "" && len(before.Standings) > 3 {
			t.Fatalf("after %d trials: %+v", m.trials, before)
		}
		trial := r.Ask().Trial
		if diff := cmp.Diff(trial.Candidate.Key(), r.Ask().Trial.Candidate.Key()); diff != "" {
			t.Fatal("Ask changed the race")
		}
		r.Tell(m.measure(trial))
	}
}

// A budget that ends at any time, even in the middle of a round, gives a result.
func TestAnyBudgetHasAResult(t *testing.T) {
	t.Parallel()
	speed := landscape(rand.New(rand.NewPCG(8, 7)))
	for budget := time.Second; budget < time.Minute; budget += 300 * time.Millisecond {
		if result := run(t, minilm(budget, 8), newMachine(8, speed)); result.Why == "" || len(result.Standings) == 0 {
			t.Errorf("after %v: %+v", budget, result)
		}
	}
}

// The windows of slow models are longer than requested. The budget is still kept.
func TestSlowModelsKeepTheBudget(t *testing.T) {
	t.Parallel()
	for _, slower := range []float64{2, 5, 10, 30} {
		for seed := range uint64(40) {
			speed := landscape(rand.New(rand.NewPCG(seed, 7)))
			s := minilm(2*time.Minute, seed)
			m := newMachine(seed, func(c search.Candidate) float64 { return speed(c) / slower })
			m.longer = true
			if run(t, s, m); m.elapsed > s.Budget {
				t.Errorf("%g times slower, race %d took %v of its budget of %v", slower, seed, m.elapsed, s.Budget)
			}
		}
	}
}

// Each round of a heat has every survivor once, including the default. For latencies, lower is
// better.
func TestRoundsArePaired(t *testing.T) {
	t.Parallel()
	s := minilm(time.Minute, 5)
	s.HigherBetter = false
	r := New(s)
	m := newMachine(5, func(c search.Candidate) float64 { return 1 / landscape(rand.New(rand.NewPCG(5, 7)))(c) })
	rounds := map[[2]int][]string{}
	for a := r.Ask(); !a.Stop; a = r.Ask() {
		at := [2]int{a.Trial.Heat, a.Trial.Round}
		rounds[at] = append(rounds[at], a.Trial.Candidate.Key())
		r.Tell(m.measure(a.Trial))
	}
	incomplete := 0
	for at, keys := range rounds {
		distinct := slices.Compact(slices.Sorted(slices.Values(keys)))
		if len(distinct) != len(keys) {
			t.Errorf("heat %d round %d measures a candidate twice: %q", at[0], at[1], keys)
		}
		if !slices.Contains(keys, "default") {
			incomplete++
		}
	}
	if incomplete > 6 { // the deadline may cut the last round of each heat: four screens, a product, the finals
		t.Errorf("%d rounds without the default", incomplete)
	}
	if w := r.Result().Winner; w.IsDefault() {
		t.Errorf("no winner: %s", r.Result().Why)
	}
}

// Settings without an effect do not win together with one that has an effect.
func TestSuperfluousSettingsStayOut(t *testing.T) {
	t.Parallel()
	s := Settings{Knobs: []search.Knob{knob(search.KnobIntraOpThreads, "1", "2", "3", "4"), knob("session.a", "1"), knob("session.b", "1"), knob("session.c", "1")},
		Canonical: canonical, HigherBetter: true, Budget: 2 * time.Minute, Window: simWindow, Seed: 1}
	m := newMachine(1, func(c search.Candidate) float64 {
		if threads, _ := c.Get(search.KnobIntraOpThreads); threads == "1" {
			return 130
		}
		return 100
	})
	m.noise, m.spread = 0.002, 0
	if result := run(t, s, m); result.Winner.Key() != "intra_op_threads=1" {
		t.Errorf("winner is %s (%s)", result.Winner, result.Why)
	}
}

// A budget that ends before the finals proves nothing. The result says so about the candidates
// ahead and about the default.
func TestUnprovenIsNoVictoryOfTheDefault(t *testing.T) {
	t.Parallel()
	s := Settings{Knobs: []search.Knob{knob(search.KnobIntraOpThreads, "1")}, Canonical: canonical, HigherBetter: true, Budget: 6 * time.Second,
		Window: simWindow, Seed: 1}
	result := run(t, s, newMachine(1, func(c search.Candidate) float64 { return 100 + 100*float64(len(c.Settings())) }))
	verdicts := map[string]Verdict{}
	for _, st := range result.Standings {
		verdicts[st.Candidate.Key()] = st.Verdict
	}
	if diff := cmp.Diff(map[string]Verdict{"default": Base, "intra_op_threads=1": Ahead}, verdicts); diff != "" || result.Confirmed {
		t.Errorf("%s (-want +got):\n%s", result.Why, diff)
	}
}

// One bad window of the default does not end the race. Two in a row do.
func TestDefaultMayFailOnce(t *testing.T) {
	t.Parallel()
	for failures, broken := range map[int]bool{1: false, 2: true} {
		r, m, n := New(minilm(time.Minute, 6)), newMachine(6, func(search.Candidate) float64 { return 100 }), 0
		for a := r.Ask(); !a.Stop; a = r.Ask() {
			o := m.measure(a.Trial)
			if m.trials > 10 && a.Trial.Candidate.IsDefault() && n < failures {
				n++
				o = Outcome{Failure: "timeout", Elapsed: m.elapsed}
			}
			r.Tell(o)
		}
		if got := r.Result().Broken != ""; got != broken {
			t.Errorf("%d failures: broken %t, want %t", failures, got, broken)
		}
	}
}
