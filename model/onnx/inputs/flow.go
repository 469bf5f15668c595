package inputs

import (
	"fmt"
	"math"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// flow follows values through a graph, including its subgraphs. ONNX gives every value of a graph
// and its subgraphs a unique name.
type flow struct {
	uses      map[string][]use
	constants map[string]*onnxpb.TensorProto
	producers map[string]*onnxpb.NodeProto
	shapes    map[string][]int64 // as declared in the file; -1 for open sizes
}

type use struct {
	node  *onnxpb.NodeProto
	index int // position among the node's inputs
}

func newFlow(g *onnxpb.GraphProto) *flow {
	f := &flow{map[string][]use{}, map[string]*onnxpb.TensorProto{}, map[string]*onnxpb.NodeProto{}, map[string][]int64{}}
	f.addGraph(g)
	return f
}

func (f *flow) addGraph(g *onnxpb.GraphProto) {
	for _, t := range g.GetInitializer() {
		f.constants[t.GetName()] = t
	}
	for _, v := range g.GetValueInfo() {
		var dims []int64
		for _, d := range v.GetType().GetTensorType().GetShape().GetDim() {
			if _, fixed := d.GetValue().(*onnxpb.TensorShapeProto_Dimension_DimValue); fixed {
				dims = append(dims, d.GetDimValue())
			} else {
				dims = append(dims, -1)
			}
		}
		f.shapes[v.GetName()] = dims
	}
	for _, node := range g.GetNode() {
		for i, name := range node.GetInput() {
			f.uses[name] = append(f.uses[name], use{node, i})
		}
		for _, name := range node.GetOutput() {
			f.producers[name] = node
		}
		if t := onnx.Attribute(node, "value").GetT(); node.GetOpType() == "Constant" && t != nil && len(node.GetOutput()) == 1 {
			f.constants[node.GetOutput()[0]] = t
		}
		for _, sub := range onnx.Subgraphs(node) {
			f.addGraph(sub)
		}
	}
}

// dims returns the shape of a value with its fixed sizes. It takes the shape of a constant, of the
// source of a conversion, or the declared shape.
func (f *flow) dims(value string) []int64 {
	for range 8 { // longer chains of conversions do not occur
		if t := f.constants[value]; t != nil {
			return t.GetDims()
		}
		node := f.producers[value]
		if !isConversion(node) {
			break
		}
		value = node.GetInput()[0]
	}
	return f.shapes[value]
}

func isConversion(node *onnxpb.NodeProto) bool {
	switch node.GetOpType() {
	case "Cast", "Identity", "DequantizeLinear", "QuantizeLinear":
		return len(node.GetInput()) > 0
	default:
		return false
	}
}

// findings are the requirements on an input's values that follow from its uses.
type findings struct {
	index     *Range // range of an index; nil if it is not an index
	reason    string
	mask      bool   // used as a mask
	parameter bool   // used as a size, a count, or a divisor
	text      string // reason for texts, if an operator reads strings as language; else ""
}

// demand narrows the range of the index.
func (r *findings) demand(want Range, reason string) {
	before := Range{math.MinInt64, math.MaxInt64}
	if r.index != nil {
		before = *r.index
	}
	if both := intersect(before, want); r.index == nil || both != before {
		r.index, r.reason = &both, reason
	}
}

// step is a value on the path: the input's values plus constants between lo and hi.
type step struct {
	value  string
	lo, hi int64
	whole  bool // the input has an integer type
	cast   bool // and was converted to floating point
	chosen bool // the values, or zeros where a factor of 0 and 1 leaves them out
}

// trace follows an input through operators that keep its elements, to operators that restrict its
// values.
func (f *flow) trace(in Input) findings {
	var found findings
	seen := map[string]bool{}
	queue := []step{{value: in.Name, whole: !in.Type.IsFloat()}}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if seen[s.value] {
			continue
		}
		seen[s.value] = true
		for _, u := range f.uses[s.value] {
			f.examine(u, s, &found)
			queue = append(queue, f.follow(u, s)...)
		}
	}
	return found
}

// follow returns the values into which a use passes the elements, unchanged or shifted.
func (f *flow) follow(u use, s step) []step {
	pass := func(names ...string) []step {
		var next []step
		for _, name := range names {
			next = append(next, step{name, s.lo, s.hi, s.whole, s.cast, s.chosen})
		}
		return next
	}
	outputs := u.node.GetOutput()
	switch u.node.GetOpType() {
	case "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Slice", "Expand", "Tile", "Split", "Dropout",
		"Gather", "GatherElements", "GatherND", "ReduceMax", "ReduceMin":
		if u.index == 0 {
			return pass(outputs...)
		}
	case "Concat", "Max", "Min":
		return pass(outputs...)
	case "Where":
		if u.index > 0 {
			return pass(outputs...)
		}
	case "Cast":
		s.cast = s.cast || s.whole && onnx.DataType(onnx.Attribute(u.node, "to").GetI()).IsFloat()
		return pass(outputs...)
	case "Mul": // tf2onnx writes Where(c, a, b) of whole numbers as a·c + b·(1 - c)
		if s.whole && !s.cast && f.isComputed(u) {
			s.chosen = true
			return pass(outputs...)
		}
	case "Add", "Sub":
		if s.chosen && u.node.GetOpType() == "Add" && f.isComputed(u) {
			return pass(outputs...)
		}
		return f.shift(u, s)
	case "Loop", "Scan":
		return pass(bodyInput(u)...)
	}
	return nil
}

