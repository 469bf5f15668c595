package onnx

import "tuner/model/onnx/onnxpb"

// Use is one use of a value of the main graph by a node.
type Use struct {
	Node *onnxpb.NodeProto
	// Index is the position among the node's inputs. It is -1 if a subgraph of the node (such as a
	// Loop's body) captures the value.
	Index int
}

// Inputs returns the model's inputs in order, without initializers. (Files before IR version 4 list
// initializers among the inputs too.) The slice is shared and must not be changed.
func (m *Model) Inputs() []Value { return m.inputs }

// Replaceable returns the initializers that a run may replace: those that are also declared as inputs,
// since IR version 4.
func (m *Model) Replaceable() []Value {
	if m.proto.GetIrVersion() < 4 {
		return nil
	}
	var values []Value
	for _, v := range m.Graph().GetInput() {
		if m.initializers[v.GetName()] != nil {
			values = append(values, newValue(v))
		}
	}
	return values
}

// Outputs returns the model's outputs in order. The slice is shared and must not be changed.
func (m *Model) Outputs() []Value { return m.outputs }

// Nodes returns the nodes of the main graph in topological order. The slice is shared and must not
// be changed.
func (m *Model) Nodes() []*onnxpb.NodeProto { return m.Graph().GetNode() }

// Initializers returns the constants of the main graph in file order. The slice is shared and must
// not be changed.
func (m *Model) Initializers() []*onnxpb.TensorProto { return m.Graph().GetInitializer() }

// Initializer returns the constant with that name in the main graph, and nil without one.
func (m *Model) Initializer(name string) *onnxpb.TensorProto { return m.initializers[name] }

// Producer returns the node that computes a value of the main graph. It returns nil for inputs,
// initializers and unknown names.
func (m *Model) Producer(value string) *onnxpb.NodeProto { return m.producers[value] }

// Consumers returns every use of a value of the main graph, in node order.
func (m *Model) Consumers(value string) []Use { return m.consumers[value] }

// Attribute returns a node's attribute, and nil if the node does not have it. Its getters accept
// nil and return the zero value.
func Attribute(node *onnxpb.NodeProto, name string) *onnxpb.AttributeProto {
	for _, a := range node.GetAttribute() {
		if a.GetName() == name {
			return a
		}
	}
	return nil
}

// Subgraphs returns the graphs in a node's attributes: the body of a Loop, the branches of an If.
func Subgraphs(node *onnxpb.NodeProto) []*onnxpb.GraphProto {
	var graphs []*onnxpb.GraphProto
	for _, a := range node.GetAttribute() {
		if a.GetG() != nil {
			graphs = append(graphs, a.GetG())
		}
		graphs = append(graphs, a.GetGraphs()...)
	}
	return graphs
}

// index builds the maps behind the graph's methods.
func (m *Model) index() {
	g := m.Graph()
	m.initializers = make(map[string]*onnxpb.TensorProto, len(g.GetInitializer()))
	for _, t := range g.GetInitializer() {
		m.initializers[t.GetName()] = t
	}
	sparse := map[string]bool{}
	for _, t := range g.GetSparseInitializer() {
		sparse[t.GetValues().GetName()] = true
	}
	for _, v := range g.GetInput() {
		if m.initializers[v.GetName()] == nil && !sparse[v.GetName()] {
			m.inputs = append(m.inputs, newValue(v))
		}
	}
	for _, v := range g.GetOutput() {
		m.outputs = append(m.outputs, newValue(v))
	}
	m.indexNodes()
}

func (m *Model) indexNodes() {
	m.producers = map[string]*onnxpb.NodeProto{}
	m.consumers = map[string][]Use{}
	for _, node := range m.Nodes() {
		for i, name := range node.GetInput() {
			if name != "" {
				m.consumers[name] = append(m.consumers[name], Use{node, i})
			}
		}
		for _, name := range captured(node) {
			m.consumers[name] = append(m.consumers[name], Use{node, -1})
		}
		for _, name := range node.GetOutput() {
			if name != "" {
				m.producers[name] = node
			}
		}
	}
}

// captured returns the outer values that a node's subgraphs use, each once, in the order of their
// first use.
func captured(node *onnxpb.NodeProto) []string {
	graphs := Subgraphs(node)
	if len(graphs) == 0 {
		return nil
	}
	c := capture{defined: map[string]int{"": 1}, seen: map[string]bool{}}
	for _, g := range graphs {
		c.graph(g)
	}
	return c.names
}

// capture walks nested graphs once. Untrusted graphs may be deeply nested, and each level may use
// all names of the outer levels.
type capture struct {
	defined map[string]int // number of enclosing graphs that define a name
	seen    map[string]bool
	names   []string
}

// graph walks a graph. A value is defined from its node until the end of the graph.
func (c *capture) graph(g *onnxpb.GraphProto) {
	var own []string
	define := func(name string) {
		c.defined[name]++
		own = append(own, name)
	}
	for _, v := range g.GetInput() {
		define(v.GetName())
	}
	for _, t := range g.GetInitializer() {
		define(t.GetName())
	}
	for _, node := range g.GetNode() {
		for _, name := range node.GetInput() {
			c.use(name)
		}
		for _, inner := range Subgraphs(node) {
			c.graph(inner)
		}
		for _, name := range node.GetOutput() {
			define(name)
		}
	}
	for _, v := range g.GetOutput() {
		c.use(v.GetName())
	}
	for _, name := range own {
		c.defined[name]--
	}
}

func (c *capture) use(name string) {
	if c.defined[name] == 0 && !c.seen[name] {
		c.seen[name] = true
		c.names = append(c.names, name)
	}
}
