package quantization

import (
	"encoding/binary"
	"fmt"
	"math"

	"tuner/model/onnx"
	"tuner/model/onnx/rewrite"
)

// weight writes the constants of a layer, each with its DequantizeLinear. activation is the scale
// of the layer's activation. It returns the names of the decoded weights and of the decoded bias
// ("" without a bias). Weights that several layers share are written once.
func (s *static) weight(l layer, activation float32) (weight, bias string, err error) {
	values, err := l.weight.Floats(s.Model)
	if err != nil {
		return "", "", err
	}
	name := l.weight.Tensor.GetName()
	denormal, err := checkFinite(name, values)
	if err != nil {
		return "", "", err
	}
	addends, err := s.bias(l)
	if err != nil {
		return "", "", err
	}
	q := quantizeLayer(values, l.axis, l.weight.Dims(), s.limit())
	fitted := q.fit(values, addends, activation)
	key := weightKey{name, l.weight.Transposed}
	weight, shared := s.weights[key]
	if !shared || fitted {
		if denormal > 0 && !shared {
			s.summary.Notes = append(s.summary.Notes, fmt.Sprintf("the weight %q has %d denormal numbers (below 1.2e-38): "+
				"they become 0 in %s; in fp32 they can slow its layers down a hundredfold", name, denormal, staticTarget))
		}
		weight = s.decode(name, onnx.Int8, q.raw, l.weight.Dims(), q.scales, l.axis)
		if !fitted {
			s.weights[key] = weight
		}
	}
	if addends == nil {
		return weight, "", nil
	}
	raw, scales := quantizeBias(addends, activation, q.scales)
	return weight, s.decode(l.bias, onnx.Int32, raw, []int64{l.channels()}, scales, 0), nil
}

// limit returns the largest magnitude of an 8-bit weight.
func (s *static) limit() int8 {
	if s.options.Bits == 7 {
		return 64
	}
	return 127
}

// bias returns the bias of each channel; nil without a bias.
func (s *static) bias(l layer) ([]float32, error) {
	if l.bias == "" {
		return nil, nil
	}
	c, _ := rewrite.FindConstant(s.Model, l.bias)
	values, err := c.Floats(s.Model)
	if err != nil {
		return nil, err
	}
	if _, err := checkFinite(c.Tensor.GetName(), values); err != nil {
		return nil, err
	}
	if len(values) == int(l.channels()) {
		return values, nil
	}
	all := make([]float32, l.channels()) // one number for all channels
	for i := range all {
		all[i] = values[0]
	}
	return all, nil
}

// decode writes an integer constant with a scale per index along axis, and its DequantizeLinear. It
// returns the latter's output.
//
// Each weight has its own zero points, although they are 0. Without zero points, ONNX Runtime 1.31
// does not make a QGemm. Under session.x64quantprecision=1 it refuses zero points that several
// weights share.
func (s *static) decode(name string, t onnx.DataType, raw []byte, dims []int64, scales []float32, axis int) string {
	channels := int64(len(scales))
	inputs := []string{
		s.Constant(name+"_quantized", t, raw, dims...),
		s.Constant(name+"_scale", onnx.Float, rewrite.FloatBytes(scales), channels),
	}
	if t == onnx.Int8 { // 32-bit integers have only the zero point 0
		inputs = append(inputs, s.Constant(name+"_zero_point", onnx.Int8, make([]byte, channels), channels))
	}
	return s.Compute("DequantizeLinear", name+"_DequantizeLinear", inputs, rewrite.IntAttribute("axis", int64(axis)))
}

// layerWeights are the weights of a layer as integers.
type layerWeights struct {
	raw       []byte
	scales    []float32
	limit     int8
	channelOf func(element int) int
}

// quantizeLayer quantizes weights with one scale per index along axis.
func quantizeLayer(values []float32, axis int, dims []int64, limit int8) layerWeights {
	inner := 1 // number of elements between two indices
	for _, d := range dims[axis+1:] {
		inner *= int(d)
	}
	channels := int(dims[axis])
	w := layerWeights{limit: limit, channelOf: func(i int) int { return i / inner % channels }}
	w.raw, w.scales = quantizeSymmetric(values, limit, channels, w.channelOf)
	return w
}

// mostBias is the largest bias in units of its scale. The sum of the products stays below 2^30 too,
// so both together fit into 32 bits.
const mostBias = 1 << 30

// fit adapts the scales of channels to their biases, and reports whether it changed any. A bias's
// scale is the channel's scale times the activation's. If a channel's weights are small compared
// with its bias, it gets a larger scale; otherwise the bias would not fit into 32 bits. A channel
// of zeros gets a scale that keeps 24 bits of the bias, as many as in float.
func (w layerWeights) fit(values, bias []float32, activation float32) bool {
	empty := make([]bool, len(w.scales))
	for c := range empty {
		empty[c] = true
	}
	for i, b := range w.raw {
		if b != 0 {
			empty[w.channelOf(i)] = false
		}
	}
	changed := make([]bool, len(w.scales))
	anyChanged := false
	for c, b := range bias {
		magnitude := math.Abs(float64(b)) / float64(activation)
		scale := float64(w.scales[c])
		switch {
		case empty[c] && b != 0:
			scale = magnitude / (1 << 24)
		case magnitude > scale*mostBias:
			scale = magnitude / mostBias
		default:
			continue
		}
		w.scales[c] = max(float32(scale), smallestNormal)
		changed[c], anyChanged = true, true
	}
	for i, v := range values {
		if c := w.channelOf(i); changed[c] {
			rounded := math.RoundToEven(float64(v / w.scales[c]))
			w.raw[i] = byte(int8(min(max(rounded, -float64(w.limit)), float64(w.limit))))
		}
	}
	return anyChanged
}

// quantizeBias converts biases into 32-bit integers, with the scales of the sums to which they are
// added.
func quantizeBias(bias []float32, activation float32, weights []float32) (raw []byte, scales []float32) {
	scales = make([]float32, len(bias))
	for c, b := range bias {
		scales[c] = max(activation*weights[c], smallestNormal)
		rounded := math.RoundToEven(float64(b) / float64(scales[c]))
		raw = binary.LittleEndian.AppendUint32(raw, uint32(int32(min(max(rounded, math.MinInt32), math.MaxInt32))))
	}
	return raw, scales
}
