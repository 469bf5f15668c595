package searchtest_test

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/searchtest"
)

// On divided cores the best is found by trying all cells; on shared ones, too, where the formula makes trying
// cheap. The bounds leave out no better cell.
func TestBestOfTriesWhatMayBeBetter(t *testing.T) {
	t.Parallel()
	for seed := uint64(0); seed < 3; seed++ {
		c := searchtest.NewCompany(2, seed)
		s, err := c.Settings(search.Budget{})
		if err != nil {
			t.Fatal(err)
		}
		shared, divided := c.BestOf(s.Space)
		if want := c.Best(s.Space); math.Abs(math.Log(shared/want)) > 2e-3 {
			t.Errorf("seed %d: the best on shared cores is %.4f, want %.4f", seed, shared, want)
		}
		c.DividesOnly = true
		if want := c.Best(s.Space); math.Abs(math.Log(divided/want)) > 2e-3 {
			t.Errorf("seed %d: the best on divided cores is %.4f, want %.4f", seed, divided, want)
		}
	}
}

// A simulated trial has as many requests as its rate and its windows ask for, and percentiles near those of the
// truth.
func TestSimulatedTrial(t *testing.T) {
	t.Parallel()
	c := searchtest.NewCompany(2, 4)
	c.Queue = true
	s, err := c.Settings(search.Budget{Trials: 12})
	if err != nil {
		t.Fatal(err)
	}
	candidate := search.Candidate{}
	settings, cores := c.Cell(candidate)
	level := s.Space.Load.AtMost(0.7 * c.Scale(settings, cores))
	trial := s.Trial(candidate, level, search.PhaseSearch)
	trial.Windows, trial.Window = 3, 20*time.Second
	events := c.Run(&once{trial: trial}, 2)
	if len(events) != 1 {
		t.Fatalf("%d trials", len(events))
	}
	if err := events[0].Check(); err != nil {
		t.Fatal(err)
	}
	for i, want := range c.P99(settings, cores, level) {
		name := searchtest.ModelName(i)
		own := events[0].Measurement.Of(name)
		rate := trial.Load.Of(name).RequestRate
		if n := own.Windows[0].Requests; math.Abs(float64(n)-20*rate) > 1 {
			t.Errorf("%s has %d requests in 20 s at %.1f/s", name, n, rate)
		}
		if e, ok := events[0].Measurement.Estimate(measure.LatencyP99.Of(name)); !ok || math.Abs(math.Log(e.Value/want)) > 0.2 {
			t.Errorf("%s: p99 %v, the truth is %v", name, e, want)
		}
	}
}

// once asks for one trial.
type once struct {
	trial search.Trial
	isOut bool
}

func (o *once) Ask() search.Action {
	if o.isOut {
		return search.Action{Stop: true}
	}
	return search.Action{Trial: o.trial}
}
func (o *once) Tell(search.Event) { o.isOut = true }
