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
				if diff := cmp.Diff([]posterior.Normal{want.At(i), wantBackwards.At(i)}, []posterior.Normal{got.At(i), gotBackwards.At(i)}); diff != "" {
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
