package shapes

import (
	"math"
	"slices"

	"tuner/model/onnx"
)

// slice cuts along axes. An unknown size stays if nothing is cut off.
func slice(n node) []Info {
	x := n.in(0)
	if !x.Ranked {
		return one(typed(x.Type))
	}
	cuts, ok := n.cuts(len(x.Shape))
	if !ok {
		return one(known(x.Type, openDims(len(x.Shape))))
	}
	shape := slices.Clone(x.Shape)
	for _, c := range cuts {
		axis, inside := at(c.axis, len(shape))
		if !inside {
			return one(typed(x.Type))
		}
		shape[axis] = c.length(shape[axis])
	}
	return one(known(x.Type, shape))
}

// length returns the remaining size of a dimension.
func (c cut) length(d onnx.Dim) onnx.Dim {
	const end = math.MaxInt32 // exporters write "to the end" as this, or as the largest 64-bit number
	switch {
	case !c.known || c.step == 0 || !small(c.step):
		return open()
	case c.start == 0 && c.end >= end && c.step == 1:
		return d
	case !d.IsFixed() || d.Size > math.MaxInt32:
		return open()
	}
	clamp := func(index, low, high int64) int64 {
		if index < 0 {
			index += d.Size
		}
		return min(max(index, low), high)
	}
	if c.step > 0 {
		start, end := clamp(c.start, 0, d.Size), clamp(c.end, 0, d.Size)
		return sized(max(0, (end-start+c.step-1)/c.step))
	}
	start, stop := clamp(c.start, 0, d.Size-1), clamp(c.end, -1, d.Size-1)
	return sized(max(0, (start-stop-c.step-1)/-c.step))
}

// cut describes a Slice along one axis.
type cut struct {
	axis       int64
	start, end int64
	step       int64
	known      bool // start, end and step are known
}

// cuts returns the cuts of a Slice. They are attributes before opset 10, and inputs since then. ok
// is false if even the axes are unknown.
func (n node) cuts(rank int) (list []cut, ok bool) {
	starts, known := []int64(nil), true
	var ends, axes, steps []int64
	if a := onnx.Attribute(n.NodeProto, "starts"); a != nil {
		starts, ends, axes = a.GetInts(), n.integers("ends"), n.integers("axes")
	} else {
		var okStarts, okEnds, okSteps, okAxes bool
		starts, okStarts = n.wholes(1)
		ends, okEnds = n.wholes(2)
		steps, okSteps = n.wholes(4)
		axes, okAxes = n.wholes(3)
		if n.has(3) && !okAxes {
			return nil, false
		}
		known = okStarts && okEnds && (okSteps || !n.has(4))
	}
	count := len(axes)
	if axes == nil { // all axes from the first on
		switch number, counted := n.count(1); {
		case known:
			count = len(starts)
		case counted:
			count = number
		default:
			return nil, false
		}
	}
	if known && (len(starts) != count || len(ends) != count || steps != nil && len(steps) != count) || count > rank {
		return nil, false
	}
	for i := range count {
		c := cut{axis: int64(i), step: 1, known: known}
		if axes != nil {
			c.axis = axes[i]
		}
		if known {
			c.start, c.end = starts[i], ends[i]
			if steps != nil {
				c.step = steps[i]
			}
		}
		list = append(list, c)
	}
	return list, true
}
