// Package float16 converts a model to 16-bit floating-point numbers (Convert). It edits models with
// package rewrite. It decides which nodes stay in 32 bits from the graph alone, and does not measure
// how accurate the result is.
package float16

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/shapes"
)

// Options select the parts of a model that stay in 32 bits.
type Options struct {
	// KeepIO keeps the types of inputs and outputs, so that the same requests are valid.
	KeepIO bool
	// BlockOps names operators that stay in fp32; nil means DefaultBlockOps.
	BlockOps []string
	// Keep names nodes that stay in fp32.
	Keep []string
}

// target is the name of Convert's result in messages.
const target = "fp16"

// Convert converts a model to 16-bit floating-point numbers. Its FLOAT values become FLOAT16, in
// subgraphs too.
//
// Some nodes stay in fp32 between Casts: those without a 16-bit form, and those that overflow or
// lose precision in 16 bits. These are sums and the normalisations around them, and arithmetic on
// integers (positions, sizes). The error wraps ErrNothing if no node can be converted. Other errors
// name a weight that is NaN or infinite, or a node in Keep that does not exist.
//
// Constants beyond ±65504 (masks of -3.4e38) become ±65504. Only 0 becomes 0. Values that come from
// fp32 at run time and may be larger are clipped to ±65504 before the Cast. Otherwise they would
// become infinite in fp16, and a sum of them NaN.
func Convert(m *onnx.Model, o Options) (*onnx.Model, rewrite.Summary, error) {
	clean, err := rewrite.Clean(m)
	if err != nil {
		return nil, rewrite.Summary{}, err
	}
	if err := rewrite.CheckKeep(clean, target, o.Keep); err != nil {
		return nil, rewrite.Summary{}, err
	}
	types, err := shapes.All(clean)
	if err != nil {
		return nil, rewrite.Summary{}, err
	}
	if o.BlockOps == nil {
		o.BlockOps = DefaultBlockOps()
	}
	h := &halver{Editor: rewrite.NewEditor(clean), options: o, types: types}
	main := h.newGraph(nil, h.Proto.Graph)
	if err := h.convertMain(main); err != nil {
		return nil, h.summary, fmt.Errorf("cannot convert the model to %s: %w", target, err)
	}
	if h.halved == 0 {
		return nil, h.summary, rewrite.Nothing(target, h.nothingReason())
	}
	converted, err := h.Replace(h.Proto)
	return converted, h.summary, err
}

// halver converts a model to fp16.
type halver struct {
	*rewrite.Editor
	options Options
	types   shapes.Graphs
	low     string // the constants to which values are clipped; "" until they are needed
	high    string
	halved  int // number of nodes that now compute in 16 bits
	summary rewrite.Summary
}

func (h *halver) nothingReason() string {
	if len(h.summary.Kept) == 0 {
		return "none of its nodes computes in fp32"
	}
	first := h.summary.Kept[0]
	return fmt.Sprintf("all of its %d nodes that compute in fp32 must stay in fp32; the first is %q (%s): %s",
		len(h.summary.Kept), first.Node, first.Op, first.Reason)
}

// convertMain converts the main graph. Its inputs and outputs keep their names.
func (h *halver) convertMain(g *halfGraph) error {
	public := onnx.Float16
	if h.options.KeepIO {
		public = onnx.Float
	}
	for _, v := range g.proto.GetOutput() {
		g.public[v.GetName()] = public
	}
	for i, v := range g.proto.Input {
		if g.isFloat(v.GetName()) {
			g.forms[v.GetName()] = &form{cut: true}
			g.define(v.GetName(), public)
			g.proto.Input[i] = rewrite.Retyped(v, public)
		}
	}
	if err := g.convert(); err != nil {
		return err
	}
	for i, v := range g.proto.Output {
		if g.isFloat(v.GetName()) {
			if _, err := g.as(v.GetName(), public); err != nil {
				return err
			}
			g.proto.Output[i] = rewrite.Retyped(v, public)
		}
	}
	g.finish()
	return nil
}

// halfGraph is a graph during the conversion to fp16.
type halfGraph struct {
	*halver
	up        *halfGraph // nil for the main graph
	proto     *onnxpb.GraphProto
	path      string // names of the enclosing nodes, for the summary
	types     map[string]shapes.Info
	stays     map[*onnxpb.NodeProto]stay
	public    map[string]onnx.DataType       // required types of values under their own names
	constants map[string]*onnxpb.TensorProto // of all types
	forms     map[string]*form               // of the graph's FLOAT values
	written   []*onnxpb.NodeProto
}

// form holds the two forms of a FLOAT value.
type form struct {
	half, single string // names of the value in the two types; "" if it does not exist in that type
	cut          bool   // its fp32 value may exceed fp16's range
	tensor       *onnxpb.TensorProto
	made         []*onnxpb.TensorProto // for a constant: the tensors that replace it
}

// newGraph prepares a graph whose lists may be changed, but not their elements.
func (h *halver) newGraph(up *halfGraph, g *onnxpb.GraphProto) *halfGraph {
	original := g
	if up == nil {
		original = h.Graph()
	}
	half := &halfGraph{halver: h, up: up, proto: g, types: h.types[original], public: map[string]onnx.DataType{},
		constants: map[string]*onnxpb.TensorProto{}, forms: map[string]*form{}}
	for _, t := range g.GetInitializer() {
		half.constants[t.GetName()] = t
		if half.isFloat(t.GetName()) {
			half.forms[t.GetName()] = &form{tensor: t}
		}
	}
	for _, t := range g.GetSparseInitializer() {
		if name := t.GetValues().GetName(); half.isFloat(name) {
			half.forms[name] = &form{single: name}
		}
	}
	half.stays = half.decide()
	return half
}

