package guided

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
)

// The bounds have room for three standard deviations of what two fifths of a second may err by.
func TestWorthOfAWindow(t *testing.T) {
	t.Parallel()
	limit := 0.020
	goal := search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 2}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}, atMost(measure.Memory, 1e9)},
	}
	g := &Guided{settings: search.Settings{Window: time.Second, Goal: goal}, models: newModels(goal)}
	g.held = footprint.New(g.settings.Space)
	g.learn()
	room := func(k int) float64 { return math.Exp(3 * g.lookDeviation(k)) }
	got := g.worth(&survey{leader: -1, lead: 2 * math.Log(500)})
	if len(got) != 2 || got[0].Metric != measure.Throughput || got[1].Metric != measure.LatencyP99 {
		t.Fatalf("%+v", got)
	}
	if least, most := *got[0].Min, *got[1].Max; math.Abs(least-500/room(0)) > 1e-6 || math.Abs(most-0.020*room(1)) > 1e-9 || got[0].Max != nil || got[1].Min != nil {
		t.Errorf("at least %g infer/s, want %g, within %g s, want %g", least, 500/room(0), most, 0.020*room(1))
	}
	if limit != 0.020 {
		t.Errorf("the goal's own limit is %g now", limit)
	}
	if got := g.worth(&survey{leader: -1, lead: math.Inf(-1)}); got != nil {
		t.Errorf("while nothing satisfies the constraints: %+v", got)
	}
	// A latency is to be low, and of several metrics together a window does not tell what they make.
	latency := search.Term{Metric: measure.LatencyAvg, Weight: 1}
	goal = search.Goal{Objective: search.Objective{Terms: []search.Term{latency}}}
	g.settings.Goal, g.models, g.isLearned = goal, newModels(goal), false
	g.learn()
	if got := g.worth(&survey{lead: -math.Log(0.010)}); len(got) != 1 || got[0].Min != nil || math.Abs(*got[0].Max-0.010*room(0)) > 1e-9 {
		t.Errorf("of the lowest latency: %+v", got)
	}
	goal.Objective.Terms = append(goal.Objective.Terms, search.Term{Metric: measure.Throughput, Weight: 1})
	g.settings.Goal, g.models, g.isLearned = goal, newModels(goal), false
	g.learn()
	if got := g.worth(&survey{lead: 5}); len(got) != 0 {
		t.Errorf("of two metrics: %+v", got)
	}
}

// Challengers are cut where they can no longer matter, the leader never is.
func TestOnlyChallengersAreCut(t *testing.T) {
	t.Parallel()
	g, events := typical(7, 0.02).run(t, 60)
	bounded, free := 0, 0
	for _, e := range events {
		switch {
		case e.Trial.Phase != search.PhaseSearch && len(e.Trial.Worth) > 0:
			t.Errorf("a %s trial may be cut", e.Trial.Phase)
		case len(e.Trial.Worth) > 0:
			bounded++
		case e.Trial.Phase == search.PhaseSearch:
			free++
		}
	}
	if bounded == 0 || free == 0 {
		t.Errorf("%d trials may be cut, %d not", bounded, free)
	}
	s := g.survey()
	leader := s.beliefs[s.leader].cell
	if worth := g.measure(leader, &s, "").Trial.Worth; worth != nil {
		t.Errorf("the leader may be cut: %+v", worth)
	}
}
