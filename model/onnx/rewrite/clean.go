package rewrite

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// Clean returns a model that computes the same and is easier to rewrite. Every other rewrite starts
// from it.
//
// In the main graph:
//
//   - each node has a unique name (a new one consists of operator and first output),
//   - constants are initializers rather than Constant nodes,
//   - nodes and constants that no output needs are removed.
//
// Initializers are no longer inputs with defaults: rewrites compute with their values, and requests
// cannot replace them any more. For this the format version is raised to 4, the first that allows it.
// Subgraphs do not change. The tensors are shared with m. Cleaning a clean model changes nothing.
func Clean(m *onnx.Model) (*onnx.Model, error) {
	p := Draft(m.Proto())
	dropDefaults(p)
	liftConstants(p.GetGraph())
	nameNodes(p.GetGraph())
	sweep(p.GetGraph())
	return m.Replace(p)
}

// Draft copies a model so that the lists of its main graph can be changed. The elements are shared
// with p: they may be replaced, but not changed. A deep copy would double the memory of a large
// model.
func Draft(p *onnxpb.ModelProto) *onnxpb.ModelProto {
	d := Shallow(p)
	g := Shallow(p.GetGraph())
	g.Node = slices.Clone(g.Node)
	g.Initializer = slices.Clone(g.Initializer)
	g.SparseInitializer = slices.Clone(g.SparseInitializer)
	g.Input = slices.Clone(g.Input)
	g.Output = slices.Clone(g.Output)
	g.ValueInfo = slices.Clone(g.ValueInfo)
	d.Graph = g
	return d
}

// Shallow copies a message. Its fields share their values with the original.
func Shallow[M proto.Message](src M) M {
	dst := src.ProtoReflect().New()
	src.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		dst.Set(f, v)
		return true
	})
	dst.SetUnknown(src.ProtoReflect().GetUnknown())
	return dst.Interface().(M)
}

// dropDefaults removes the inputs that are also initializers.
func dropDefaults(p *onnxpb.ModelProto) {
	g := p.GetGraph()
	constant := map[string]bool{}
	for _, t := range g.GetInitializer() {
		constant[t.GetName()] = true
	}
	for _, t := range g.GetSparseInitializer() {
		constant[t.GetValues().GetName()] = true
	}
	g.Input = slices.DeleteFunc(g.Input, func(v *onnxpb.ValueInfoProto) bool { return constant[v.GetName()] })
	const separate = 4 // in earlier format versions, every initializer had to be an input
	if p.GetIrVersion() < separate {
		p.IrVersion = proto.Int64(separate)
	}
}

// liftConstants turns Constant nodes into initializers, unless the graph outputs them.
func liftConstants(g *onnxpb.GraphProto) {
	outputs := map[string]bool{}
	for _, v := range g.GetOutput() {
		outputs[v.GetName()] = true
	}
	g.Node = slices.DeleteFunc(g.Node, func(node *onnxpb.NodeProto) bool {
		t := ConstantTensor(node)
		if t == nil || outputs[t.GetName()] {
			return false
		}
		g.Initializer = append(g.Initializer, t)
		return true
	})
}

// ConstantTensor returns the value of a Constant node, with the name of its output. It returns nil
// for other nodes and for sparse values.
func ConstantTensor(node *onnxpb.NodeProto) *onnxpb.TensorProto {
	if !IsOp(node, "Constant") || len(node.GetOutput()) != 1 || len(node.GetAttribute()) != 1 {
		return nil
	}
	var t *onnxpb.TensorProto
	switch a := node.GetAttribute()[0]; a.GetName() {
	case "value":
		if a.GetT() == nil {
			return nil
		}
		t = Shallow(a.GetT())
	case "value_float":
		t = NewTensor(onnx.Float, FloatBytes([]float32{a.GetF()}))
	case "value_floats":
		t = NewTensor(onnx.Float, FloatBytes(a.GetFloats()), int64(len(a.GetFloats())))
	case "value_int":
		t = NewTensor(onnx.Int64, Int64Bytes([]int64{a.GetI()}))
	case "value_ints":
		t = NewTensor(onnx.Int64, Int64Bytes(a.GetInts()), int64(len(a.GetInts())))
	case "value_string":
		t = NewTensor(onnx.String, nil)
		t.StringData = [][]byte{a.GetS()}
	case "value_strings":
		t = NewTensor(onnx.String, nil, int64(len(a.GetStrings())))
		t.StringData = a.GetStrings()
	default:
		return nil
	}
	t.Name = proto.String(node.GetOutput()[0])
	return t
}

