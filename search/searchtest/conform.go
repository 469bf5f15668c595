package searchtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

// longest is the number of trials after which a campaign counts as endless.
const longest = 3000

// Conform checks the contract of a campaign's strategy, on variants of a machine and several
// budgets:
//   - Ask changes nothing.
//   - Equal settings and events give equal actions, also after the events went through the
//     journal's encoding.
//   - The default comes first.
//   - Candidates (or first stages of them) and loads belong to the space, and service trials to its
//     engine processes.
//   - The campaign keeps the budget, and ends.
func Conform(t *testing.T, l Landscape, make func(search.Settings) (search.Strategy, error)) {
	t.Helper()
	for name, c := range cases(l) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh := func() search.Strategy {
				s, err := make(c.settings)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			events := c.machine.Run(fresh(), longest)
			if len(events) == longest {
				t.Fatalf("no end after %d trials", longest)
			}
			checkTrials(t, c.settings, events)
			checkBudget(t, c.settings.Budget, events)
			checkReplay(t, fresh, events)
			if c.settings.Budget.Trials > 0 { // few events suffice: the encoding takes longer than all other checks
				checkReplay(t, fresh, journaled(t, events))
			}
		})
	}
}

type testCase struct {
	machine  Landscape
	settings search.Settings
}

func cases(machine Landscape) map[string]testCase {
	failing := machine
	failing.Fail = func(t search.Trial) *measure.Failure {
		instances, _ := t.Candidate.Get(search.KnobInstanceCount)
		switch {
		case instances == "2":
			return &measure.Failure{Stage: measure.StageStart, Reason: "no"}
		case instances == "3" && t.Load.Concurrency > 8:
			return &measure.Failure{Stage: measure.StageHang, Reason: "no answer"}
		}
		return nil
	}
	dead := machine
	dead.Fail = func(search.Trial) *measure.Failure { return &measure.Failure{Stage: measure.StageLoad, Reason: "no"} }
	noisy := machine
	noisy.Noise = 0.1
	tests := map[string]testCase{}
	add := func(name string, m Landscape, b search.Budget, change func(*search.Settings)) {
		s := Settings(m, 50*time.Millisecond)
		s.Budget = b
		if change != nil {
			change(&s)
		}
		tests[name] = testCase{m, s}
	}
	add("no budget", machine, search.Budget{}, nil)
	for _, d := range []time.Duration{time.Second, 10 * time.Second, 30 * time.Second, 2 * time.Minute} {
		add(fmt.Sprint("budget ", d), machine, search.Budget{Time: d}, nil)
	}
	for _, n := range []int{1, 2, 5, 20} {
		add(fmt.Sprint(n, " trials"), machine, search.Budget{Trials: n}, nil)
	}
	add("noise", noisy, search.Budget{Time: time.Minute}, nil)
	add("failures", failing, search.Budget{Time: time.Minute}, nil)
	add("everything fails", dead, search.Budget{}, nil)
	add("nothing satisfies", machine, search.Budget{Time: time.Minute}, func(s *search.Settings) {
		s.Goal.Constraints = []search.Constraint{AtMost(measure.LatencyP99, 1e-6)}
	})
	add("latency", machine, search.Budget{}, func(s *search.Settings) {
		s.Goal.Objective.Terms = []search.Term{{Metric: measure.LatencyP99, Weight: 1}}
		least := 300.0
		s.Goal.Constraints = []search.Constraint{{Metric: measure.Throughput, Min: &least}}
	})
	add("weights", machine, search.Budget{}, func(s *search.Settings) {
		s.Goal.Objective.Terms = []search.Term{{Metric: measure.Throughput, Weight: 10}, {Metric: measure.LatencyP99, Weight: 5}}
	})
	add("one load", machine, search.Budget{}, func(s *search.Settings) {
		s.Space.Load = search.LoadAxis{Levels: []float64{8}, BatchSize: 1}
	})
	turns := func(s *search.Settings) { s.Turns = true }
	add("turns", machine, search.Budget{}, turns)
	add("turns and 10 s", machine, search.Budget{Time: 10 * time.Second}, turns)
	add("turns and 2 min", machine, search.Budget{Time: 2 * time.Minute}, turns)
	add("turns and 20 trials", machine, search.Budget{Trials: 20}, turns)
	add("turns and failures", failing, search.Budget{Time: time.Minute}, turns)
	add("only the default", machine, search.Budget{}, func(s *search.Settings) { s.Space.Knobs = nil })
	return tests
}

// Settings returns a space of 2 precisions × 3 thread counts × 4 instance counts × 5 batch sizes ×
// 2 delays. The concurrency is any from 1 to 64. The goal is the highest throughput at a limited
// p99.
func Settings(l Landscape, p99 time.Duration) search.Settings {
	knob := func(name string, values ...search.Value) search.Knob {
		scope, _ := search.KnobScope(name)
		return search.Knob{Name: name, Scope: scope, Values: values}
	}
	return search.Settings{
		Space: search.Space{
			Knobs: []search.Knob{
				knob(search.KnobPrecision, "fp32", "int8"),
				knob(search.KnobIntraOpThreads, "1", "2", "4"),
				knob(search.KnobInstanceCount, "1", "2", "3", "4"),
				knob(search.KnobMaxBatchSize, "1", "2", "4", "8", "16"),
				knob(search.KnobMaxQueueDelay, "0us", "100us"),
			},
			Load:  search.LoadAxis{Levels: []float64{1, 2, 4, 8, 16, 32, 64}, Any: true, BatchSize: 1},
			Facts: l.Facts(),
		},
		Goal: search.Goal{
			Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
			Constraints: []search.Constraint{AtMost(measure.LatencyP99, p99.Seconds())},
		},
		Seed:   1,
		Window: time.Second,
	}
}

