package quantization

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
)

// Range is the range of a value.
type Range struct{ Min, Max float32 }

// StaticOptions configure how weights and activations become 8-bit integers.
type StaticOptions struct {
	// Ranges has the range of each value that Activations lists, by name.
	Ranges map[string]Range
	// Bits is the number of bits of a weight: 8 (0 means 8), or 7. Processors without VNNI or AMX
	// need 7, since their 16-bit sums of two products saturate.
	Bits int
	// Keep names nodes that are not converted.
	Keep []string
}

// staticTarget is the name of Static's result in messages.
const staticTarget = "int8_static"

// staticOpset is the first opset whose DequantizeLinear accepts a scale per channel.
const staticOpset = 13

// Activations lists the values of m, including inputs, whose ranges Static needs, in graph
// order. Errors are Static's.
func Activations(m *onnx.Model) ([]string, error) {
	s, err := newStatic(m, StaticOptions{})
	if err != nil {
		return nil, err
	}
	return s.calibrated(), nil
}

// Static converts convolutions and products with constant weights (Conv, MatMul, Gemm) to 8-bit
// integers. It also converts the nodes between them (sums, pools, concatenations, reshapes), so
// that values stay integers from layer to layer.
//
// Weights are signed, with a scale per output channel. Activations are unsigned, with one scale and
// zero point from their given range. Biases have 32 bits. Normalisations after a convolution are
// folded into it. Inputs and outputs of the graph keep their names and types. The error wraps
// ErrNothing if no node can be converted. Other errors name an invalid node, weight or range, or
// say that the model's operator set is too old.
//
// The result has the form that runtimes agree on: the original operators between QuantizeLinear and
// DequantizeLinear. ONNX Runtime's CPU provider turns them into QLinearConv, QLinearAdd and so on,
// OpenVINO into its own integer operators.
func Static(m *onnx.Model, o StaticOptions) (*onnx.Model, rewrite.Summary, error) {
	s, err := newStatic(m, o)
	if err == nil {
		err = s.checkRanges()
	}
	if err != nil {
		return nil, s.summary, err
	}
	for _, v := range s.Inputs() {
		if s.isQuantized(v.Name) {
			s.pair(v.Name, v.Name)
		}
	}
	for _, node := range s.Nodes() {
		if err := s.convert(node); err != nil {
			return nil, s.summary, err
		}
	}
	converted, err := s.Finish()
	return converted, s.summary, err
}

// static applies a plan.
type static struct {
	*rewrite.Editor
	*plan
	options     StaticOptions
	activations map[string]quantized // scale and zero point, by value
	decoded     map[string]string    // value → its name after DequantizeLinear
	weights     map[weightKey]string // names after DequantizeLinear
	probing     bool                 // the integer layers are added beside the original ones
	summary     rewrite.Summary
}

// newStatic cleans a model and makes the plan. The summary is complete even if nothing can be
// converted.
func newStatic(m *onnx.Model, o StaticOptions) (*static, error) {
	s := &static{options: o, activations: map[string]quantized{}, decoded: map[string]string{}, weights: map[weightKey]string{}}
	if o.Bits != 0 && o.Bits != 7 && o.Bits != 8 {
		return s, fmt.Errorf("cannot convert the model to %s: weights of %d bits are not possible; choose 7 or 8", staticTarget, o.Bits)
	}
	clean, err := rewrite.Clean(m)
	if err != nil {
		return s, err
	}
	if err := rewrite.CheckKeep(clean, staticTarget, o.Keep); err != nil {
		return s, err
	}
	if node := findQuantized(clean.Graph()); node != nil {
		return s, rewrite.Nothing(staticTarget, fmt.Sprintf("it is quantized already (the node %q is a %s); convert the model as it was before quantization", node.GetName(), node.GetOpType()))
	}
	raised, err := raiseOpset(clean)
	if err != nil {
		return s, fmt.Errorf("cannot convert the model to %s: %w", staticTarget, err)
	}
	if raised != clean {
		s.summary.Notes = append(s.summary.Notes, fmt.Sprintf("its operator set is %d now, and the original's %d", staticOpset, clean.Opset("")))
	}
	prepared, err := foldNormalizations(raised)
	if err == nil {
		prepared, err = joinBiases(prepared)
	}
	if err == nil {
		s.plan, err = newPlan(prepared, o.Keep)
	}
	if err != nil {
		return s, fmt.Errorf("cannot convert the model to %s: %w", staticTarget, err)
	}
	s.summary.Kept = s.kept
	if len(s.layers) == 0 {
		return s, rewrite.Nothing(staticTarget, whyNoLayer(s.kept))
	}
	s.Editor = rewrite.NewEditor(prepared)
	return s, rewrite.CheckOpset(prepared, staticTarget, staticOpset)
}

// whyNoLayer explains why no layer can be converted.
func whyNoLayer(kept []rewrite.Kept) string {
	if len(kept) == 0 {
		return "it has no Conv, MatMul or Gemm with constant weights"
	}
	return fmt.Sprintf("none of its %d layers with constant weights can be converted; the first, %s %q: %s",
		len(kept), kept[0].Op, kept[0].Node, kept[0].Reason)
}