// NewTensor makes a constant from raw little-endian bytes; nil for strings.
func NewTensor(t onnx.DataType, raw []byte, dims ...int64) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{DataType: proto.Int32(int32(t)), Dims: dims, RawData: raw}
}

// FloatBytes returns the little-endian bytes of numbers.
func FloatBytes(values []float32) []byte {
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
}

// Int64Bytes returns the little-endian bytes of integers.
func Int64Bytes(values []int64) []byte {
	raw := make([]byte, 0, 8*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return raw
}

// nameNodes names nodes that have no name, and renames those with the name of an earlier node.
func nameNodes(g *onnxpb.GraphProto) {
	used := Names{}
	var nameless []int
	for i, node := range g.Node {
		if name := node.GetName(); name == "" || used[name] {
			nameless = append(nameless, i)
		} else {
			used[name] = true
		}
	}
	for _, i := range nameless {
		node := Shallow(g.Node[i])
		base := node.GetName()
		if base == "" {
			base = node.GetOpType() + "_" + FirstName(node.GetOutput())
		}
		node.Name = proto.String(used.Fresh(base))
		g.Node[i] = node
	}
}

// FirstName returns the first name that is not empty, or "".
func FirstName(list []string) string {
	for _, name := range list {
		if name != "" {
			return name
		}
	}
	return ""
}

// Names is a set of names in use.
type Names map[string]bool

// Fresh returns the base, or the base with the lowest number that makes it unique. It adds the
// result to the set.
func (n Names) Fresh(base string) string {
	name := base
	for i := 2; n[name]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	n[name] = true
	return name
}

// sweep removes the parts of a graph that no output needs. The order of the nodes does not matter.
func sweep(g *onnxpb.GraphProto) {
	producers := map[string]*onnxpb.NodeProto{}
	for _, node := range g.GetNode() {
		for _, name := range node.GetOutput() {
			producers[name] = node
		}
	}
	alive := map[string]bool{}
	running := map[*onnxpb.NodeProto]bool{}
	var queue []string
	need := func(name string) {
		if name != "" && !alive[name] {
			alive[name] = true
			queue = append(queue, name)
		}
	}
	for _, v := range g.GetOutput() {
		need(v.GetName())
	}
	for len(queue) > 0 {
		node := producers[queue[0]]
		queue = queue[1:]
		if node == nil || running[node] {
			continue
		}
		running[node] = true
		EachUsed(node, need)
		for _, name := range node.GetOutput() { // all outputs of a remaining node may be described
			alive[name] = true
		}
	}
	g.Node = slices.DeleteFunc(g.Node, func(n *onnxpb.NodeProto) bool { return !running[n] })
	g.Initializer = slices.DeleteFunc(g.Initializer, func(t *onnxpb.TensorProto) bool { return !alive[t.GetName()] })
	g.SparseInitializer = slices.DeleteFunc(g.SparseInitializer,
		func(t *onnxpb.SparseTensorProto) bool { return !alive[t.GetValues().GetName()] })
	g.ValueInfo = slices.DeleteFunc(g.ValueInfo, func(v *onnxpb.ValueInfoProto) bool { return !alive[v.GetName()] })
}

// EachUsed calls visit for every value that a node or its subgraphs use. This includes values that
// a subgraph defines itself. ONNX gives these unique names, so they cannot be mistaken for other
// values.
func EachUsed(node *onnxpb.NodeProto, visit func(string)) {
	for _, name := range node.GetInput() {
		visit(name)
	}
	for _, g := range onnx.Subgraphs(node) {
		for _, inner := range g.GetNode() {
			EachUsed(inner, visit)
		}
		for _, v := range g.GetOutput() {
			visit(v.GetName())
		}
	}
}