// isComputed reports whether the other one of an operator's two inputs is no constant.
func (f *flow) isComputed(u use) bool {
	return len(u.node.GetInput()) == 2 && f.constants[u.node.GetInput()[1-u.index]] == nil
}

// shift follows x + c and x - c for a constant integer c. c may be a vector: a table with the
// categories of several columns is indexed by the category plus the column's first row.
func (f *flow) shift(u use, s step) []step {
	if len(u.node.GetInput()) != 2 || len(u.node.GetOutput()) != 1 {
		return nil
	}
	lo, hi, ok := wholeNumbers(f.constants[u.node.GetInput()[1-u.index]])
	if !ok || u.node.GetOpType() == "Sub" && u.index == 1 {
		return nil
	}
	if u.node.GetOpType() == "Sub" {
		lo, hi = -hi, -lo
	}
	return []step{{u.node.GetOutput()[0], s.lo + lo, s.hi + hi, s.whole, s.cast, s.chosen}}
}

// wholeNumbers returns the smallest and the largest value of an integer constant. ok is false for
// other constants, and if its values could overflow a sum.
func wholeNumbers(t *onnxpb.TensorProto) (lo, hi int64, ok bool) {
	values := integers(t)
	if len(values) == 0 {
		return 0, 0, false
	}
	lo, hi = values[0], values[0]
	for _, v := range values {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi, lo > math.MinInt32 && hi < math.MaxInt32
}

// bodyInput returns the name of a Loop's or Scan's input in its body. A Loop's first two inputs are
// the trip count and the condition. In the body they are other values.
func bodyInput(u use) []string {
	graphs := onnx.Subgraphs(u.node)
	if len(graphs) != 1 || u.index >= len(graphs[0].GetInput()) || u.node.GetOpType() == "Loop" && u.index < 2 {
		return nil
	}
	return []string{graphs[0].GetInput()[u.index].GetName()}
}

// examine records the restrictions of a use.
func (f *flow) examine(u use, s step, found *findings) {
	if readsText(u.node) && found.text == "" {
		found.text = textReason(u.node)
	}
	inputs := u.node.GetInput()
	switch op := u.node.GetOpType(); {
	case (op == "Gather" || op == "GatherElements" || op == "ScatterElements" || op == "GatherBlockQuantized") && u.index == 1:
		f.demandRow(inputs[0], onnx.Attribute(u.node, "axis"), onnx.Attribute(u.node, "gather_axis"), s, found)
	case (op == "GatherND" || op == "ScatterND") && u.index == 1:
		found.demand(Range{-s.lo, 1 - s.hi}, fmt.Sprintf("index into %q", inputs[0]))
	case op == "OneHot" && u.index == 0 && len(inputs) > 1:
		if depth := integers(f.constants[inputs[1]]); len(depth) == 1 {
			found.demand(Range{-s.lo, depth[0] - s.hi}, fmt.Sprintf("one of %d classes", depth[0]))
		}
	case op == "EmbedLayerNormalization" && u.index < 2 && len(inputs) > 4:
		f.demandRow(inputs[2+2*u.index], nil, nil, s, found)
	case f.isMaskUse(u, s):
		found.mask = true
	case isParameter(u):
		found.parameter = true
	}
}

// demandRow records that the value selects from a dimension of data: along the axis of one of the
// two attributes, or the first one. If its size is unknown, only 0 is safe.
func (f *flow) demandRow(data string, axis, other *onnxpb.AttributeProto, s step, found *findings) {
	dims := f.dims(data)
	i := axis.GetI() + other.GetI()
	if i < 0 {
		i += int64(len(dims))
	}
	if i < 0 || i >= int64(len(dims)) || dims[i] <= 0 {
		found.demand(Range{-s.lo, 1 - s.hi}, fmt.Sprintf("index into %q, whose size is not known", data))
		return
	}
	found.demand(Range{-s.lo, dims[i] - s.hi}, fmt.Sprintf("row of the table %q (%d rows)", data, dims[i]))
}

// isMaskUse recognizes the uses of a mask: 1 - x and x·y after a conversion to floating point, a
// condition, and the mask inputs of fused attention. x·constant is a scaled number, not a mask.
func (f *flow) isMaskUse(u use, s step) bool {
	switch u.node.GetOpType() {
	case "Sub":
		return s.cast && u.index == 1 && f.constants[u.node.GetInput()[0]] != nil
	case "Mul":
		return s.cast && len(u.node.GetInput()) == 2 && f.constants[u.node.GetInput()[1-u.index]] == nil
	case "Cast":
		return onnx.DataType(onnx.Attribute(u.node, "to").GetI()) == onnx.Bool
	case "Where":
		return u.index == 0
	case "Attention":
		return u.index == 3
	case "MultiHeadAttention":
		return u.index == 4
	case "EmbedLayerNormalization":
		return u.index == 7
	default:
		return false
	}
}

// isParameter recognizes sizes, counts and divisors. Their values decide whether a run is valid.
func isParameter(u use) bool {
	switch u.node.GetOpType() {
	case "Reshape", "Expand", "Tile", "Slice", "Pad", "TopK", "Resize", "Squeeze", "Unsqueeze", "Split", "Div", "Mod":
		return u.index > 0
	case "ConstantOfShape", "Range", "Loop":
		return u.index == 0 || u.node.GetOpType() == "Range"
	case "LSTM", "GRU", "RNN":
		return u.index == 4
	case "NonMaxSuppression":
		return u.index == 2
	default:
		return false
	}
}
