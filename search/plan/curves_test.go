package plan_test

import (
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

func TestCurvesCoverTheAxis(t *testing.T) {
	t.Parallel()
	c := grid(t)
	levels := map[string]map[float64]bool{}
	for _, e := range c.events {
		key := e.Trial.Candidate.Key()
		if levels[key] == nil {
			levels[key] = map[float64]bool{}
		}
		levels[key][e.Trial.Load.Level()] = true
	}
	for _, key := range []string{"default", c.leader.Candidate.Key()} {
		for _, level := range []float64{1, 2, 4, 8, 16, 32, 64} {
			if !levels[key][level] {
				t.Errorf("%s was not measured at %v", key, level)
			}
		}
	}
}

// firstStageLevels returns the loads at which a campaign measured the first stage, by phase.
func firstStageLevels(space search.Space, events []search.Event) map[search.Phase][]float64 {
	levels := map[search.Phase][]float64{}
	for _, e := range events {
		if c := e.Trial.Candidate; !c.IsDefault() && space.InFirstStage(c) {
			levels[e.Trial.Phase] = append(levels[e.Trial.Phase], e.Trial.Load.Level())
		}
	}
	return levels
}

// The space does not have the default's instances and batch, so the search never measures the first
// stage. The curve phase must measure it at the default's loads, even within a short budget.
func TestFirstStageIsMeasured(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	for _, budget := range []search.Budget{{}, {Time: 2 * time.Minute}, {Trials: 60}} {
		s := searchtest.Settings(l, 50*time.Millisecond)
		s.Budget = budget
		for i, k := range s.Space.Knobs {
			switch k.Name {
			case search.KnobInstanceCount:
				s.Space.Knobs[i].Values = []search.Value{"1", "3"}
			case search.KnobMaxBatchSize:
				s.Space.Knobs[i].Values = []search.Value{"8", "16"}
			}
		}
		p, err := plan.New("grid", s)
		if err != nil {
			t.Fatal(err)
		}
		events := l.Run(p, 1000)
		leader, ok := p.Leader()
		if !ok {
			t.Fatalf("budget %+v: no leader", budget)
		}
		first := s.Space.FirstStage(leader.Candidate)
		measured := map[float64]bool{}
		for _, e := range events {
			if e.Trial.Candidate.Key() == first.Key() && e.Trial.Phase == search.PhaseLoadCurve {
				measured[e.Trial.Load.Level()] = true
			}
		}
		for _, e := range phases(events, search.PhaseDefault) {
			if !measured[e.Trial.Load.Level()] {
				t.Errorf("budget %+v: %v was not measured at %v, where the default was", budget, first, e.Trial.Load)
			}
		}
	}
}

// The space has the default's instances and batch. The curve phase measures no other first stage
// than the best that the search knows.
func TestFirstStageOfTheSearchIsUsed(t *testing.T) {
	t.Parallel()
	s, events := searchtest.Settings(searchtest.Small(), 50*time.Millisecond), grid(t).events
	levels := firstStageLevels(s.Space, events)
	if len(levels[search.PhaseSearch]) == 0 || len(levels[search.PhaseLoadCurve]) == 0 {
		t.Fatalf("the first stage was measured at %v, want some in search and curve phase", levels)
	}
	candidates := s.Space.Candidates().All()
	legal := map[string]bool{}
	for _, c := range candidates {
		legal[c.Key()] = true
	}
	for _, e := range phases(events, search.PhaseLoadCurve) {
		if c := e.Trial.Candidate; !c.IsDefault() && !legal[c.Key()] {
			t.Errorf("%v was measured for the curve, although the search knows the first stage", c)
		}
	}
}

// The search knows fp32 with the default's 2 instances, and int8 wins with others. fp32 carries no
// information about int8. So int8 with the default's instances is measured at the default's loads.
// It is better, so it gets the curve.
func TestFirstStageIsTheBestOnes(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	l.Fail = func(trial search.Trial) *measure.Failure {
		precision, _ := trial.Candidate.Get(search.KnobPrecision)
		if n, said := trial.Candidate.Get(search.KnobInstanceCount); said && n == "2" && precision == "int8" {
			return &measure.Failure{Stage: measure.StageStart, Reason: "no"}
		}
		return nil
	}
	s := searchtest.Settings(l, 50*time.Millisecond)
	s.Space.Knobs[1].Values = []search.Value{"1"} // thread, so that int8 is also faster with two instances
	p, err := plan.New("grid", s)
	if err != nil {
		t.Fatal(err)
	}
	events := l.Run(p, 1000)
	leader, ok := p.Leader()
	if precision, _ := leader.Candidate.Get(search.KnobPrecision); !ok || precision != "int8" || s.Space.InFirstStage(leader.Candidate) {
		t.Fatalf("leader is %v, want int8 with other instances than the default's", leader.Candidate)
	}
	if levels := firstStageLevels(s.Space, phases(events, search.PhaseSearch)); len(levels) == 0 {
		t.Fatal("the search does not know any first stage")
	}
	own, measured := s.Space.FirstStage(leader.Candidate), map[float64]bool{}
	for _, e := range phases(events, search.PhaseLoadCurve) {
		switch c := e.Trial.Candidate; {
		case c.Key() == own.Key():
			measured[e.Trial.Load.Level()] = true
		case !c.IsDefault() && s.Space.InFirstStage(c):
			t.Errorf("%v was measured for the curve, which is worse than %v", c, own)
		}
	}
	for _, e := range phases(events, search.PhaseDefault) {
		if !measured[e.Trial.Load.Level()] {
			t.Errorf("%v was not measured at %v, where the default was", own, e.Trial.Load)
		}
	}
}

// A first stage that does not start is tried once.
func TestFirstStageThatDoesNotStart(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	s := searchtest.Settings(l, 50*time.Millisecond)
	s.Space.Knobs = s.Space.Knobs[:len(s.Space.Knobs)-1] // without the delay
	s.Space.Knobs[2].Values, s.Space.Knobs[3].Values = []search.Value{"1"}, []search.Value{"16"}
	tried := 0
	l.Fail = func(trial search.Trial) *measure.Failure {
		if _, has := trial.Candidate.Get(search.KnobInstanceCount); has || trial.Candidate.IsDefault() {
			return nil
		}
		tried++
		return &measure.Failure{Stage: measure.StageStart, Reason: "no"}
	}
	p, err := plan.New("grid", s)
	if err != nil {
		t.Fatal(err)
	}
	l.Run(p, 1000)
	if tried != 1 {
		t.Errorf("a first stage that does not start was tried %d times", tried)
	}
}

// If no knob belongs to the artifact or the session, the curves have no reserve.
func TestNoFirstStageNoReserve(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	s := searchtest.Settings(l, 50*time.Millisecond)
	s.Space.Knobs = s.Space.Knobs[2:] // instances, batch, delay
	p, err := plan.New("grid", s)
	if err != nil {
		t.Fatal(err)
	}
	if levels := firstStageLevels(s.Space, phases(l.Run(p, 1000), search.PhaseLoadCurve)); len(levels) != 0 {
		t.Errorf("a first stage was measured at %v", levels)
	}
}
