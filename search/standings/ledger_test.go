package standings_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/searchtest"
	"tuner/search/standings"
)

// told adds the outcome of a configuration at a concurrency. A throughput of 0 is a failure to
// start.
func told(l *standings.Ledger, name search.Value, concurrency int, throughput float64, latency time.Duration) {
	t := search.Trial{
		Candidate: search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: name}),
		Load:      measure.Load{Concurrency: concurrency, BatchSize: 1},
		Windows:   1,
	}
	m := searchtest.Measured(t, throughput, latency)
	if throughput == 0 {
		m = measure.Measurement{Failure: &measure.Failure{Stage: measure.StageStart, Reason: "no"}}
	}
	l.Add(search.Event{Trial: t, Measurement: m})
}

// within is the goal of the highest throughput within a p99 latency.
func within(p99 float64) search.Goal {
	return search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{searchtest.AtMost(measure.LatencyP99, p99)},
	}
}

func TestLedgerRanksConfigurationsByTheirBestLoad(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	l := standings.NewLedger(within(0.050))
	if _, ok := l.Leader(); ok || !math.IsInf(l.Lead(), -1) {
		t.Error("an empty ledger has a leader")
	}
	told(l, "far", 8, 900, 100*ms)
	told(l, "near", 8, 100, 55*ms)
	told(l, "dead", 8, 0, 0)
	if leader, ok := l.Leader(); ok {
		t.Errorf("nothing passes, but %v leads", leader.Candidate)
	}
	told(l, "good", 8, 300, 20*ms)
	told(l, "good", 16, 350, 60*ms) // too slow: 8 in flight remain its best load
	told(l, "best", 4, 320, 20*ms)
	told(l, "best", 8, 400, 30*ms)
	var got []string
	for _, s := range l.Ranked() {
		got = append(got, s.Candidate.Key()+" at "+s.Load.String())
	}
	want := []string{
		"instance_count=best at concurrency 8", "instance_count=good at concurrency 8",
		"instance_count=near at concurrency 8", "instance_count=far at concurrency 8", "instance_count=dead at concurrency 8",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("ranking (-want +got):\n" + diff)
	}
	leader, ok := l.Leader()
	if !ok || leader.Candidate.Key() != "instance_count=best" || math.Abs(l.Lead()-math.Log(400)) > 0.01 {
		t.Errorf("leader is %v with %v, %t", leader.Candidate, l.Lead(), ok)
	}
	dead := search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: "dead"})
	if reason, ok := l.PoolFailure(dead.With(search.KnobMaxBatchSize, "8")); !ok || reason != "no" {
		t.Errorf("the pool's failure is %q, %t", reason, ok)
	}
	if l.Len() != 5 || len(l.Points(dead)) != 1 {
		t.Errorf("%d configurations, %d points of the dead one", l.Len(), len(l.Points(dead)))
	}
}

// A service trial adds no point to its configuration. But the ledger records that an engine process
// does not start.
func TestLedgerTakesNoPointsFromServiceTrials(t *testing.T) {
	t.Parallel()
	l := standings.NewLedger(within(0.050))
	trial := search.Trial{
		Candidate: search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: "2"}), Load: measure.Load{Concurrency: 2, BatchSize: 1},
		Windows: 2, Window: 200 * time.Millisecond, Phase: search.PhaseService, Sizes: []int{1, 2},
	}
	l.Add(search.Event{Trial: trial, Measurement: searchtest.Measured(trial, 400, 5*time.Millisecond)})
	if _, leads := l.Leader(); leads || l.Len() != 0 || len(l.Points(trial.Candidate)) != 0 {
		t.Errorf("%d configurations, %d points, leader %t; want none", l.Len(), len(l.Points(trial.Candidate)), leads)
	}
	fail := func(stage measure.Stage) (string, bool) {
		l.Add(search.Event{Trial: trial, Measurement: measure.Measurement{Failure: &measure.Failure{Stage: stage, Reason: string(stage)}}})
		return l.PoolFailure(trial.Candidate)
	}
	if reason, broken := fail(measure.StageCrash); broken {
		t.Errorf("after a crash the pool is said not to start: %s", reason)
	}
	if reason, broken := fail(measure.StageStart); !broken || reason != "start" || l.Len() != 0 {
		t.Errorf("the pool's failure is %q, %t, with %d configurations; want that it does not start, and none", reason, broken, l.Len())
	}
}
