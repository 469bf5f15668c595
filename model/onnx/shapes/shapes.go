// Package shapes infers of every value of a graph the type of its elements and, as far as it is known, its shape. It stands
// between the model file and the rewrites, which must know what a value is before they can replace it. It refuses to guess:
// a value of which nothing is certain is absent, and a size that is not certain is open. It computes no tensors, but for small
// ones of whole numbers, from which graphs compute their own shapes.
package shapes

import (
	"fmt"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// Info is what is known of a tensor.
type Info struct {
	Type   onnx.DataType // of the elements; never 0
	Shape  []onnx.Dim    // a symbol stands for the same size wherever it occurs
	Ranked bool          // false: not even the number of dimensions is known
}

// Graphs maps each graph, the main one and all subgraphs, to the values that it defines itself, by name.
type Graphs map[*onnxpb.GraphProto]map[string]Info

// Infer returns what is known of the values of the main graph: inputs, initializers, and outputs of nodes. Values that are no
// tensors are absent, and so is what an operator makes that this package doesn't know, unless the file declares it. The error
// says that the graph is unsound: a node uses a value that no node before it computes.
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
	owners   map[string][]*scope // by value: the graphs around the present place that define it, the innermost last; shared by all scopes
	own      []string            // the values that this graph defines
}

func newScope(m *onnx.Model) *scope {
	s := &scope{model: m, graph: m.Graph(), results: Graphs{}, owners: map[string][]*scope{}}
	s.clear()
	return s
}

// inner is the scope of a subgraph. Whoever opens it closes it.
func (s *scope) inner(g *onnxpb.GraphProto) *scope {
	inner := &scope{model: s.model, graph: g, results: s.results, owners: s.owners}
	inner.clear()
	return inner
}

func (s *scope) clear() {
	s.infos, s.numbers, s.tensors = map[string]Info{}, map[string][]number{}, map[string]*onnxpb.TensorProto{}
}

// close ends what the graph defines: behind it nobody sees it.
func (s *scope) close() {
	for _, name := range s.own {
		s.owners[name] = s.owners[name][:len(s.owners[name])-1]
	}
}

// enter notes that the graph defines a value.
func (s *scope) enter(name string) {
	if s.owner(name) != s {
		s.owners[name] = append(s.owners[name], s)
		s.own = append(s.own, name)
	}
}

// infer fills the scope. inputs is what is known of the graph's inputs from outside; the main graph has only declarations.
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

// declare reads what the file says of the graph's values.
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

// define records a value: what was inferred, completed by what the file declares. What was inferred wins, since declarations
// are often left over from before another tool changed the graph.
func (s *scope) define(name string, inferred Info) {
	s.enter(name)
	s.set(name, complete(inferred, s.declared[name]))
}

func (s *scope) set(name string, info Info) {
	if info.Type != 0 {
		s.infos[name] = info
	}
}

// complete fills the gaps of what was inferred from a declaration.
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

// owner returns the innermost graph that defines a value, nil when none does.
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
