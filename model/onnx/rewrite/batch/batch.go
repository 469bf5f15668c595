// Package batch makes the batch dimension of a model symbolic (Symbolic), so that a server can batch
// requests. It edits models with package rewrite. It refuses a model in which it cannot follow the
// batch dimension from all inputs to all outputs.
package batch

import (
	"fmt"
	"slices"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/shapes"
)

// Symbolic makes the first dimension of all inputs and outputs symbolic, so that a server can
// batch requests. A model that was exported with a fixed batch size then accepts any.
//
// It follows the batch dimension through the graph. Constants that contain its size (the target of
// a Reshape) are adapted. The error wraps ErrNothing if the first dimensions are not fixed, or if
// the graph does not allow the change. The graph does not allow it if an operator mixes the rows of
// a batch, or is not known to keep them apart. The text names the operator.
func Symbolic(m *onnx.Model) (*onnx.Model, error) {
	clean, err := rewrite.Clean(m)
	if err != nil {
		return nil, err
	}
	size, symbol, err := batchOf(clean)
	if err != nil {
		return nil, err
	}
	infos, err := shapes.Infer(clean)
	if err != nil {
		return nil, err
	}
	b := &batcher{Editor: rewrite.NewEditor(clean), infos: infos, size: size, lanes: map[string]lane{}, vectors: map[string]int{}}
	for _, v := range clean.Inputs() {
		b.lanes[v.Name] = lane{axis: 0, inner: 1}
	}
	for _, node := range clean.Nodes() {
		if err := b.pass(node); err != nil {
			return nil, err
		}
	}
	for _, v := range clean.Outputs() {
		if got, ok := b.lanes[v.Name]; !ok || got != (lane{0, 1}) {
			return nil, noBatch("its output %s does not have the batch, and it alone, as its first dimension", v)
		}
	}
	b.declare(symbol)
	return b.Finish()
}

// batchError is the reason why the batch dimension cannot change. It counts as ErrNothing, whose
// text would be misleading here.
type batchError string

func (e batchError) Error() string {
	return "cannot make the batch dimension of the model symbolic: " + string(e)
}

func (e batchError) Unwrap() error { return rewrite.ErrNothing }

func noBatch(format string, a ...any) error { return batchError(fmt.Sprintf(format, a...)) }

// batchOf returns the fixed first dimension that the inputs share, and a name for it. The name
// comes from an input whose first dimension is symbolic already, or is new.
func batchOf(m *onnx.Model) (size int64, symbol string, err error) {
	taken := rewrite.Names{}
	for _, v := range slices.Concat(m.Inputs(), m.Outputs()) {
		if len(v.Shape) == 0 {
			return 0, "", noBatch("%s has no first dimension", v)
		}
		for _, d := range v.Shape {
			taken[d.Symbol] = true
		}
	}
	var first onnx.Value
	for _, v := range m.Inputs() {
		switch d := v.Shape[0]; {
		case !d.IsFixed() && symbol == "":
			symbol = d.Symbol
		case d.IsFixed() && first.Name == "":
			first, size = v, d.Size
		case d.IsFixed() && d.Size != size:
			return 0, "", noBatch("the first dimensions of its inputs differ: %s, %s", first, v)
		}
	}
	switch {
	case first.Name == "":
		return 0, "", noBatch("the first dimensions of its inputs are not fixed")
	case size == 0:
		return 0, "", noBatch("%s has no rows", first)
	case symbol == "":
		symbol = taken.Fresh("batch")
	}
	return size, symbol, nil
}

// lane is the position of the batch in a value: an axis. The size of that axis is the batch size
// times inner, and the elements of one row are adjacent.
type lane struct {
	axis  int
	inner int64
}

// batcher follows the batch dimension through a graph.
type batcher struct {
	*rewrite.Editor
	infos map[string]shapes.Info
	size  int64           // of the batch, in the file
	lanes map[string]lane // of the values that depend on the batch
	// vectors: for values that hold the shape of such a value: the index of the batch size
	vectors map[string]int
}

// declare names the dimension. It removes the file's shapes of intermediate values, since they have
// the old batch size.
func (b *batcher) declare(symbol string) {
	g := b.Proto.Graph
	for _, list := range [][]*onnxpb.ValueInfoProto{g.Input, g.Output} {
		for i, v := range list {
			list[i] = withFirstSymbol(v, symbol)
		}
	}
	g.ValueInfo = slices.DeleteFunc(g.ValueInfo, func(v *onnxpb.ValueInfoProto) bool {
		_, batched := b.lanes[v.GetName()]
		return batched
	})
}

// withFirstSymbol copies the description of a value, with a symbol as its first dimension.
func withFirstSymbol(v *onnxpb.ValueInfoProto, symbol string) *onnxpb.ValueInfoProto {
	v = rewrite.Retyped(v, onnx.DataType(v.GetType().GetTensorType().GetElemType()))
	tensor := v.GetType().GetTensorType()
	tensor.Shape = rewrite.Shallow(tensor.GetShape())
	tensor.Shape.Dim = slices.Clone(tensor.Shape.GetDim())
	tensor.Shape.Dim[0] = &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: symbol}}
	return v
}

