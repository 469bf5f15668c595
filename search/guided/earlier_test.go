package guided

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/guided/service"
)

// launches counts the started engine processes.
func launches(events []search.Event) int {
	n := 0
	for _, e := range events {
		if e.Measurement.Times.Launch > 0 {
			n++
		}
	}
	return n
}

// regret returns how much throughput a search's answer loses, as a share of the best within the
// limit. It returns 1 if the answer exceeds the limit.
func (m machine) regret(t *testing.T, g *Guided, limit float64) float64 {
	t.Helper()
	ranked := g.Ranked()
	if len(ranked) == 0 || !ranked[0].Point.Passes() {
		return 1
	}
	x, _, p99 := m.truth(g, ranked[0].Candidate, ranked[0].Load)
	if p99 > 1.02*limit {
		return 1
	}
	return 1 - x/m.best(t, limit)
}

// With the figures of a first campaign on the same machine, under another course of the noise, a
// second one needs fewer trials and launches. Its answers are as good.
func TestEarlierCampaignSavesTrials(t *testing.T) {
	t.Parallel()
	const seeds = 8
	var trials, launched [2]int // without and with
	var missed [2][]float64
	for seed := range uint64(seeds) {
		first, m := playTypical(t, seed), ofTypical(seed)
		m.visit, m.slower = 1, 0.05
		for i, earlier := range [][]search.Earlier{nil, {{From: "first", Same: true, Events: first.events}}} {
			m.settings.Earlier = earlier
			g, events := m.run(t, 120)
			trials[i], launched[i] = trials[i]+len(events), launched[i]+launches(events)
			regret := m.regret(t, g, first.limit)
			missed[i] = append(missed[i], regret)
			t.Logf("seed %d, %d earlier campaigns: regret %.3f, %d trials, %d launches", seed, len(earlier), regret, len(events), launches(events))
		}
	}
	if 5*trials[1] > 4*trials[0] || 2*launched[1] > launched[0] {
		t.Errorf("%d trials and %d launches with an earlier campaign, %d and %d without", trials[1], launched[1], trials[0], launched[0])
	}
	worse := make([]float64, seeds)
	floats.SubTo(worse, missed[1], missed[0])
	mean, deviation := stat.MeanStdDev(worse, nil)
	if mean > 2*stat.StdErr(deviation, seeds) && stat.Mean(missed[1], nil) > 0.02 {
		t.Errorf("the answers miss %.3f of the best with an earlier campaign, %.3f without", missed[1], missed[0])
	}
}

// The machine is slower by e^0.2 than before. The search learns this from its repeated
// measurements, and reports it, also for cost as the objective.
func TestPaceIsLearned(t *testing.T) {
	t.Parallel()
	for _, metric := range []measure.Metric{measure.Throughput, measure.Cost} {
		t.Run(string(metric), func(t *testing.T) {
			t.Parallel()
			testPace(t, metric)
		})
	}
}

func testPace(t *testing.T, metric measure.Metric) {
	t.Helper()
	m := typical(3, 10)
	m.settings.Goal.Objective.Terms = []search.Term{{Metric: metric, Weight: 1}}
	m.settings.Goal.Price = 0.36
	_, first := m.run(t, 60)
	m.visit, m.slower = 1, 0.2
	m.settings.Earlier = []search.Earlier{{From: "out/first", Same: true, Events: first}}
	g, _ := m.run(t, 60)
	reused := g.statement().Reused
	if len(reused) != 1 || reused[0].Pace == nil || reused[0].Curves == 0 || reused[0].Points == 0 {
		t.Fatalf("reused is %+v", reused)
	}
	if pace := *reused[0].Pace; math.Abs(math.Log(pace.Value)+0.2) > 0.06 || pace.Lo > pace.Value || pace.Hi < pace.Value {
		t.Errorf("pace is %+v, want e^-0.2 = 0.82", pace)
	}
	if text := strings.Join(g.Notes(), "\n"); !strings.Contains(text, "Known from the campaign in out/first: ") ||
		!strings.Contains(text, " points; the machine now serves 0.8") {
		t.Errorf("the statement does not say what is known:\n%s", text)
	}
}

