package plan_test

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

// served holds the figures of a landscape's configuration at a load.
type served struct {
	throughput, latency, memory float64 // inferences/s, s, bytes
}

// within reports whether a latency keeps a limit in seconds, within the resolution of a histogram's
// buckets.
func (s served) within(limit float64) bool { return s.latency <= 1.002*limit }

// question is a goal with its meaning: the score of a configuration; false if it misses the
// constraints. The score is implemented again here. So the test compares the answer with the best
// of all configurations at all loads, independently of the program.
type question struct {
	machine searchtest.Landscape
	goal    search.Goal
	load    search.LoadAxis // the usual one without levels
	means   func(served) (float64, bool)
	// vague: largest expected gain of the best over guided's answer, if nothing predicts the
	// machine; 0: the usual one
	vague float64
}

func questions() map[string]question {
	term := func(m measure.Metric, weight float64) search.Term { return search.Term{Metric: m, Weight: weight} }
	atLeast := func(x float64) search.Constraint { return search.Constraint{Metric: measure.Throughput, Min: &x} }
	goal := func(c search.Constraint, terms ...search.Term) search.Goal {
		return search.Goal{Objective: search.Objective{Terms: terms}, Constraints: []search.Constraint{c}, Price: 0.4}
	}
	p99 := func(limit float64) search.Constraint { return searchtest.AtMost(measure.LatencyP99, limit) }
	perMillion := func(x float64) float64 { return 0.4 / 3600 / x * 1e6 }
	rates := search.LoadAxis{Rate: true, Any: true, Levels: []float64{100, 200, 400, 800, 1600, 3200, 6400}, BatchSize: 1}
	small, quick, narrow := searchtest.Small(), searchtest.Small(), searchtest.Small()
	narrow.Path = 900 // less than half of the best's throughput
	hungry := searchtest.Small()
	// one instance takes 70 MB plus 2 MB per row: 102 MB with batches of 16, 86 MB with 8
	hungry.Row = 2e6
	quick.Fixed, quick.PerItem = 60*time.Microsecond, 20*time.Microsecond // int8 on four threads takes 16 µs
	return map[string]question{
		"p99 with a least throughput": {small, goal(atLeast(1500), term(measure.LatencyP99, 1)), search.LoadAxis{},
			func(s served) (float64, bool) { return -math.Log(s.latency), s.throughput >= 1500 }, 0},
		"mean latency at a highest cost": {small, goal(searchtest.AtMost(measure.Cost, perMillion(1500)), term(measure.LatencyAvg, 1)), search.LoadAxis{},
			func(s served) (float64, bool) { return -math.Log(s.latency), s.throughput >= 1500 }, 0},
		"throughput 3, memory 1": {small, goal(p99(0.05), term(measure.Throughput, 3), term(measure.Memory, 1)), search.LoadAxis{},
			func(s served) (float64, bool) { return 3*math.Log(s.throughput) - math.Log(s.memory), s.within(0.05) }, 0},
		"memory with a least throughput": {small, goal(atLeast(1500), term(measure.Memory, 1)), search.LoadAxis{},
			func(s served) (float64, bool) { return -math.Log(s.memory), s.throughput >= 1500 }, 0},
		"throughput in 90 MB": {hungry, goal(searchtest.AtMost(measure.Memory, 90e6), term(measure.Throughput, 1)), search.LoadAxis{},
			func(s served) (float64, bool) { return math.Log(s.throughput), s.memory <= 90e6 }, 0},
		"throughput 2, memory 1, by the batch": {hungry, goal(p99(0.05), term(measure.Throughput, 2), term(measure.Memory, 1)), search.LoadAxis{},
			func(s served) (float64, bool) { return 2*math.Log(s.throughput) - math.Log(s.memory), s.within(0.05) }, 0},
		"cost": {small, goal(p99(0.05), term(measure.Cost, 1)), search.LoadAxis{},
			func(s served) (float64, bool) { return -math.Log(perMillion(s.throughput)), s.within(0.05) }, 0},
		"request rate": {small, goal(p99(0.02), term(measure.Throughput, 1)), rates,
			func(s served) (float64, bool) { return math.Log(s.throughput), s.within(0.02) }, 0.2},
		"request rate on a narrow path": {narrow, goal(p99(0.02), term(measure.Throughput, 1)), rates,
			func(s served) (float64, bool) { return math.Log(s.throughput), s.within(0.02) }, 0.2},
		"p99.9 of less than a millisecond": {quick, goal(searchtest.AtMost("latency_p99.9", 0.0004), term(measure.Throughput, 1)), search.LoadAxis{},
			func(s served) (float64, bool) { return math.Log(s.throughput), s.within(0.0004) }, 0},
	}
}

