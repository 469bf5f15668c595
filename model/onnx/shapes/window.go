package shapes

import (
	"encoding/binary"
	"math"
	"slices"

	"tuner/model/onnx"
)

// windowRule returns the rules of operators that slide a window over the dimensions from the third
// on, and of those that resize them.
func windowRule(operator string) rule {
	switch operator {
	case "Conv", "com.microsoft.FusedConv":
		return func(n node) []Info { return one(n.convolved(n.in(0).Type, n.in(1))) }
	case "ConvInteger":
		return func(n node) []Info { return one(n.convolved(onnx.Int32, n.in(1))) }
	case "QLinearConv":
		return func(n node) []Info { return one(n.convolved(n.in(7).Type, n.in(3))) }
	case "ConvTranspose":
		return convTranspose
	case "AveragePool", "LpPool":
		return func(n node) []Info { return one(n.pooled()) }
	case "MaxPool":
		return func(n node) []Info { return []Info{n.pooled(), withType(n.pooled(), onnx.Int64)} }
	case "Resize", "Upsample":
		return resize
	case "GridSample":
		return gridSample
	case "RoiAlign":
		return roiAlign
	default:
		return nil
	}
}

// window describes the movement of a kernel along one dimension.
type window struct {
	kernel, stride, dilation int64
	before, after            int64 // padding
	auto                     string
	ceil                     bool
}

// windows reads a node's attributes for kernels of the given sizes. ok is false if they do not
// match.
func (n node) windows(kernel []int64) (list []window, ok bool) {
	strides, dilations, pads := n.integers("strides"), n.integers("dilations"), n.integers("pads")
	count := len(kernel)
	if strides != nil && len(strides) != count || dilations != nil && len(dilations) != count || pads != nil && len(pads) != 2*count {
		return nil, false
	}
	for i, k := range kernel {
		w := window{kernel: k, stride: 1, dilation: 1, auto: n.text("auto_pad"), ceil: n.integer("ceil_mode", 0) != 0}
		if strides != nil {
			w.stride = strides[i]
		}
		if dilations != nil {
			w.dilation = dilations[i]
		}
		if pads != nil && (w.auto == "" || w.auto == "NOTSET") {
			w.before, w.after = pads[i], pads[i+count]
		}
		const most = math.MaxInt16 // products of larger numbers are no valid sizes
		if w.kernel <= 0 || w.stride <= 0 || w.dilation <= 0 || w.kernel > most || w.stride > most || w.dilation > most ||
			!small(w.before) || !small(w.after) {
			return nil, false
		}
		list = append(list, w)
	}
	return list, true
}

// length returns the number of positions of the window in a dimension.
func (w window) length(d onnx.Dim) onnx.Dim {
	same := w.auto == "SAME_UPPER" || w.auto == "SAME_LOWER"
	free := w.before + w.after - (w.dilation*(w.kernel-1) + 1) // negative extent of the window beyond its first element
	switch {
	case w.stride == 1 && (same || free == -1):
		return d
	case !d.IsFixed() || d.Size > math.MaxInt32:
		return open()
	case same:
		return sized((d.Size + w.stride - 1) / w.stride)
	case d.Size+free < 0:
		return open() // the window does not fit, so the model does not run
	case !w.ceil || (d.Size+free)%w.stride == 0:
		return sized((d.Size+free)/w.stride + 1)
	}
	// ONNX Runtime's versions differ in whether a last window counts that begins in the padding.
	count := (d.Size+free)/w.stride + 2
	if (count-1)*w.stride >= d.Size+w.before {
		return open()
	}
	return sized(count)
}

// convolved returns the result of a convolution with weights [M, C/group, kernel …].
func (n node) convolved(t onnx.DataType, weight Info) Info {
	x := n.in(0)
	rank := max(len(x.Shape), len(weight.Shape))
	if !x.Ranked && !weight.Ranked || rank < 3 || x.Ranked && weight.Ranked && len(x.Shape) != len(weight.Shape) {
		return typed(t)
	}
	shape := openDims(rank)
	if x.Ranked {
		shape[0] = x.Shape[0]
	}
	if weight.Ranked {
		shape[1] = weight.Shape[0]
	}
	if windows, ok := n.windows(n.kernel(weight)); ok && x.Ranked && len(windows) == rank-2 {
		for i, w := range windows {
			shape[2+i] = w.length(x.Shape[2+i])
		}
	}
	return known(t, shape)
}

// kernel returns the attribute kernel_shape, or the kernel of the weights; nil if both are unknown.
func (n node) kernel(weight Info) []int64 {
	if kernel := n.integers("kernel_shape"); kernel != nil || !weight.Ranked || len(weight.Shape) < 3 {
		return kernel
	}
	var kernel []int64
	for _, d := range weight.Shape[2:] {
		kernel = append(kernel, d.Size) // an open size, -1, matches no window
	}
	return kernel
}

