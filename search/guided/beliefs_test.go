package guided

import (
	"math"
	"testing"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/pools"
	"tuner/search/posterior"
	"tuner/search/standings"
)

// The search's beliefs about its measured cells equal those of the answer: one set of mean scales
// replaces the mixture.
func TestBeliefsAreTheAnswers(t *testing.T) {
	t.Parallel()
	m := typical(3, 0.02)
	g, events := m.run(t, 40)
	g.decide()
	answers := posterior.New(posterior.Options{Space: m.settings.Space, Goal: m.settings.Goal, Prior: g}, events)
	compared := 0
	for _, c := range answers.Measured() {
		x, ok := g.pools.CellOf(c.Candidate, c.Load.Level())
		if !ok {
			continue
		}
		b := g.beliefs.Believe(x)
		for k, metric := range []measure.Metric{measure.Throughput, measure.LatencyP99} { // of the goal
			want, _ := answers.At(c.Cell, metric)
			if got := math.Sqrt(b.Residuals[k].Variance); got < want.Deviation/1.5 || got > want.Deviation*1.5 {
				t.Errorf("%s of %v at %v has the deviation %.3f, in the answer %.3f", metric, c.Candidate, c.Load, got, want.Deviation)
			}
			if math.Abs(b.Means[k]-want.Mean) > want.Deviation {
				t.Errorf("%s of %v at %v is e^%.3f, in the answer e^%.3f ± %.3f", metric, c.Candidate, c.Load, b.Means[k], want.Mean, want.Deviation)
			}
			compared++
		}
	}
	if compared < 20 {
		t.Errorf("only %d figures were compared", compared)
	}
}

// The measurements of an earlier campaign are known before the first trial of this one, so beliefs
// have smaller errors than the simulation.
func TestEarlierTrialsAreKnown(t *testing.T) {
	t.Parallel()
	m := typical(2, 0.05)
	_, first := m.run(t, 60)
	m.settings.Earlier = []search.Earlier{{From: "first", Same: true, Events: first}}
	g := New(m.settings, standings.NewLedger(m.settings.Goal), m.settings.Space.Candidates())
	g.learn()
	const k = 1 // the goal's second metric is p99
	simulated, believed := 0.0, 0.0
	for _, p := range g.pools.All() {
		for _, then := range g.past.campaigns[0].cells[p] {
			at, found := p.Find(then.Key)
			if !found || !p.IsReady() {
				continue
			}
			c := pools.Cell{Pool: p, Setting: pools.Setting{Batcher: at, Level: then.Level}}
			_, _, p99 := m.truth(g, c.Batcher().Candidate, m.settings.Space.Load.At(c.Level))
			believed += math.Abs(math.Log(p99) - g.beliefs.Believe(c).Means[k])
			simulated += math.Abs(math.Log(p99) - math.Log(g.predictor.Simulate(c).P99))
		}
	}
	if simulated == 0 || believed > simulated/2 {
		t.Errorf("beliefs miss by %.2f in all, the simulation alone by %.2f", believed, simulated)
	}
}
