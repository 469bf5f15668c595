package extent

import "math"

// More field numbers in onnx.proto.
const (
	graphInput, nodeInput, nodeOutput = 11, 1, 2
	tensorDims, tensorName, valueName = 1, 8, 1
)

// Constants are the nodes of a model that depend on no input. ONNX Runtime computes them while it
// loads the model. Sizes are upper bounds, because the values are not computed here.
type Constants struct {
	nodes     []computed
	functions uint64 // nodes of functions once they are unfolded, about which nothing is known
}

// computed is a node with its inputs' and its outputs' numbers of elements. most: unknown.
type computed struct {
	operator string
	inputs   []uint64
	outputs  uint64 // number of outputs
	elements uint64 // of each output
}

const (
	elementBytes  = 8  // of the largest usual type
	shapeElements = 64 // more dimensions than any kernel supports
)

// constants returns the constant nodes of a model that was measured.
func (m *model) constants(length int64, alone, whole size) (Constants, error) {
	if err := m.seek(0); err != nil {
		return Constants{}, err
	}
	w := wiring{model: m, varying: map[string]bool{}, sizes: map[string]uint64{}}
	err := m.fields(length, func(x field) error {
		if x.number == modelGraph && x.kind == message {
			return w.graph(x.end)
		}
		return nil
	})
	return Constants{w.constant(), whole.nodes - alone.nodes}, err
}

// Bytes returns an upper bound for the bytes of all computed constants, if each has at most bound
// bytes.
func (c Constants) Bytes(bound uint64) uint64 {
	total := product(c.functions, bound)
	for _, n := range c.nodes {
		total = sum(total, product(n.outputs, min(product(n.elements, elementBytes), bound)))
	}
	return total
}

// Work returns about how many elements are read, multiplied or written for all constants, if each
// has at most bound bytes.
func (c Constants) Work(bound uint64) float64 {
	largest := float64(bound) // elements have a byte at least
	total := float64(c.functions) * largest
	for _, n := range c.nodes {
		out, read, times := min(float64(n.elements), largest), 0.0, 1.0
		for _, elements := range n.inputs {
			in := float64(elements)
			if elements == most { // not of the file, so it is computed
				in = largest
			}
			read, times = read+in, times*max(in, 1)
		}
		switch effortOf(n.operator) {
		case linear:
			total += read + out
		case contraction: // of (m, k) and (k, n) to (m, n): the root of mk · kn · mn is mkn
			total += math.Sqrt(times * out)
		default:
			total += out * read
		}
	}
	return total
}

// wiring has the nodes of all graphs of a model, and the names of values.
type wiring struct {
	*model
	nodes   []wired
	varying map[string]bool   // inputs, and what depends on them
	sizes   map[string]uint64 // elements of constants; of those with the same name, the largest
}

type wired struct {
	operator        string
	inputs, outputs []string
	value           uint64 // elements of a Constant
	isControl       bool   // it has graphs
}

func (w *wiring) graph(end int64) error {
	if w.depth++; w.depth > deepestNesting {
		return errDeep
	}
	defer func() { w.depth-- }()
	return w.fields(end, func(x field) error {
		switch {
		case x.kind != message:
		case x.number == graphNode:
			return w.node(x.end)
		case x.number == graphInput:
			name, err := w.name(x.end, valueName)
			w.varying[name] = true
			return err
		case x.number == graphInitializer:
			name, elements, err := w.tensor(x.end)
			w.sizes[name] = max(w.sizes[name], elements)
			return err
		}
		return nil
	})
}

func (w *wiring) node(end int64) error {
	n := wired{}
	f, err := w.named(end, nodeDomain, nodeOperator, nodeOverload, func(x field) error {
		if x.kind != message {
			return nil
		}
		switch x.number {
		case nodeInput, nodeOutput:
			text, err := w.text(x)
			if x.number == nodeInput && text != "" {
				n.inputs = append(n.inputs, text)
			} else if text != "" {
				n.outputs = append(n.outputs, text)
			}
			return err
		case nodeAttribute:
			return w.attribute(&n, x.end)
		}
		return nil
	})
	switch n.operator = f.name; {
	case w.functions[f] != nil: // whatever its name
		n.operator = ""
	case f.domain != "":
		n.operator = f.domain + "." + f.name
	}
	w.nodes = append(w.nodes, n)
	return err
}

