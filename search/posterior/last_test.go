package posterior_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
)

// An answer does not depend on questions before it or at the same time.
func TestAskedAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(3)
	events := m.campaign(20)
	p := posterior.New(m.options(), events)
	var cells []posterior.Cell
	for _, c := range p.Measured() {
		cells = append(cells, c.Cell)
	}
	backwards := slices.Clone(cells)
	slices.Reverse(backwards)
	want, _ := posterior.New(m.options(), events).Joint(cells, measure.Throughput)
	wantBackwards, _ := posterior.New(m.options(), events).Joint(backwards, measure.Throughput)
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			got, _ := p.Joint(cells, measure.Throughput)
			gotBackwards, _ := p.Joint(backwards, measure.Throughput)
			for i := range cells {
				expected := []posterior.Normal{want.At(i), wantBackwards.At(i), want.Difference(i, 1), want.Difference(2, i)}
				if diff := cmp.Diff(expected, []posterior.Normal{got.At(i), gotBackwards.At(i), got.Difference(i, 1), got.Difference(2, i)}); diff != "" {
					t.Errorf("cell %d (-want +got):\n%s", i, diff)
				}
			}
			got.Means[0] = 0 // the reader has its own copy
		})
	}
	asking.Wait()
}

// shifted is a prior whose answers change.
type shifted struct {
	posterior.Prior
	by float64
}

func (s *shifted) Log(c search.Candidate, load measure.Load, metric measure.Metric) (float64, bool) {
	log, ok := s.Prior.Log(c, load, metric)
	return log + s.by, ok
}

// Predictions of unmeasured cells change with the campaign. A question about a cell gets the present one, also
// where another question had the former one.
func TestAnswersHaveThePresentPredictions(t *testing.T) {
	t.Parallel()
	m := newMachine(3)
	events, o := m.campaign(20), m.options()
	prior := &shifted{Prior: m}
	o.Prior = prior
	used, fresh := posterior.New(o, events), posterior.New(o, events)
	cells := []posterior.Cell{used.Measured()[0].Cell}
	for _, c := range m.members { // and one that was not measured
		x := posterior.Cell{Candidate: c, Load: measure.Load{Concurrency: 32, BatchSize: 1}}
		if len(cells) == 1 && !slices.ContainsFunc(used.Measured(), func(c posterior.Measured) bool { return c.Is(x) }) {
			cells = append(cells, x)
		}
	}
	before, _ := used.Joint(cells[1:], measure.Throughput)
	prior.by = 1
	got, _ := used.Joint(cells, measure.Throughput)
	want, _ := fresh.Joint(cells, measure.Throughput)
	for i := range cells {
		if diff := cmp.Diff(want.Difference(i, 0), got.Difference(i, 0)); diff != "" || got.At(i) != want.At(i) {
			t.Errorf("cell %d is %v, want %v; the difference (-want +got):\n%s", i, got.At(i), want.At(i), diff)
		}
	}
	if got.At(1) == before.At(0) {
		t.Error("the prediction does not matter: the test says nothing")
	}
}

// What is learned does not depend on when it is asked for, although a search's predictions change
// with each trial.
func TestLearnsFromThePredictionsOfItsTime(t *testing.T) {
	t.Parallel()
	m := newMachine(5)
	events, o := m.campaign(20), m.options()
	prior := &shifted{Prior: m}
	o.Prior = prior
	soon, late := posterior.New(o, events), posterior.New(o, events)
	at := posterior.CoordinatesOf(soon.Measured()[0].Cell, o.Space)
	residual := func(p *posterior.Posterior) float64 { return p.View(measure.Throughput, true).At(&at).Mean }
	want := residual(soon)
	prior.by = 1
	if got := residual(late); got != want {
		t.Errorf("the residual is %v, asked for at once %v", got, want)
	}
	if now := residual(posterior.New(o, events)); now == want {
		t.Error("the prediction does not matter: the test says nothing")
	}
}
