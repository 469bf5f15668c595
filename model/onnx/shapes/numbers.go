package shapes

import (
	"encoding/binary"
	"math"
	"slices"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// number is an element of an integer tensor with which a graph computes shapes. The zero number is
// unknown.
type number struct {
	value  int64
	known  bool
	symbol string // the symbol that it equals, if the value is unknown
}

func whole(v int64) number { return number{value: v, known: true} }

func wholes(list []int64) []number {
	numbers := make([]number, len(list))
	for i, v := range list {
		numbers[i] = whole(v)
	}
	return numbers
}

// size converts a dimension to a number.
func size(d onnx.Dim) number {
	if d.IsFixed() {
		return whole(d.Size)
	}
	return number{symbol: d.Symbol}
}

// dim converts a number to a dimension.
func (v number) dim() onnx.Dim {
	if v.known {
		return sized(v.value)
	}
	return onnx.Symbol(v.symbol)
}

func allKnown(numbers []number) ([]int64, bool) {
	list := make([]int64, len(numbers))
	for i, v := range numbers {
		if !v.known {
			return nil, false
		}
		list[i] = v.value
	}
	return list, true
}

// maxNumbers is the largest tensor whose elements are followed. Shapes, axes and pads are far
// smaller.
const maxNumbers = 256

// wholeNumbers returns the elements of a small constant of INT32, INT64 or BOOL. It returns none if
// the constant cannot be read; loading the model reports the reason.
func (s *scope) wholeNumbers(t *onnxpb.TensorProto) ([]number, bool) {
	count, ok := onnx.Elements(t.GetDims())
	if !ok || count > maxNumbers {
		return nil, false
	}
	typ := onnx.DataType(t.GetDataType())
	if typ != onnx.Int32 && typ != onnx.Int64 && typ != onnx.Bool {
		return nil, false
	}
	raw, err := s.model.Data(t)
	if err != nil {
		return nil, false
	}
	numbers := make([]number, count)
	for i := range numbers {
		switch typ {
		case onnx.Int64:
			numbers[i] = whole(int64(binary.LittleEndian.Uint64(raw[8*i:])))
		case onnx.Int32:
			numbers[i] = whole(int64(int32(binary.LittleEndian.Uint32(raw[4*i:]))))
		default:
			numbers[i] = whole(int64(raw[i]))
		}
	}
	return numbers, true
}

// evaluate computes the elements of small integer tensors for a node with one output that is
// defined already.
func (s *scope) evaluate(n node) {
	if len(n.GetOutput()) != 1 {
		return
	}
	name := n.GetOutput()[0]
	if n.operator() == "Constant" {
		if t := onnx.Attribute(n.NodeProto, "value").GetT(); t != nil {
			s.tensors[name] = t
		}
	}
	info := s.infos[name]
	followed := info.Type == onnx.Int64 || info.Type == onnx.Int32 || info.Type == onnx.Bool
	if !followed || !info.Ranked || len(info.Shape) > 1 {
		return
	}
	numbers, ok := n.compute()
	if !ok || len(numbers) > maxNumbers {
		return
	}
	count := onnx.Fixed(int64(len(numbers)))
	if multiply(info.Shape...) != count && (len(info.Shape) == 0 || info.Shape[0].IsFixed()) {
		return // does not match the operator: the node is invalid
	}
	s.numbers[name] = numbers
	if len(info.Shape) == 1 {
		info.Shape = []onnx.Dim{count}
		s.infos[name] = info
	}
}

// compute returns the elements of a node's output, which has at most one dimension.
func (n node) compute() ([]number, bool) {
	switch n.operator() {
	case "Shape":
		return n.shapeOf()
	case "Size":
		x := n.in(0)
		return []number{size(multiply(x.Shape...))}, x.Ranked
	case "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten":
		return n.numbers(0)
	case "Cast":
		return n.cast()
	case "Constant":
		return n.constant()
	case "ConstantOfShape":
		return n.repeat()
	case "Concat":
		return n.chain()
	case "Gather":
		return n.pick()
	case "Slice":
		return n.cut()
	case "Range":
		return n.enumerate()
	case "ReduceProd":
		return n.product()
	case "Add", "Sub", "Mul", "Div", "Equal":
		return n.pairwise()
	case "Where":
		return n.choose()
	default:
		return nil, false
	}
}

// shapeOf implements Shape, for all dimensions or, since opset 15, for some of them.
func (n node) shapeOf() ([]number, bool) {
	x := n.in(0)
	if !x.Ranked {
		return nil, false
	}
	start, end := clampIndex(n.integer("start", 0), len(x.Shape)), clampIndex(n.integer("end", math.MaxInt64), len(x.Shape))
	var numbers []number
	for i := start; i < end; i++ {
		numbers = append(numbers, size(x.Shape[i]))
	}
	return numbers, true
}

// clampIndex resolves an index that may count from the end, and clamps it to the range.
func clampIndex(index int64, length int) int {
	if index < 0 {
		index += int64(length)
	}
	return int(min(max(index, 0), int64(length)))
}

// cast keeps integers. As BOOL they would become 0 and 1, which is not needed here.
func (n node) cast() ([]number, bool) {
	from, to := n.in(0).Type, onnx.DataType(n.integer("to", 0))
	if to != onnx.Int32 && to != onnx.Int64 || from == onnx.Bool {
		return nil, false
	}
	return n.numbers(0)
}

func (n node) constant() ([]number, bool) {
	if a := onnx.Attribute(n.NodeProto, "value_int"); a != nil {
		return []number{whole(a.GetI())}, true
	}
	if a := onnx.Attribute(n.NodeProto, "value_ints"); a != nil {
		return wholes(a.GetInts()), true
	}
	if t := onnx.Attribute(n.NodeProto, "value").GetT(); t != nil {
		return n.scope.wholeNumbers(t)
	}
	return nil, false
}

// repeat implements ConstantOfShape.
func (n node) repeat() ([]number, bool) {
	shape, ok := n.wholes(0)
	count, fits := onnx.Elements(shape)
	if !ok || !fits || count > maxNumbers {
		return nil, false
	}
	value, ok := n.scope.wholeNumbers(onnx.Attribute(n.NodeProto, "value").GetT())
	if !ok || len(value) != 1 {
		return nil, false
	}
	return slices.Repeat(value, int(count)), true
}

func (n node) chain() ([]number, bool) {
	var all []number
	for i := range n.GetInput() {
		numbers, ok := n.numbers(i)
		if !ok { // their number is enough to keep the others at their positions
			count, counted := n.count(i)
			if !counted {
				return nil, false
			}
			numbers = make([]number, count)
		}
		all = append(all, numbers...)
		if len(all) > maxNumbers {
			return nil, false
		}
	}
	return all, true
}

func (n node) pick() ([]number, bool) {
	values, ok := n.numbers(0)
	indices, known := n.wholes(1)
	if !ok || !known || len(n.in(0).Shape) != 1 {
		return nil, false
	}
	picked := make([]number, len(indices))
	for i, index := range indices {
		k, inside := at(index, len(values))
		if !inside {
			return nil, false
		}
		picked[i] = values[k]
	}
	return picked, true
}

// cut implements Slice along the only dimension, forwards.
func (n node) cut() ([]number, bool) {
	values, ok := n.numbers(0)
	cuts, known := n.cuts(1)
	if !ok || !known || len(cuts) != 1 || !cuts[0].known {
		return nil, false
	}
	c := cuts[0]
	if c.step != 1 {
		return nil, false
	}
	start, end := clampIndex(c.start, len(values)), clampIndex(c.end, len(values))
	return slices.Clone(values[start:max(start, end)]), true
}

// enumerate implements Range.
func (n node) enumerate() ([]number, bool) {
	var limits [3]int64
	for i := range limits {
		list, ok := n.wholes(i)
		if !ok || len(list) != 1 || !small(list[0]) {
			return nil, false
		}
		limits[i] = list[0]
	}
	start, end, step := limits[0], limits[1], limits[2]
	if step == 0 || (end-start)/step >= maxNumbers {
		return nil, false
	}
	var numbers []number
	for v := start; step > 0 && v < end || step < 0 && v > end; v += step {
		numbers = append(numbers, whole(v))
	}
	return numbers, true
}

// product implements ReduceProd over the only dimension.
func (n node) product() ([]number, bool) {
	values, ok := n.numbers(0)
	total := whole(1)
	for _, v := range values {
		total = times(total, v)
	}
	return []number{total}, ok
}