// pass writes a node, and finds the batch in its outputs.
func (b *batcher) pass(node *onnxpb.NodeProto) error {
	if !b.depends(node) {
		b.Keep(node)
		return nil
	}
	if len(onnx.Subgraphs(node)) > 0 {
		return b.refuse(node, "has a subgraph that depends on the batch")
	}
	for _, name := range node.GetInput() {
		if k, ok := b.vectors[name]; ok {
			b.Keep(node)
			return b.count(node, k)
		}
		if l, ok := b.lanes[name]; ok && l.axis >= len(b.infos[name].Shape) {
			return b.refuse(node, "takes %q, whose shape is not known", name)
		}
	}
	written := node
	var out lane
	var err error
	switch op := rewrite.Operator(node); op {
	case "Reshape":
		written, out, err = b.reshape(node)
	case "Expand":
		written, out, err = b.expand(node)
	case "Shape":
		b.Keep(node)
		return b.measure(node)
	case "LSTM", "GRU", "RNN":
		b.Keep(node)
		return b.recur(node)
	default:
		out, err = b.flow(node, op)
	}
	if err != nil {
		return err
	}
	b.Keep(written)
	for _, name := range node.GetOutput() {
		if name != "" {
			b.lanes[name] = out
		}
	}
	return nil
}

// depends reports whether a node, or a subgraph of it, uses the batch or its size.
func (b *batcher) depends(node *onnxpb.NodeProto) bool {
	found := false
	rewrite.EachUsed(node, func(name string) {
		_, batched := b.lanes[name]
		_, vector := b.vectors[name]
		found = found || batched || vector
	})
	return found
}

func (b *batcher) refuse(node *onnxpb.NodeProto, format string, a ...any) error {
	return noBatch("the node %q (%s) %s", node.GetName(), node.GetOpType(), fmt.Sprintf(format, a...))
}

// rank returns the number of dimensions of the i-th input, and -1 if it is unknown.
func (b *batcher) rank(node *onnxpb.NodeProto, i int) int {
	if i >= len(node.GetInput()) {
		return -1
	}
	info, ok := b.infos[node.GetInput()[i]]
	if !ok || !info.Ranked {
		return -1
	}
	return len(info.Shape)
}

// batched returns the position of the batch in the i-th input.
func (b *batcher) batched(node *onnxpb.NodeProto, i int) (lane, bool) {
	if i >= len(node.GetInput()) {
		return lane{}, false
	}
	l, ok := b.lanes[node.GetInput()[i]]
	return l, ok
}

// onlyFirst checks that only the first input depends on the batch. It returns the batch's position
// there.
func (b *batcher) onlyFirst(node *onnxpb.NodeProto) (lane, error) {
	for i := 1; i < len(node.GetInput()); i++ {
		if _, ok := b.batched(node, i); ok {
			return lane{}, b.refuse(node, "takes the batch as input %d (%q)", i, node.GetInput()[i])
		}
	}
	l, _ := b.batched(node, 0)
	return l, nil
}

// fixed returns the integers of an attribute, or of a constant input. ok is false if it is neither.
func (b *batcher) fixed(node *onnxpb.NodeProto, i int, attribute string) (list []int64, ok bool) {
	if a := onnx.Attribute(node, attribute); a != nil {
		return a.GetInts(), true
	}
	if i >= len(node.GetInput()) {
		return nil, false
	}
	t := b.Initializer(node.GetInput()[i])
	if t == nil {
		return nil, false
	}
	return b.wholes(t)
}

// setInput copies a node and replaces an input.
func setInput(node *onnxpb.NodeProto, i int, value string) *onnxpb.NodeProto {
	node = rewrite.Shallow(node)
	node.Input = slices.Clone(node.GetInput())
	node.Input[i] = value
	return node
}

// setSizes copies a node and replaces its second input by a constant with the sizes of a shape.
func (b *batcher) setSizes(node *onnxpb.NodeProto, sizes []int64) *onnxpb.NodeProto {
	name := b.Constant(node.GetName()+"_shape", onnx.Int64, rewrite.Int64Bytes(sizes), int64(len(sizes)))
	node = setInput(node, 1, name)
	node.Attribute = slices.DeleteFunc(slices.Clone(node.GetAttribute()), func(a *onnxpb.AttributeProto) bool {
		return a.GetName() == "allowzero" // the sizes have no zeros
	})
	return node
}

// integer returns an attribute, or the default if it is absent.
func integer(node *onnxpb.NodeProto, name string, absent int64) int64 {
	if a := onnx.Attribute(node, name); a != nil {
		return a.GetI()
	}
	return absent
}
