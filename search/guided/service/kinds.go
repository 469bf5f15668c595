package service

import (
	"cmp"
	"math"
	"slices"

	"tuner/search"
	"tuner/search/queuesim"
)

// mostAnchors is the largest number of kinds that service trials measure. Between them, the time of
// a batch is a line over the elements of a row. Attention makes it curve upwards: where the sizes of
// two neighbours differ by a factor of 2.5, and the square term is as large as the linear one, the
// line is above it by a tenth at most.
const mostAnchors = 4

// Anchors are the measured kinds of a mix, by which the times of all kinds are known. The zero value
// stands for requests of one shape.
type Anchors struct {
	Kinds    []int     // indices in the mix, in ascending order of their elements
	elements []float64 // of a row of each
	weights  []float64 // of each in the mean over the mix
}

// NewAnchors chooses the measured kinds of a mix: the smallest, the largest, and those between them
// that are nearest to a geometric series. nil gives the zero value.
func NewAnchors(mix []search.Kind) Anchors {
	var a Anchors
	if len(mix) < 2 {
		return a
	}
	byElements := func(x, y search.Kind) int { return cmp.Compare(x.Elements, y.Elements) }
	least, most := slices.MinFunc(mix, byElements).Elements, slices.MaxFunc(mix, byElements).Elements
	for i := range mostAnchors {
		want := math.Log(least) + math.Log(most/least)*float64(i)/(mostAnchors-1)
		nearest := 0
		for k := range mix {
			if math.Abs(math.Log(mix[k].Elements)-want) < math.Abs(math.Log(mix[nearest].Elements)-want) {
				nearest = k
			}
		}
		if !slices.ContainsFunc(a.Kinds, func(k int) bool { return mix[k].Elements == mix[nearest].Elements }) {
			a.Kinds = append(a.Kinds, nearest)
		}
	}
	slices.SortFunc(a.Kinds, func(x, y int) int { return byElements(mix[x], mix[y]) })
	for _, k := range a.Kinds {
		a.elements = append(a.elements, mix[k].Elements)
	}
	a.weights = make([]float64, len(a.Kinds))
	for _, k := range mix {
		for i, c := range a.Coefficients(k.Elements) {
			a.weights[i] += k.Share * c
		}
	}
	return a
}

// Coefficients returns the weights of the anchors' times in the time of a kind with that many
// elements: it lies on the line between the next smaller and the next larger anchor, and beyond the
// largest on the line of the last two.
func (a Anchors) Coefficients(elements float64) []float64 {
	coefficients := make([]float64, len(a.elements))
	if len(a.elements) == 1 {
		coefficients[0] = 1
		return coefficients
	}
	i, _ := slices.BinarySearch(a.elements, elements)
	i = min(max(i, 1), len(a.elements)-1)
	share := max((elements-a.elements[i-1])/(a.elements[i]-a.elements[i-1]), 0)
	coefficients[i-1], coefficients[i] = 1-share, share
	return coefficients
}

// recordKinds adds the windows of a service trial of several kinds, and averages their times.
func (t *Times) recordKinds(e search.Event) {
	if t.kinds == nil {
		t.kinds = make([]Times, len(e.Trial.Kinds))
	}
	for i, w := range e.Measurement.Windows {
		if size, ok := e.Trial.SizeOf(i); ok {
			t.kinds[i%len(t.kinds)].recordWindow(size, w)
		}
	}
	t.sizes, t.seconds, t.spreads = nil, nil, nil
	for i, size := range t.kinds[0].sizes {
		mean, spread, overhead, all := 0.0, 0.0, 0.0, true
		for k := range t.kinds {
			at, known := slices.BinarySearch(t.kinds[k].sizes, size)
			if all = all && known; !all {
				break
			}
			mean += t.anchors.weights[k] * t.kinds[k].seconds[at]
			spread += t.anchors.weights[k] * t.kinds[k].spreads[at]
			overhead += t.anchors.weights[k] * t.kinds[k].overhead
		}
		if !all {
			continue
		}
		t.sizes, t.seconds, t.spreads = append(t.sizes, size), append(t.seconds, mean), append(t.spreads, max(spread, 0))
		if i == 0 {
			t.overhead = overhead
		}
	}
}

// Kinds returns the service curve of each anchor; nil for requests of one shape.
func (t *Times) Kinds() []queuesim.ServiceCurve {
	var curves []queuesim.ServiceCurve
	for _, k := range t.kinds {
		curves = append(curves, queuesim.ServiceCurve{Sizes: k.sizes, Alone: k.seconds})
	}
	return curves
}

// Anchors returns the measured kinds.
func (t *Times) Anchors() Anchors { return t.anchors }