// isFloat reports whether a value of this graph is FLOAT.
func (g *halfGraph) isFloat(name string) bool { return g.types[name].Type == onnx.Float }

// typeOf returns the original type of a value of this graph or an enclosing one, and 0 if it is
// unknown.
func (g *halfGraph) typeOf(name string) onnx.DataType {
	for ; g != nil; g = g.up {
		if info, ok := g.types[name]; ok {
			return info.Type
		}
	}
	return 0
}

// find returns a FLOAT value and the graph that defines it; nil for values of other types.
func (g *halfGraph) find(name string) (*form, *halfGraph) {
	for ; g != nil; g = g.up {
		if f := g.forms[name]; f != nil {
			return f, g
		}
		if _, ok := g.types[name]; ok {
			return nil, nil
		}
	}
	return nil, nil
}

// define returns the name for a value of type t: its own, unless that name must have another type.
func (g *halfGraph) define(name string, t onnx.DataType) string {
	f := g.forms[name]
	if f == nil {
		f = &form{}
		g.forms[name] = f
	}
	written := name
	if want, ok := g.public[name]; ok && want != t {
		written = g.Used.Fresh(name + suffix(t))
	}
	f.set(t, written)
	return written
}

func suffix(t onnx.DataType) string {
	if t == onnx.Float16 {
		return "_fp16"
	}
	return "_fp32"
}

func (f *form) get(t onnx.DataType) string {
	if t == onnx.Float16 {
		return f.half
	}
	return f.single
}

func (f *form) set(t onnx.DataType, name string) {
	if t == onnx.Float16 {
		f.half = name
	} else {
		f.single = name
	}
}

// as returns the name of a value in type t. If it does not exist in that type yet, as creates it
// next to the value's definition, so that all users share one Cast. A value that was not FLOAT
// keeps its name.
func (g *halfGraph) as(name string, t onnx.DataType) (string, error) {
	f, owner := g.find(name)
	if f == nil {
		return name, nil
	}
	if f.get(t) != "" {
		return f.get(t), nil
	}
	written := name
	if want, public := owner.public[name]; public && want != t || !public && (f.half != "" || f.single != "") {
		written = g.Used.Fresh(name + suffix(t))
	}
	switch {
	case f.tensor != nil && t == onnx.Float16:
		tensor, err := g.halve(f.tensor, written)
		if err != nil {
			return "", err
		}
		f.made = append(f.made, tensor)
	case f.tensor != nil:
		tensor := f.tensor
		if written != name {
			tensor = rewrite.Shallow(tensor)
			tensor.Name = proto.String(written)
		}
		f.made = append(f.made, tensor)
	case t == onnx.Float16:
		owner.narrow(f, written)
	default:
		owner.write("Cast", written+"_cast", []string{f.half}, written, rewrite.IntAttribute("to", int64(onnx.Float)))
	}
	f.set(t, written)
	return written, nil
}

// narrow writes the Cast to fp16. If the value may be too large, a Clip comes first.
func (g *halfGraph) narrow(f *form, written string) {
	source := f.single
	if f.cut {
		const withInputs = 11 // in earlier opsets, the limits of a Clip are attributes
		cut := g.Used.Fresh(written + "_cut")
		if g.Opset("") >= withInputs {
			g.limits()
			g.write("Clip", cut, []string{source, g.low, g.high}, cut)
		} else {
			g.write("Clip", cut, []string{source}, cut, floatAttribute("min", -maxHalf), floatAttribute("max", maxHalf))
		}
		source = cut
	}
	g.write("Cast", written+"_cast", []string{source}, written, rewrite.IntAttribute("to", int64(onnx.Float16)))
}

// limits makes the constants for Clip in the main graph, which subgraphs can use too.
func (h *halver) limits() {
	if h.low == "" {
		h.low = h.Constant("fp16_lowest", onnx.Float, rewrite.FloatBytes([]float32{-maxHalf}))
		h.high = h.Constant("fp16_highest", onnx.Float, rewrite.FloatBytes([]float32{maxHalf}))
	}
}

// write appends a node of ONNX's own set to the graph.
func (g *halfGraph) write(op, name string, inputs []string, output string, attributes ...*onnxpb.AttributeProto) {
	g.written = append(g.written, &onnxpb.NodeProto{
		Name: proto.String(g.Used.Fresh(name)), OpType: proto.String(op), Input: inputs, Output: []string{output}, Attribute: attributes,
	})
}

func floatAttribute(name string, v float32) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_FLOAT.Enum(), F: proto.Float32(v)}
}

// finish stores the results in the graph: nodes, constants in their old order, and the types of
// values.
func (g *halfGraph) finish() {
	g.proto.Node = g.written
	var constants []*onnxpb.TensorProto
	for _, t := range g.proto.Initializer {
		if f := g.forms[t.GetName()]; f != nil && f.tensor == t {
			constants = append(constants, f.made...)
		} else {
			constants = append(constants, t)
		}
	}
	g.proto.Initializer = constants
	var infos []*onnxpb.ValueInfoProto
	for _, v := range g.proto.ValueInfo {
		switch f := g.forms[v.GetName()]; {
		case f == nil || f.single == v.GetName():
			infos = append(infos, v)
		case f.half == v.GetName():
			infos = append(infos, rewrite.Retyped(v, onnx.Float16))
		}
	}
	g.proto.ValueInfo = slices.Clip(infos)
}
