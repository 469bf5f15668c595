package guided

import (
	"testing"

	"tuner/search"
)

// Challengers are cut when they can no longer matter. The leader is never cut.
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
	s := g.surveyor.survey(g.defaultScore())
	leader := s.cells[s.leader].Cell
	if worth := g.measure(leader, &s, "").Trial.Worth; worth != nil {
		t.Errorf("the leader may be cut: %+v", worth)
	}
}
