package posterior_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
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
