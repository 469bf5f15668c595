package extent

import "tuner/model/onnx"

// wired is a node in its scope, while it is read.
type wired struct {
	inputs   []value  // without those that are left out
	passed   []value  // with them
	outputs  []string // empty: left out
	value    value    // the tensor of an attribute; of a Constant at least as many elements as its list has
	to       uint64   // width of the type that Cast converts to
	isPassed bool     // it has a graph
	isCut    bool     // it has too many inputs or outputs
}

func (w *wiring) node(s *scope, end int64) error {
	if w.isFull() {
		w.found.unknown = sum(w.found.unknown, 1)
		return nil
	}
	n := wired{value: value{varies: true}} // until an attribute has one
	f, err := w.named(end, nodeDomain, nodeOperator, nodeOverload, func(x field) error {
		if x.kind != message {
			return nil
		}
		switch x.number {
		case nodeInput, nodeOutput:
			text, err := w.text(x)
			switch {
			case w.isFull():
				n.isCut = true
			case x.number == nodeOutput:
				n.outputs = append(n.outputs, text)
			case text == "":
				n.passed = append(n.passed, value{})
			default:
				v := s.find(text)
				n.inputs, n.passed = append(n.inputs, v), append(n.passed, v)
			}
			return err
		case nodeAttribute:
			return w.attribute(s, &n, x.end)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if called := w.functions[f]; called != nil { // whatever its name
		return w.call(s, n, called)
	}
	operator := f.name
	if f.domain != "" {
		operator = f.domain + "." + f.name
	}
	w.operator(s, n, operator)
	return nil
}

// operator adds a node that calls no function, and defines its outputs.
func (w *wiring) operator(s *scope, n wired, operator string) {
	out := value{elements: most}
	switch operator {
	case "Loop", "Scan", "SequenceMap": // ONNX Runtime never computes them while it loads
		out.varies = true
	case "Shape", "Size": // constant even of inputs, if their shape is
		n.inputs, out = nil, value{elements: shapeElements, width: 8}
	case "Constant":
		out = n.value
	default:
		for _, in := range n.inputs {
			out.varies = out.varies || in.varies
		}
		if !out.varies {
			out = n.output(operator)
		}
	}
	if !out.varies && operator != "Constant" {
		w.constant(n, out, effortOf(operator))
	}
	for _, name := range n.outputs {
		w.define(s, name, out)
	}
}

// constant adds a node whose outputs are constant.
func (w *wiring) constant(n wired, out value, e effort) {
	if n.isCut {
		w.found.unknown = sum(w.found.unknown, 1)
		return
	}
	c := computed{effort: e, outputs: uint64(len(n.outputs)), elements: out.elements, width: out.width, times: 1}
	for _, in := range n.inputs {
		if in.elements == most { // not of the file, so it is computed
			c.open++
			continue
		}
		c.read += float64(in.elements)
		c.times *= float64(max(in.elements, 1))
	}
	w.add(c)
}

// call adds the nodes of a function, with the values that this node passes.
func (w *wiring) call(s *scope, n wired, called *body) error {
	w.bodies -= called.end - called.begin + bodyBytes
	if n.isCut || n.isPassed || called.isTwice || w.bodies < 0 || w.calls == deepestCalls {
		nodes := uint64(most)
		if called.whole != nil {
			nodes = max(called.whole.nodes, 1)
		}
		w.found.unknown = sum(w.found.unknown, nodes)
		for _, name := range n.outputs {
			w.define(s, name, value{elements: most})
		}
		return nil
	}
	back, depth := w.at, w.depth
	w.calls, w.depth = w.calls+1, 0
	inner := &scope{values: map[string]value{}}
	var outputs []string
	if err := w.signature(inner, n.passed, &outputs, called); err != nil {
		return err
	}
	if err := w.seek(called.begin); err != nil {
		return err
	}
	err := w.fields(called.end, func(x field) error {
		if x.number == functionNode && x.kind == message {
			return w.node(inner, x.end)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, name := range n.outputs {
		out := value{elements: most}
		if i < len(outputs) {
			out = inner.find(outputs[i])
		}
		w.define(s, name, out)
	}
	w.calls, w.depth = w.calls-1, depth
	return w.seek(back)
}

// signature defines a function's inputs, and reads the names of its outputs.
func (w *wiring) signature(inner *scope, inputs []value, outputs *[]string, called *body) error {
	if err := w.seek(called.begin); err != nil {
		return err
	}
	i := 0
	return w.fields(called.end, func(x field) error {
		if x.number != functionInput && x.number != functionOutput {
			return nil
		}
		name, err := w.text(x)
		if x.number == functionOutput {
			*outputs = append(*outputs, name)
			return err
		}
		v := value{elements: most}
		if i < len(inputs) {
			v = inputs[i]
		}
		i++
		w.define(inner, name, v)
		return err
	})
}

func (w *wiring) attribute(s *scope, n *wired, end int64) error {
	name, integer, length := "", uint64(0), uint64(end-w.at)
	v := value{elements: length} // a list has fewer elements than bytes
	isOpen := false
	err := w.fields(end, func(x field) (err error) {
		switch {
		case x.number == attributeName:
			name, err = w.text(x)
		case x.number == attributeInteger && x.kind == varint:
			integer = x.value
		case x.kind != message:
		case x.number == attributeTensor:
			_, v, err = w.tensor(x.end)
			v.elements = max(v.elements, length)
		case x.number == attributeText, x.number == attributeTexts:
			v.width = textBytes + length
		case x.number == attributeSparse, x.number == attributeReference:
			isOpen = true
		case x.number == attributeGraph, x.number == attributeGraphs:
			n.isPassed = true
			err = w.graph(s, x.end)
		}
		return err
	})
	if isOpen {
		v = value{elements: most}
	}
	if name == "to" && !isOpen {
		n.to = widthOf(onnx.DataType(integer))
	}
	n.value = n.value.either(v)
	return err
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

// tensor returns a tensor's name and its size.
func (w *wiring) tensor(end int64) (name string, v value, err error) {
	v.elements = 1
	longest := int64(0)
	err = w.fields(end, func(x field) (err error) {
		switch {
		case x.number == tensorName:
			name, err = w.text(x)
		case x.number == tensorDataType && x.kind == varint:
			v.width = widthOf(onnx.DataType(x.value))
		case x.number == tensorStrings && x.kind == message:
			longest = max(longest, x.end-w.at)
		case x.number == tensorDims:
			err = w.dims(&v.elements, x)
		}
		return err
	})
	if longest > 0 {
		v.width = textBytes + uint64(longest)
	}
	return name, v, err
}

// sparseTensor returns a sparse tensor's name and its dense size. Its values have its name.
func (w *wiring) sparseTensor(end int64) (name string, v value, err error) {
	elements := uint64(1)
	err = w.fields(end, func(x field) (err error) {
		switch {
		case x.number == sparseDims:
			err = w.dims(&elements, x)
		case x.number == sparseValues && x.kind == message:
			name, v, err = w.tensor(x.end)
		}
		return err
	})
	v.elements = elements
	return name, v, err
}

// widthOf returns the bytes of an element of a type, or 0 for a type that we do not know. A string
// has room for a number's characters.
func widthOf(t onnx.DataType) uint64 {
	if t == onnx.String {
		return 2 * textBytes
	}
	return uint64(t.Size())
}
