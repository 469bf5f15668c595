package guided

import (
	"math"
	"slices"
	"testing"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
)

// What the search believes of what it measured is what the answer will rest on: one set of mean scales stands for the mixture.
func TestBeliefsAreTheAnswers(t *testing.T) {
	t.Parallel()
	g, events := typical(3, 0.02).run(t, 40)
	g.decide()
	answers := posterior.New(g.beliefOptions(nil), events)
	compared := 0
	for _, c := range answers.Measured() {
		x, ok := g.cellOf(c.Candidate, c.Load)
		if !ok {
			continue
		}
		b := g.believe(x)
		for k, m := range g.models {
			want, _ := answers.At(c.Cell, m.metric)
			if got := math.Sqrt(b.residuals[k].Variance); got < want.Deviation/1.5 || got > want.Deviation*1.5 {
				t.Errorf("%s of %v at %v has the deviation %.3f, in the answer %.3f", m.metric, c.Candidate, c.Load, got, want.Deviation)
			}
			if math.Abs(b.means[k]-want.Mean) > want.Deviation {
				t.Errorf("%s of %v at %v is e^%.3f, in the answer e^%.3f ± %.3f", m.metric, c.Candidate, c.Load, b.means[k], want.Mean, want.Deviation)
			}
			compared++
		}
	}
	if compared < 20 {
		t.Errorf("only %d figures were compared", compared)
	}
}

// What an earlier campaign measured is known before the first trial of this one, so that beliefs miss less than the simulation does.
func TestEarlierTrialsAreKnown(t *testing.T) {
	t.Parallel()
	m := typical(2, 0.05)
	_, first := m.run(t, 60)
	m.settings.Earlier = []search.Earlier{{From: "first", Same: true, Events: first}}
	g := New(m.settings, search.NewLedger(m.settings.Goal), m.settings.Space.Candidates())
	g.learn()
	k := slices.IndexFunc(g.models, func(m *model) bool { return m.metric == measure.LatencyP99 })
	simulated, believed := 0.0, 0.0
	for _, p := range g.pools {
		for _, then := range g.past.campaigns[0].tracks[p] {
			at, found := p.find(then.key)
			if !found || !p.isReady() {
				continue
			}
			c := cell{p, setting{at, then.level}}
			_, _, p99 := m.truth(g, c.batcher().candidate, m.settings.Space.Load.At(c.level))
			believed += math.Abs(math.Log(p99) - g.believe(c).means[k])
			simulated += math.Abs(math.Log(p99) - g.simulated(c, measure.LatencyP99))
		}
	}
	if simulated == 0 || believed > simulated/2 {
		t.Errorf("beliefs miss by %.2f in all, the simulation alone by %.2f", believed, simulated)
	}
}
