// Package shapes infers for every value of a graph the type of its elements and, if it can, its
// shape. It stands between the model file and the rewrites, which must know a value's type before
// they replace it.
//
// It never guesses. A value without a certain type is absent, and a size that is not certain is
// open. It computes no tensors, except small integer ones from which graphs compute their shapes.
package shapes

import (
	"fmt"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// Info has the known type and shape of a tensor.
type Info struct {
	Type   onnx.DataType // element type; never 0
	Shape  []onnx.Dim    // a symbol has the same size everywhere
	Ranked bool          // false: even the number of dimensions is unknown
}

// Graphs maps each graph, including all subgraphs, to the values that it defines, by name.
type Graphs map[*onnxpb.GraphProto]map[string]Info

// Infer returns the known types and shapes of the main graph's values: inputs, initializers, and
// outputs of nodes. Values that are not tensors are absent. So are the outputs of operators that
// this package does not know, unless the file declares them. The error means that the graph is
// invalid: a node uses a value that no earlier node computes.
func Infer(m *onnx.Model) (map[string]Info, error) {
	graphs, err := All(m)
	if err != nil {
		return nil, err
	}
	return graphs[m.Graph()], nil
}

// All is Infer for the main graph and all its subgraphs.
func All(m *onnx.Model) (Graphs, error) {
	main := newScope(m)
	if err := main.infer(nil); err != nil {
		return nil, fmt.Errorf("cannot infer the shapes of the model: %w", err)
	}
	return main.results, nil
}

// scope is a graph whose values are being inferred.
type scope struct {
	model    *onnx.Model
	graph    *onnxpb.GraphProto
	results  Graphs
	infos    map[string]Info
	numbers  map[string][]number
	tensors  map[string]*onnxpb.TensorProto
	declared map[string]Info
	// owners: by value: the enclosing graphs that define it, innermost last; all scopes share it
	owners map[string][]*scope
	own    []string // values that this graph defines
}

func newScope(m *onnx.Model) *scope {
	s := &scope{model: m, graph: m.Graph(), results: Graphs{}, owners: map[string][]*scope{}}
	s.clear()
	return s
}

// inner returns the scope of a subgraph. The caller must close it.
func (s *scope) inner(g *onnxpb.GraphProto) *scope {
	inner := &scope{model: s.model, graph: g, results: s.results, owners: s.owners}
	inner.clear()
	return inner
}

func (s *scope) clear() {
	s.infos, s.numbers, s.tensors = map[string]Info{}, map[string][]number{}, map[string]*onnxpb.TensorProto{}
}

// close removes the graph's definitions, which are not visible after it.
func (s *scope) close() {
	for _, name := range s.own {
		s.owners[name] = s.owners[name][:len(s.owners[name])-1]
	}
}

// enter records that the graph defines a value.
func (s *scope) enter(name string) {
	if s.owner(name) != s {
		s.owners[name] = append(s.owners[name], s)
		s.own = append(s.own, name)
	}
}

// infer fills the scope. inputs has the known types of the graph's inputs from outside. The main
// graph has only declarations.
func (s *scope) infer(inputs []Info) error {
	s.results[s.graph] = s.infos
	s.declare()
	for i, v := range s.graph.GetInput() {
		var known Info
		if i < len(inputs) {
			known = inputs[i]
		}
		s.define(v.GetName(), known)
	}
	for _, t := range s.graph.GetInitializer() {
		s.defineConstant(t.GetName(), t)
	}
	for _, t := range s.graph.GetSparseInitializer() {
		name := t.GetValues().GetName()
		s.enter(name)
		s.set(name, known(onnx.DataType(t.GetValues().GetDataType()), fixedDims(t.GetDims())))
	}
	for _, proto := range s.graph.GetNode() {
		if err := s.inferNode(proto); err != nil {
			return err
		}
	}
	return nil
}

// declare reads the file's declarations of the graph's values.
func (s *scope) declare() {
	s.declared = map[string]Info{}
	for _, list := range [][]*onnxpb.ValueInfoProto{s.graph.GetValueInfo(), s.graph.GetOutput(), s.graph.GetInput()} {
		for _, v := range list {
			if t := v.GetType().GetTensorType(); t != nil {
				s.declared[v.GetName()] = Info{onnx.DataType(t.GetElemType()), declaredDims(t.GetShape()), t.GetShape() != nil}
			}
		}
	}
}

func declaredDims(shape *onnxpb.TensorShapeProto) []onnx.Dim {
	dims := make([]onnx.Dim, 0, len(shape.GetDim()))
	for _, d := range shape.GetDim() {
		switch v := d.GetValue().(type) {
		case *onnxpb.TensorShapeProto_Dimension_DimValue:
			dims = append(dims, onnx.Dim{Size: max(v.DimValue, -1)})
		case *onnxpb.TensorShapeProto_Dimension_DimParam:
			dims = append(dims, onnx.Symbol(v.DimParam))
		default:
			dims = append(dims, open())
		}
	}
	return dims
}

// define records a value: the inferred type and shape, completed from the file's declaration.
// Inferred information wins, since declarations may be outdated if a tool changed the graph.
func (s *scope) define(name string, inferred Info) {
	s.enter(name)
	s.set(name, complete(inferred, s.declared[name]))
}

func (s *scope) set(name string, info Info) {
	if info.Type != 0 {
		s.infos[name] = info
	}
}

// complete fills unknown parts of the inferred info from a declaration.
func complete(inferred, declared Info) Info {
	if inferred.Type == 0 {
		inferred.Type = declared.Type
	}
	switch {
	case !declared.Ranked || inferred.Type != declared.Type:
		return inferred
	case !inferred.Ranked:
		inferred.Shape, inferred.Ranked = declared.Shape, true
		return inferred
	case len(inferred.Shape) != len(declared.Shape):
		return inferred
	}
	shape := make([]onnx.Dim, len(inferred.Shape))
	for i, d := range inferred.Shape {
		if shape[i] = d; isOpen(d) {
			shape[i] = declared.Shape[i]
		}
	}
	inferred.Shape = shape
	return inferred
}

func (s *scope) defineConstant(name string, t *onnxpb.TensorProto) {
	s.enter(name)
	s.tensors[name] = t
	s.set(name, known(onnx.DataType(t.GetDataType()), fixedDims(t.GetDims())))
	if values, ok := s.wholeNumbers(t); ok {
		s.numbers[name] = values
	}
}

// inferNode records the outputs of a node.
func (s *scope) inferNode(proto *onnxpb.NodeProto) error {
	for _, name := range proto.GetInput() {
		if name != "" && s.owner(name) == nil {
			return fmt.Errorf("the node %q (%s) uses the value %q, which no node before it computes; export the model again, "+
				"or sort its nodes", proto.GetName(), proto.GetOpType(), name)
		}
	}
	n := node{proto, s}
	infos, err := n.outputs()
	if err != nil {
		return err
	}
	for i, name := range proto.GetOutput() {
		if name == "" {
			continue
		}
		var info Info
		if i < len(infos) {
			info = infos[i]
		}
		s.define(name, info)
	}
	s.evaluate(n)
	return nil
}

// owner returns the innermost graph that defines a value, and nil if none does.
func (s *scope) owner(name string) *scope {
	if owners := s.owners[name]; len(owners) > 0 {
		return owners[len(owners)-1]
	}
	return nil
}

func (s *scope) info(name string) Info {
	if o := s.owner(name); o != nil {
		return o.infos[name]
	}
	return Info{}
}

func (s *scope) tensor(name string) *onnxpb.TensorProto {
	if o := s.owner(name); o != nil {
		return o.tensors[name]
	}
	return nil
}

func (s *scope) values(name string) ([]number, bool) {
	if o := s.owner(name); o != nil {
		values, ok := o.numbers[name]
		return values, ok
	}
	return nil, false
}