// AtMost returns an upper bound in the metric's base unit.
func AtMost(m measure.Metric, limit float64) search.Constraint {
	return search.Constraint{Metric: m, Max: &limit}
}

func checkTrials(t *testing.T, s search.Settings, events []search.Event) {
	t.Helper()
	if len(events) == 0 || !events[0].Trial.Candidate.IsDefault() || events[0].Trial.Phase != search.PhaseDefault {
		t.Error("the default configuration is not measured first")
	}
	legal := map[string]bool{search.Candidate{}.Key(): true}
	pools := map[string]bool{search.Candidate{}.PoolKey(): true}
	for _, c := range s.Space.Candidates().All() {
		legal[c.Key()], legal[s.Space.FirstStage(c).Key()], pools[c.PoolKey()] = true, true, true
	}
	axis := s.Space.Load
	order := map[search.Phase]int{search.PhaseDefault: 0, search.PhaseSearch: 1, search.PhaseService: 1, search.PhaseFinal: 2, search.PhaseLoadCurve: 2}
	phase := 0
	for i, e := range events {
		level, serves := e.Trial.Load.Level(), e.Trial.Phase == search.PhaseService
		switch now := order[e.Trial.Phase]; {
		case serves && !(pools[e.Trial.Candidate.PoolKey()] && isService(e.Trial)):
			t.Errorf("trial %d: %+v is no service trial of the space's engine processes", i, e.Trial)
		case !serves && !legal[e.Trial.Candidate.Key()]:
			t.Errorf("trial %d: %v is no candidate of the space", i, e.Trial.Candidate)
		case !serves && (axis.AtLeast(level) != level || axis.AtMost(level) != level):
			t.Errorf("trial %d: %v is no load of the axis", i, e.Trial.Load)
		case e.Trial.Windows < 1 || e.Trial.Window <= 0:
			t.Errorf("trial %d: has %d windows of %v", i, e.Trial.Windows, e.Trial.Window)
		case now < phase:
			t.Errorf("trial %d: phase %s after %s", i, e.Trial.Phase, events[i-1].Trial.Phase)
		default:
			phase = now
		}
	}
}

// isService reports whether a trial is a valid service trial: one window for each of its ascending
// sizes.
func isService(t search.Trial) bool {
	ascending := slices.IsSorted(t.Sizes) && len(slices.Compact(slices.Clone(t.Sizes))) == len(t.Sizes)
	return len(t.Sizes) > 0 && ascending && t.Sizes[0] >= 1 && t.Windows == len(t.Sizes)*max(1, len(t.Kinds)) && t.Window > 0 &&
		t.Load == measure.Load{Concurrency: max(1, t.Load.Concurrency), BatchSize: t.Sizes[0]}
}

// checkBudget always allows the first trial.
func checkBudget(t *testing.T, b search.Budget, events []search.Event) {
	t.Helper()
	if n := len(events); n > 1 && b.Trials > 0 && n > b.Trials {
		t.Errorf("%d trials with a budget of %d", n, b.Trials)
	}
	if last := events[len(events)-1]; len(events) > 1 && b.Time > 0 && last.Elapsed > b.Time+last.Trial.Window {
		t.Errorf("ended after %v with a budget of %v", last.Elapsed, b.Time)
	}
}

// checkReplay tells the events to another strategy, as a resumed campaign does, and asks twice
// before each.
func checkReplay(t *testing.T, fresh func() search.Strategy, events []search.Event) {
	t.Helper()
	s := fresh()
	for i := 0; i < len(events); {
		first, second := s.Ask(), s.Ask()
		if a, b := text(t, first), text(t, second); a != b {
			t.Fatalf("trial %d: Ask answers\n%s\nthen\n%s", i, a, b)
		}
		trials := first.Trials()
		if len(trials) == 0 || i+len(trials) > len(events) {
			t.Fatalf("trial %d of %d: replay asks for %s", i, len(events), text(t, first))
		}
		for _, trial := range trials {
			if a, b := text(t, trial), text(t, events[i].Trial); a != b {
				t.Fatalf("trial %d: replay asks for\n%s\nthe campaign asked for\n%s", i, a, b)
			}
			s.Tell(events[i])
			i++
		}
	}
	if a := s.Ask(); !a.Stop || a.Why == "" {
		t.Errorf("at the end the replay asks for %v, or gives no reason for its end", text(t, a))
	}
}

// journaled returns the events after a round trip through a journal.
func journaled(t *testing.T, events []search.Event) []search.Event {
	t.Helper()
	var read []search.Event
	if err := json.Unmarshal([]byte(text(t, events)), &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