// A default that equals no candidate shows the pace, too. Only the default is sure to be measured
// again.
func TestPaceOfADefaultOutside(t *testing.T) {
	t.Parallel()
	m := typical(5, 10)
	m.settings.Space.Facts.Base[search.KnobIntraOpThreads] = "3"
	_, first := m.run(t, 40)
	m.visit, m.slower = 1, 0.2
	m.settings.Earlier = []search.Earlier{{From: "out/first", Same: true, Events: first}}
	g, _ := m.run(t, 4) // only of the default
	if pace := g.statement().Reused[0].Pace; pace == nil || math.Abs(math.Log(pace.Value)+0.2) > 0.1 {
		t.Errorf("pace is %+v, want about e^-0.2 = 0.82", pace)
	}
}

// A resumed campaign reads the reused data from its journal, and decides as before.
func TestEarlierCampaignFromAJournal(t *testing.T) {
	t.Parallel()
	m := typical(4, 0.03)
	_, first := m.run(t, 60)
	m.visit = 1
	m.settings.Earlier = []search.Earlier{{From: "a", Same: true, Events: first}, {From: "b", Events: first}}
	_, want := m.run(t, 40)
	var read []search.Earlier
	if err := json.Unmarshal([]byte(text(t, m.settings.Earlier)), &read); err != nil {
		t.Fatal(err)
	}
	m.settings.Earlier = read
	_, got := m.run(t, 40)
	if text(t, got) != text(t, want) {
		t.Errorf("the campaign goes another way: %d trials instead of %d", len(got), len(want))
	}
}

// On another machine threads hardly help, so one thread each is best there, and everything takes
// twice as long. As a prior this costs little here, where four threads are far better.
func TestMisleadingPrior(t *testing.T) {
	t.Parallel()
	simulated := &sync.Map{}
	for seed := range uint64(2) {
		alone, m := playTypical(t, seed), ofTypical(seed)
		other := typical(seed+100, alone.limit)
		other.simulated, other.power, other.slower = simulated, 0.2, math.Ln2
		_, there := other.run(t, 120)
		m.settings.Earlier = []search.Earlier{{From: "there", Events: there}}
		g, told := m.run(t, 120)
		regret := m.regret(t, g, alone.limit)
		t.Logf("seed %d: regret %.3f after %d trials, %.3f after %d without the prior", seed, regret, len(told), alone.regret, len(alone.events))
		if regret > max(0.05, alone.regret) {
			t.Errorf("seed %d: regret %.3f, %.3f without the prior", seed, regret, alone.regret)
		}
	}
}

// Each engine has a rest that no value explains. Another machine, three times as slow, shows it in
// part.
func TestForecastsFromAnotherMachine(t *testing.T) {
	t.Parallel()
	m := typical(1, 0.05)
	misses := func(reuse bool) (sum, deviation float64) {
		g := newSmall(t, nil)
		rest := func(e *pools.Engine) float64 { return 0.15 * math.Cos(2*float64(e.Index())) }
		scaled := func(e *pools.Engine, factor float64) service.Times {
			c := m.curve(g, e.Pools()[0].Settings())
			for i := range c.Alone {
				c.Alone[i] *= factor * math.Exp(rest(e))
			}
			return service.New(c.Sizes, c.Alone, []float64{0.05}, 1)
		}
		for _, e := range g.pools.Engines() {
			if reuse {
				there := scaled(e, 3)
				g.predictor.Observe(e, there.Curve(), 1)
			}
		}
		for e := g.pools.Unexplored(g.pools.Experience()); e != nil; e = g.pools.Unexplored(g.pools.Experience()) {
			*e.Alone() = scaled(e, 1)
		}
		g.predictor.ForecastEngines()
		for _, e := range g.pools.Engines() {
			if !e.IsOpen() {
				f, _ := g.predictor.Forecast(e)
				known := scaled(e, 1)
				sum += math.Abs(math.Log(f.Curve.Alone[0] / known.Curve().Alone[0]))
				deviation += f.Deviation
			}
		}
		return sum, deviation
	}
	sum, deviation := misses(true)
	blind, vague := misses(false)
	if sum > 0.8*blind || deviation >= vague {
		t.Errorf("forecasts miss by %.3f (they say %.3f) with another machine's curves, by %.3f (%.3f) without", sum, deviation, blind, vague)
	}
}