// convTranspose is the inverse: each element becomes a window.
func convTranspose(n node) []Info {
	x, weight := n.in(0), n.in(1)
	if !x.Ranked || len(x.Shape) < 3 || weight.Ranked && len(weight.Shape) != len(x.Shape) {
		return one(typed(x.Type))
	}
	shape := openDims(len(x.Shape))
	shape[0] = x.Shape[0]
	if weight.Ranked {
		shape[1] = multiply(weight.Shape[1], sized(n.integer("group", 1)))
	}
	spatial := len(shape) - 2
	if given := n.integers("output_shape"); len(given) == spatial {
		for i, v := range given {
			shape[2+i] = sized(v)
		}
		return one(known(x.Type, shape))
	}
	windows, ok := n.windows(n.kernel(weight))
	extra := n.integers("output_padding")
	if !ok || len(windows) != spatial || extra != nil && len(extra) != spatial {
		return one(known(x.Type, shape))
	}
	for i, w := range windows {
		d := x.Shape[2+i]
		if !d.IsFixed() || d.Size > math.MaxInt32 || d.Size == 0 {
			continue
		}
		more := int64(0)
		if extra != nil && small(extra[i]) {
			more = extra[i]
		}
		shape[2+i] = sized((d.Size-1)*w.stride + more + w.dilation*(w.kernel-1) + 1 - w.before - w.after)
		if w.auto == "SAME_UPPER" || w.auto == "SAME_LOWER" {
			shape[2+i] = sized(d.Size * w.stride)
		}
	}
	return one(known(x.Type, shape))
}

func (n node) pooled() Info {
	x := n.in(0)
	windows, ok := n.windows(n.integers("kernel_shape"))
	if !x.Ranked || len(x.Shape) < 3 {
		return typed(x.Type)
	}
	shape := slices.Clone(x.Shape)
	for i := range shape[2:] {
		shape[2+i] = open()
		if ok && len(windows) == len(shape)-2 {
			shape[2+i] = windows[i].length(x.Shape[2+i])
		}
	}
	return known(x.Type, shape)
}

// resize scales dimensions by factors, or to sizes. The inputs differ between versions. Upsample
// (9) and Resize (10) have the factors as the second input. Resize has them as the third from
// version 11 on, and the sizes as the fourth.
func resize(n node) []Info {
	x := n.in(0)
	if !x.Ranked {
		return one(typed(x.Type))
	}
	shape := openDims(len(x.Shape))
	axes := make([]int, len(shape))
	for i := range axes {
		axes[i] = i
	}
	if a := n.integers("axes"); a != nil {
		list, ok := positions(a, len(shape))
		if !ok {
			return one(typed(x.Type))
		}
		copy(shape, x.Shape)
		axes = list
	}
	policy := n.text("keep_aspect_ratio_policy")
	sizes, ok := n.numbers(3)
	scales := n.scales()
	crop := n.text("coordinate_transformation_mode") == "tf_crop_and_resize"
	for i, axis := range axes {
		shape[axis] = open()
		switch {
		case ok && len(sizes) == len(axes) && (policy == "" || policy == "stretch"):
			shape[axis] = sizes[i].dim()
		case len(scales) == len(axes) && !crop:
			shape[axis] = scaled(x.Shape[axis], scales[i])
		}
	}
	return one(known(x.Type, shape))
}

// scales returns the constant factors of a Resize or Upsample; nil if they are not constant.
func (n node) scales() []float32 {
	if a := onnx.Attribute(n.NodeProto, "scales"); a != nil {
		return a.GetFloats()
	}
	const withRoi = 11
	i := 2
	if n.GetOpType() == "Upsample" || n.opset() < withRoi {
		i = 1
	}
	if !n.has(i) {
		return nil
	}
	t := n.scope.tensor(n.GetInput()[i])
	if count, ok := onnx.Elements(t.GetDims()); t == nil || !ok || count > maxRank || onnx.DataType(t.GetDataType()) != onnx.Float {
		return nil
	}
	raw, err := n.scope.model.Data(t)
	if err != nil {
		return nil // loading the model reports the reason
	}
	values := make([]float32, len(raw)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return values
}

// scaled returns the size times the factor, rounded down, in ONNX Runtime's 32-bit arithmetic.
func scaled(d onnx.Dim, factor float32) onnx.Dim {
	switch {
	case factor == 1:
		return d
	case !d.IsFixed() || !(factor > 0 && factor < math.MaxInt16) || d.Size > math.MaxInt32:
		return open()
	default:
		return sized(int64(factor * float32(d.Size)))
	}
}

// gridSample reads at the positions of the grid, [N, H', W', 2].
func gridSample(n node) []Info {
	x, grid := n.in(0), n.in(1)
	if !x.Ranked || !grid.Ranked || len(grid.Shape) != len(x.Shape) || len(x.Shape) < 3 {
		return one(typed(x.Type))
	}
	return one(known(x.Type, slices.Concat(x.Shape[:2], grid.Shape[1:len(grid.Shape)-1])))
}

// roiAlign cuts a region of fixed size from the image that batch_indices names, for each row of
// rois.
func roiAlign(n node) []Info {
	x, rois := n.in(0), n.in(1)
	if !x.Ranked || !rois.Ranked || len(x.Shape) != 4 || len(rois.Shape) != 2 {
		return one(typed(x.Type))
	}
	return one(known(x.Type, []onnx.Dim{rois.Shape[0], x.Shape[1], sized(n.integer("output_height", 1)), sized(n.integer("output_width", 1))}))
}