// checkRanges reports every value without a valid range.
func (s *static) checkRanges() error {
	var errs []error
	for _, value := range s.calibrated() {
		r, ok := s.options.Ranges[value]
		switch width := float64(r.Max) - float64(r.Min); {
		case !ok:
			errs = append(errs, fmt.Errorf("the range of the value %q is missing; calibrate all that Activations lists", value))
		case !(width >= 0) || math.IsInf(width, 0):
			errs = append(errs, fmt.Errorf("the range of the value %q, from %v to %v, is impossible", value, r.Min, r.Max))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("cannot convert the model to %s: %w", staticTarget, errors.Join(errs...))
	}
	return nil
}

// convert writes a node as planned.
func (s *static) convert(node *onnxpb.NodeProto) error {
	l, isLayer := s.layers[node]
	switch {
	case isLayer:
		s.summary.Converted = append(s.summary.Converted, node.GetName())
		output := s.layerOutput(node)
		if err := s.writeLayer(l, s.decoded[l.activation], output); err != nil {
			return err
		}
		s.close(node, output)
	case s.others[node] != none:
		written := rewrite.Shallow(node)
		written.Input = slices.Clone(node.GetInput())
		for i := range numbers(node, s.others[node]) {
			written.Input[i] = s.decoded[written.Input[i]]
		}
		written.Output = []string{s.Used.Fresh(s.result(node) + "_float")}
		s.Keep(written)
		s.close(node, written.Output[0])
	case s.isAbsorbed(node):
	default:
		s.Keep(node)
		for _, output := range node.GetOutput() {
			if output != "" && s.isQuantized(output) {
				s.pair(output, output)
			}
		}
	}
	return nil
}

// isAbsorbed reports whether a node is a limiter that becomes superfluous by the quantization of
// its output.
func (s *static) isAbsorbed(node *onnxpb.NodeProto) bool {
	output := rewrite.FirstName(node.GetOutput())
	source := s.source(output)
	return source != nil && source != node && s.isQuantized(output)
}

// layerOutput returns the name of a layer's float result: its own output if that is not quantized.
func (s *static) layerOutput(node *onnxpb.NodeProto) string {
	if result := s.result(node); s.isQuantized(result) {
		return s.Used.Fresh(result + "_float")
	}
	return node.GetOutput()[0]
}

// close quantizes the result of a node. The node computes it in float under the name computed. The
// decoded value gets the original name of the result, for all its users.
func (s *static) close(node *onnxpb.NodeProto, computed string) {
	if computed != node.GetOutput()[0] {
		s.pair(s.result(node), computed)
	}
}

// pair writes QuantizeLinear and DequantizeLinear for a value that is computed under the name
// computed. If that is the value's own name, the decoded value gets a new one. Users that need no
// integers then continue with the exact value.
func (s *static) pair(value, computed string) {
	a := s.activation(value)
	integers := s.Compute("QuantizeLinear", value+"_QuantizeLinear", []string{computed, a.scale, a.zero})
	decoded := value
	if computed == value {
		decoded = s.Used.Fresh(value + "_decoded")
	}
	s.AddNode("DequantizeLinear", value+"_DequantizeLinear", []string{integers, a.scale, a.zero}, []string{decoded})
	s.decoded[value] = decoded
}

// activation returns the scale and the zero point of a value, as constants.
func (s *static) activation(value string) quantized {
	root := s.root(value)
	if a, done := s.activations[root]; done {
		return a
	}
	scale, zero := s.parameters(root)
	a := quantized{
		scale: s.Constant(root+"_scale", onnx.Float, rewrite.FloatBytes([]float32{scale})),
		zero:  s.Constant(root+"_zero_point", onnx.Uint8, []byte{zero}),
	}
	s.activations[root] = a
	return a
}

// parameters chooses scale and zero point so that 0 to 255 cover the range of a value, and 0.0 is
// exact. The result of a limiter is not negative, and not above the limit. A range with only zero
// has the scale 1.
func (s *static) parameters(value string) (scale float32, zero uint8) {
	r := s.options.Ranges[value]
	least, most := min(float64(r.Min), 0), max(float64(r.Max), 0)
	if node := s.Producer(value); s.isLimiter(node) {
		least = 0
		if rewrite.IsOp(node, "Clip") && len(node.GetInput()) > 2 {
			if limit, ok := s.number(node.GetInput()[2]); ok {
				most = max(min(most, float64(limit)), 0)
			}
		}
	}
	scale = float32((most - least) / math.MaxUint8)
	if scale < smallestNormal {
		return 1, 0
	}
	return scale, uint8(min(math.RoundToEven(-least/float64(scale)), math.MaxUint8))
}

// writeLayer writes a layer that reads the decoded activation and the decoded weights, and computes
// output.
func (s *static) writeLayer(l layer, activation, output string) error {
	scale, _ := s.parameters(s.root(l.activation))
	weight, bias, err := s.weight(l, scale)
	if err != nil {
		return fmt.Errorf("cannot convert the node %q to %s: %w", l.node.GetName(), staticTarget, err)
	}
	node := rewrite.Shallow(l.node)
	if rewrite.IsOp(node, "Gemm") {
		node.Attribute = nil // transB is applied to the weights; the others have their defaults
	}
	if s.probing {
		node.Name = proto.String(s.Used.Fresh(l.node.GetName() + "_int8"))
	}
	node.Input = []string{activation, weight}
	if bias != "" {
		node.Input = append(node.Input, bias)
	}
	node.Output = []string{output}
	s.Keep(node)
	return nil
}