// Beyond the batches of an earlier campaign its curve continues as a line, so that smaller batches
// do not bound larger ones.
func TestInheritedCurves(t *testing.T) {
	t.Parallel()
	curve := func(largest int) service.Times {
		var sizes []int
		var seconds, spreads []float64
		for size := 1; size <= largest; size *= 2 {
			sizes, seconds, spreads = append(sizes, size), append(seconds, 0.004+0.001*float64(size)), append(spreads, 0.05)
		}
		return service.New(sizes, seconds, spreads, 1)
	}
	var most []float64
	for _, largest := range []int{8, 32} {
		g := newSmall(t, nil)
		p := g.pools.All()[0]
		p.Engine().Alone().Inherit(curve(largest))
		g.predictor.Refresh(p)
		o := g.predictor.Outline(p)
		most = append(most, o.Most[o.UpTo(32)])
	}
	if math.Abs(most[0]-most[1]) > 1e-6 || math.Abs(most[1]-32/0.036) > 1e-6 {
		t.Errorf("batches of 32 do %v inferences/s at most, want %.1f", most, 32/0.036)
	}
}

// Earlier failures may work now, and configurations outside the space are not taken over.
func TestFailuresAreNotReused(t *testing.T) {
	t.Parallel()
	m := typical(2, 0.05)
	m.fail = func(search.Trial) *measure.Failure { return &measure.Failure{Stage: measure.StageStart, Reason: "no"} }
	_, first := m.run(t, 40)
	m.fail = nil
	m.settings.Earlier = []search.Earlier{{From: "out/broken", Same: true, Events: first}}
	g, _ := m.run(t, 120)
	if ranked := g.Ranked(); len(ranked) == 0 || !ranked[0].Point.Passes() {
		t.Error("nothing passes")
	}
	if text := strings.Join(g.Notes(), "\n"); !strings.Contains(text, "Nothing that the campaign in out/broken measured could be used.") {
		t.Errorf("the statement is:\n%s", text)
	}
}

func TestAdoptEvents(t *testing.T) {
	t.Parallel()
	space := small(0.05).Space
	check := func(name string, want bool, change func(*search.Event)) {
		t.Helper()
		e := search.Event{Trial: search.Trial{Load: measure.Load{Concurrency: 3, BatchSize: 1}, Phase: search.PhaseFinal}}
		change(&e)
		if _, got := adopt(space, e); got != want {
			t.Errorf("%s: adopted %t, want %t", name, got, want)
		}
	}
	check("of a load between the levels", true, func(*search.Event) {})
	check("failed", false, func(e *search.Event) { e.Measurement.Failure = &measure.Failure{} })
	check("client batch", false, func(e *search.Event) { e.Trial.Load.BatchSize = 2 })
	check("rate", false, func(e *search.Event) { e.Trial.Load = measure.Load{RequestRate: 10, BatchSize: 1} })
	check("service trial", true, func(e *search.Event) { e.Trial.Phase, e.Trial.Load.BatchSize = search.PhaseService, 8 })
	check("knob that is not in the space", false, func(e *search.Event) {
		e.Trial.Candidate = search.NewCandidate(search.Setting{Knob: "session.x", Value: "1"})
	})
}