func (w *wiring) attribute(n *wired, end int64) error {
	n.value = max(n.value, uint64(end-w.at)) // a list has fewer elements than bytes
	return w.fields(end, func(x field) error {
		switch {
		case x.kind != message:
		case x.number == attributeTensor:
			_, elements, err := w.tensor(x.end)
			n.value = max(n.value, elements)
			return err
		case x.number == attributeSparse:
			n.value = most
		case x.number == attributeGraph, x.number == attributeGraphs:
			n.isControl = true
			return w.graph(x.end)
		}
		return nil
	})
}

// name reads a message for one text.
func (w *wiring) name(end int64, number int) (name string, err error) {
	err = w.fields(end, func(x field) (err error) {
		if x.number == number {
			name, err = w.text(x)
		}
		return err
	})
	return name, err
}

// tensor returns a tensor's name and its number of elements.
func (w *wiring) tensor(end int64) (name string, elements uint64, err error) {
	elements = 1
	err = w.fields(end, func(x field) (err error) {
		switch {
		case x.number == tensorName:
			name, err = w.text(x)
		case x.number == tensorDims && x.kind == varint:
			elements = product(elements, x.value)
		case x.number == tensorDims && x.kind == message: // packed
			err = w.packed(x.end, func(n uint64) { elements = product(elements, n) })
		}
		return err
	})
	return name, elements, err
}

// constant returns the nodes that depend on no input. Where the order of the nodes leaves it open,
// they count as constant.
func (w *wiring) constant() []computed {
	for name := range w.sizes { // old files list them as inputs
		delete(w.varying, name)
	}
	var all []computed
	for _, n := range w.nodes {
		c := computed{operator: n.operator, outputs: uint64(len(n.outputs))}
		isShape := n.operator == "Shape" || n.operator == "Size" // constant even of inputs, if their shape is
		varies := n.isControl && n.operator != "If"              // ONNX Runtime runs loops only
		for _, in := range n.inputs {
			varies = varies || w.varying[in] && !isShape
			elements, known := w.sizes[in]
			if !known {
				elements = most
			}
			c.inputs = append(c.inputs, elements)
		}
		if isShape {
			c.inputs = nil
		}
		c.elements = c.size(n.value)
		for _, out := range n.outputs {
			if varies {
				w.varying[out] = true
			} else {
				w.sizes[out] = max(w.sizes[out], c.elements)
			}
		}
		if !varies && n.operator != "Constant" {
			all = append(all, c)
		}
	}
	return all
}

// size returns the largest number of elements of an output. value is that of a Constant.
func (c computed) size(value uint64) uint64 {
	if len(c.inputs) == 0 && (c.operator == "Shape" || c.operator == "Size") {
		return shapeElements
	}
	if c.operator == "Constant" {
		return value
	}
	if len(c.inputs) == 0 {
		return most
	}
	switch growthOf(c.operator) {
	case asFirst:
		return c.inputs[0]
	case asSum:
		total := uint64(0)
		for _, n := range c.inputs {
			total = sum(total, n)
		}
		return total
	case asProduct: // broadcasting
		total := uint64(1)
		for _, n := range c.inputs {
			total = product(total, n)
		}
		return total
	default:
		return most
	}
}

// growth names the bound of an output's elements.
type growth int

const (
	asValues  growth = iota // the values of the inputs, or something else
	asFirst                 // the elements of the first input
	asSum                   // of all
	asProduct               // their product
)

func growthOf(operator string) growth {
	switch operator {
	case "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Slice", "Neg", "Abs", "Not", "Sqrt", "Exp", "Log",
		"Floor", "Ceil", "Round", "Reciprocal", "Sigmoid", "Tanh", "Erf", "Relu", "Sin", "Cos", "Sign", "Softmax", "Clip", "CumSum", "Trilu",
		"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "Split", "QuantizeLinear", "DequantizeLinear":
		return asFirst
	case "Concat":
		return asSum
	case "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Where",
		"Min", "Max", "Gather":
		return asProduct
	}
	return asValues
}

// effort names the bound of an operator's work.
type effort int

const (
	linear      effort = iota // its inputs and outputs are read and written
	contraction               // products of matrices
	quadratic                 // all inputs for each element of an output, at most
)

func effortOf(operator string) effort {
	switch operator {
	case "MatMul", "Gemm", "MatMulInteger", "QLinearMatMul", "Einsum":
		return contraction
	case "ConstantOfShape", "Expand", "Range", "Tile", "Pad", "OneHot", "EyeLike", "GatherElements", "GatherND", "ScatterElements", "ScatterND",
		"NonZero", "Shape", "Size", "If":
		return linear
	}
	if growthOf(operator) != asValues {
		return linear
	}
	return quadratic
}
