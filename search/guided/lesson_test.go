package guided

import (
	"math"
	"math/rand/v2"
	"testing"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/belief"
	"tuner/search/posterior"
)

// Trials reduce the variance by no more than its value, and several trials reduce it by at least as
// much as one. This holds for the difference between a cell and the leader, for trials of either.
// The expected gain is never negative.
func TestTrialsTellNoMoreThanIsUnknown(t *testing.T) {
	t.Parallel()
	g, _ := typical(7, 0.02).run(t, 25)
	s := g.surveyor.survey(g.defaultScore())
	if s.leader < 0 || len(s.cells) < 50 {
		t.Fatalf("%d cells, the leader is number %d", len(s.cells), s.leader)
	}
	leader := s.cells[s.leader]
	for i, b := range s.cells {
		if i == s.leader {
			continue
		}
		unknown, few := g.beliefs.Difference(b, leader), [2]float64{}
		for _, n := range g.tuning.Worth.Repeats {
			for k, of := range []belief.Belief{b, leader} {
				told := g.appraiser.moves(&s, of, b, n)
				if !(told >= few[k]) || told*told > unknown*(1+1e-9)+1e-12 {
					t.Fatalf("%d trials of cell %d tell %g² of %g, fewer told %g²", n, i, told, unknown, few[k])
				}
				few[k] = told
			}
			if gain := g.appraiser.lesson(&s, b, n); !(gain >= 0) {
				t.Fatalf("%d trials of cell %d bring %g", n, i, gain)
			}
		}
	}
	if gain := g.appraiser.lessonOfLeader(&s, 1); !(gain >= 0) {
		t.Errorf("a trial of the leader brings %g", gain)
	}
}

// If trials show a cell faster by the needed amount, it keeps all limits with the confidence of a
// leader, for any earlier belief.
func TestWhatIsNeededIsEnough(t *testing.T) {
	t.Parallel()
	p99, mean, least := 0.05, 0.02, 100.0
	g := newSmall(t, func(s *search.Settings) {
		s.Goal.Constraints = []search.Constraint{atMost(measure.LatencyP99, p99), atMost(measure.LatencyAvg, mean), {Metric: measure.Throughput, Min: &least}}
	})
	g.learn()
	metrics := []measure.Metric{measure.Throughput, measure.LatencyP99, measure.LatencyAvg} // of the goal
	directions := []float64{1, -1, -1}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		b := belief.Belief{Means: make([]float64, len(metrics)), Residuals: make([]posterior.Residual, len(metrics))}
		b.Level = 8
		for k, metric := range metrics {
			limit := map[measure.Metric]float64{measure.LatencyP99: p99, measure.LatencyAvg: mean, measure.Throughput: least}[metric]
			b.Means[k] = math.Log(limit) + 0.2*random.NormFloat64()
			b.Residuals[k].Variance = math.Pow(0.02+0.2*random.Float64(), 2)
		}
		z, others := g.beliefs.Needed(b, 2)
		after := belief.Belief{Means: make([]float64, len(metrics)), Residuals: make([]posterior.Residual, len(metrics))}
		for k := range metrics {
			information := g.beliefs.Information(k, b, 2)
			after.Means[k], after.Residuals[k].Variance = b.Means[k]+directions[k]*z*math.Sqrt(information), b.Residuals[k].Variance-information
		}
		g.beliefs.Judge(&after)
		if others != 1 || after.Feasible < g.beliefs.Confidence()-1e-9 {
			t.Fatalf("after what is needed the limits are kept with %g, want %g", after.Feasible, g.beliefs.Confidence())
		}
	}
}
