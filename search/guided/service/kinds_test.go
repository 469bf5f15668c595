package service

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/search"
	"tuner/search/guided/tuning"
)

func three() []search.Kind {
	return []search.Kind{{Share: 0.3, Elements: 64}, {Share: 0.6, Elements: 16}, {Share: 0.1, Elements: 256}}
}

// Few kinds are all measured, in the order of their elements. Of many, the ends are, and those
// nearest to a geometric series: 1, 10, 100, 1000.
func TestNewAnchors(t *testing.T) {
	t.Parallel()
	if a := NewAnchors(nil); a.Kinds != nil {
		t.Errorf("one shape has the anchors %v", a.Kinds)
	}
	if diff := cmp.Diff([]int{1, 0, 2}, NewAnchors(three()).Kinds); diff != "" {
		t.Errorf("anchors of three kinds (-want +got):\n%s", diff)
	}
	var many []search.Kind
	for n := 1; n <= 1000; n++ {
		many = append(many, search.Kind{Share: 0.001, Elements: float64(n)})
	}
	a := NewAnchors(many)
	if diff := cmp.Diff([]int{0, 9, 99, 999}, a.Kinds); diff != "" {
		t.Errorf("anchors of many kinds (-want +got):\n%s", diff)
	}
	// The mean of a line over the elements is its value at the mean: 500.5.
	mean, weights := 0.0, 0.0
	for i, w := range a.weights {
		mean, weights = mean+w*a.elements[i], weights+w
	}
	if math.Abs(mean-500.5) > 1e-9 || math.Abs(weights-1) > 1e-9 {
		t.Errorf("the anchors' weights %v have the mean %v", a.weights, mean)
	}
}

// Times between anchors lie on a line, and so do those beyond the largest. 40 is halfway between 16
// and 64. 352 is half a step of 192 beyond 256.
func TestCoefficients(t *testing.T) {
	t.Parallel()
	a := NewAnchors(three())
	for elements, want := range map[float64][]float64{16: {1, 0, 0}, 40: {0.5, 0.5, 0}, 256: {0, 0, 1}, 352: {0, -0.5, 1.5}, 8: {1, 0, 0}} {
		if diff := cmp.Diff(want, a.Coefficients(elements)); diff != "" {
			t.Errorf("of %v elements (-want +got):\n%s", elements, diff)
		}
	}
}

// The times of a mix are the means over its kinds. A size counts once all its kinds are measured.
func TestTimesOfKinds(t *testing.T) {
	t.Parallel()
	times := Of(NewAnchors(three()))
	e := search.Event{Trial: search.Trial{Sizes: []int{1, 4}, Kinds: []int{1, 0, 2}}}
	for i, seconds := range []float64{0.001, 0.003, 0.010, 0.002, 0.006} { // the largest kind of batch 4 is missing
		size, _ := e.Trial.SizeOf(i)
		e.Measurement.Windows = append(e.Measurement.Windows, window(size, seconds))
	}
	times.Record(e)
	c := times.Curve()
	if diff := cmp.Diff([]int{1}, c.Sizes); diff != "" || math.Abs(c.Alone[0]-(0.6*0.001+0.3*0.003+0.1*0.010)) > 1e-9 || times.Trials() != 1 {
		t.Errorf("the curve is %+v (sizes -want +got):\n%s", c, diff)
	}
	kinds := times.Kinds()
	if len(kinds) != 3 || math.Abs(kinds[1].Time(4, 1, 1)-0.006) > 1e-9 || math.Abs(kinds[2].Time(4, 1, 1)-0.040) > 1e-9 {
		t.Errorf("the kinds' curves are %+v", kinds)
	}
	if size, found := Refused(e); found {
		t.Errorf("without a failure the size %d is refused", size)
	}
	e.Measurement.Windows = append(e.Measurement.Windows, window(4, 0.040))
	e.Measurement.Windows[4].Requests = 0 // no answer for the second kind
	if size, found := Refused(e); !found || size != 4 {
		t.Errorf("the size %d is refused (%t), want 4", size, found)
	}
}

// Each size of a mix has a window for each kind, so there are fewer sizes.
func TestSizesOfAMix(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]int{1, 4, 16, 32}, NewAnchors(three()).Sizes(1, 32)); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}

// A disturbed window of one kind is found although the mean over the kinds looks well: a batch of four
// takes 4.1 times as long as one row in the mean, and 6.5 times in the rarest kind.
func TestSuspectsOfKinds(t *testing.T) {
	t.Parallel()
	times := Of(NewAnchors(three()))
	e := search.Event{Trial: search.Trial{Sizes: []int{1, 4}, Kinds: []int{1, 0, 2}}}
	for i, seconds := range []float64{0.004, 0.009, 0.032, 0.010, 0.028, 0.208} {
		size, _ := e.Trial.SizeOf(i)
		e.Measurement.Windows = append(e.Measurement.Windows, window(size, seconds))
	}
	times.Record(e)
	if diff := cmp.Diff([]int{1, 4}, times.Suspects(tuning.Default().Service)); diff != "" {
		t.Errorf("suspects (-want +got):\n%s", diff)
	}
	e.Measurement.Windows[5] = window(4, 0.130)
	times.Record(e) // the shorter time counts
	if sizes := times.Suspects(tuning.Default().Service); len(sizes) > 0 {
		t.Errorf("%v are suspects without a disturbance", sizes)
	}
}
