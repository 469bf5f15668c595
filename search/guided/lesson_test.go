package guided

import (
	"math"
	"math/rand/v2"
	"testing"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
)

// Trials tell no more than is unknown, and several no less than one: of by how much a cell is above the leader, whichever of the two they
// are of. What they are expected to bring is no loss.
func TestTrialsTellNoMoreThanIsUnknown(t *testing.T) {
	t.Parallel()
	g, _ := typical(7, 0.02).run(t, 25)
	s := g.survey()
	if s.leader < 0 || len(s.beliefs) < 50 {
		t.Fatalf("%d cells, the leader is number %d", len(s.beliefs), s.leader)
	}
	leader := s.beliefs[s.leader]
	for i, b := range s.beliefs {
		if i == s.leader {
			continue
		}
		unknown, few := g.difference(b, leader), [2]float64{}
		for _, n := range repeats {
			for k, of := range []belief{b, leader} {
				told := g.tellsOf(&s, of, b, n)
				if !(told >= few[k]) || told*told > unknown*(1+1e-9)+1e-12 {
					t.Fatalf("%d trials of cell %d tell %g² of %g, fewer told %g²", n, i, told, unknown, few[k])
				}
				few[k] = told
			}
			if gain := g.lesson(&s, b, n); !(gain >= 0) {
				t.Fatalf("%d trials of cell %d bring %g", n, i, gain)
			}
		}
	}
	if gain := g.lessonOfLeader(&s, 1); !(gain >= 0) {
		t.Errorf("a trial of the leader brings %g", gain)
	}
}

// A cell that trials show faster by as much as is needed keeps all limits as surely as a leader must, whatever is believed of it before.
func TestWhatIsNeededIsEnough(t *testing.T) {
	t.Parallel()
	p99, mean, least := 0.05, 0.02, 100.0
	g := newSmall(t, func(s *search.Settings) {
		s.Goal.Constraints = []search.Constraint{atMost(measure.LatencyP99, p99), atMost(measure.LatencyAvg, mean), {Metric: measure.Throughput, Min: &least}}
	})
	for _, m := range g.models {
		m.isKnown = true
	}
	g.learn()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		b := belief{means: make([]float64, len(g.models)), residuals: make([]posterior.Residual, len(g.models))}
		b.level = 8
		for k, m := range g.models {
			limit := map[measure.Metric]float64{measure.LatencyP99: p99, measure.LatencyAvg: mean, measure.Throughput: least}[m.metric]
			b.means[k] = math.Log(limit) + 0.2*random.NormFloat64()
			b.residuals[k].Variance = math.Pow(0.02+0.2*random.Float64(), 2)
		}
		z, others := g.needed(b, 2)
		after := belief{means: make([]float64, len(g.models)), residuals: make([]posterior.Residual, len(g.models))}
		for k, m := range g.models {
			told := g.tells(k, b, 2)
			after.means[k], after.residuals[k].Variance = b.means[k]+m.direction()*z*math.Sqrt(told), b.residuals[k].Variance-told
		}
		g.judge(&after)
		if others != 1 || after.feasible < g.trusted-1e-9 {
			t.Fatalf("after what is needed the limits are kept with %g, want %g", after.feasible, g.trusted)
		}
	}
}