// best returns the best score of all configurations at all loads.
func (q question) best(s search.Settings) float64 {
	best := math.Inf(-1)
	candidates := s.Space.Candidates().All()
	axis, step := s.Space.Load, 1.0
	if axis.Rate {
		step = 10
	}
	for _, c := range append(candidates, search.Candidate{}) {
		for level := axis.Levels[0]; level <= axis.Levels[len(axis.Levels)-1]; level += step {
			if score, ok := q.means(q.serve(c, axis.At(level))); ok {
				best = max(best, score)
			}
		}
	}
	return best
}

func (q question) serve(c search.Candidate, load measure.Load) served {
	throughput, latency := q.machine.Serve(c, load)
	return served{throughput, latency.Seconds(), float64(q.machine.Memory(c))}
}

// For any objective, constraints and load, the answer is the best within the resolution of the
// tried loads. Neighbouring loads in a closed loop differ by a quarter.
func TestAnyObjectiveIsAnswered(t *testing.T) {
	t.Parallel()
	for name, q := range questions() {
		for strategy, worst := range map[string]float64{"guided": 0.03, "grid": 0.08} {
			t.Run(name+"/"+strategy, func(t *testing.T) {
				t.Parallel()
				// near its capacity a server's percentiles rise steeply, so a load that keeps the
				// limit for sure is well below
				if q.vague > 0 {
					worst = q.vague
				}
				s := searchtest.Settings(q.machine, time.Second)
				s.Goal, s.Confidence = q.goal, 0.6 // the answer may be near a limit, like the best
				if q.load.Levels != nil {
					s.Space.Load = q.load
				}
				p, err := plan.New(strategy, s)
				if err != nil {
					t.Fatal(err)
				}
				events := q.machine.Run(p, 3000)
				if next := p.Ask(); !next.Stop {
					t.Fatalf("no end after %d trials: %s", len(events), next.Why)
				}
				leader, ok := p.Leader()
				if !ok {
					t.Fatalf("no leader after %d trials", len(events))
				}
				got := q.serve(leader.Candidate, leader.Load)
				score, passes := q.means(got)
				if gain := s.Goal.Objective.Gain(score, q.best(s)); !passes || gain > worst {
					t.Errorf("%v at %v does %+v, which passes: %t, after %d trials; the best is better by %.1f %%", leader.Candidate, leader.Load, got, passes,
						len(events), 100*gain)
				}
			})
		}
	}
}

// A process keeps the memory of its largest batches. A configuration with smaller ones is judged by
// its own memory: from service trials, or else from its own process.
func TestMemoryIsTheConfigurationsOwn(t *testing.T) {
	t.Parallel()
	for strategy, needsProcesses := range map[string]bool{"guided": false, "random": true} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			checkOwnMemory(t, strategy, needsProcesses)
		})
	}
}

func checkOwnMemory(t *testing.T, strategy string, needsProcesses bool) {
	t.Helper()
	q := questions()["throughput in 90 MB"]
	s := searchtest.Settings(q.machine, time.Second)
	s.Goal, s.Confidence = q.goal, 0.6 // the answer may be near a limit, like the best
	p, err := plan.New(strategy, s)
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, e := range q.machine.Run(p, 3000) {
		if e.Trial.Fresh && e.Trial.Phase == search.PhaseSearch {
			own++
		}
	}
	if own > 0 != needsProcesses {
		t.Errorf("%d trials of the search had a process of their own", own)
	}
	best := p.Verdict().Answer()
	judged := best.Values[measure.Memory].Value
	if held := q.machine.Memory(best.Candidate); math.Abs(judged/float64(held)-1) > 0.02 || held > 90e6 {
		t.Errorf("the answer %v takes %d bytes, and is judged by %g", best.Candidate, held, judged)
	}
}
