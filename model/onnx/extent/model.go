package extent

import (
	"fmt"

	"tuner/model/onnx"
)

// Field numbers in onnx.proto.
const (
	modelGraph, modelFunctions                            = 7, 25
	functionName, functionNode, functionDefault           = 1, 7, 11
	functionDomain, functionOverload                      = 10, 13
	graphNode, graphInitializer, graphSparse              = 1, 5, 15
	nodeOperator, nodeAttribute, nodeDomain, nodeOverload = 4, 5, 7, 8
	attributeTensor, attributeGraph                       = 5, 6
	attributeTensors, attributeGraphs                     = 10, 11
	attributeSparse, attributeSparses                     = 22, 23
	sparseValues, sparseDims, tensorDataType              = 1, 3, 2
)

// deepestNesting is the limit of protobuf in C++, whose messages may nest 100 levels.
const deepestNesting = 100

var errDeep = fmt.Errorf("its graphs are nested: %w", errDamaged)

// model is a file that is being measured. The file has the functions after the graph that calls
// them, so it is read twice.
type model struct {
	*scanner
	functions map[function]*body
	depth     int
}

// measure returns the size of the model's graph, alone and with unfolded functions.
func (m *model) measure(length int64) (alone, whole size, err error) {
	err = m.fields(length, func(x field) error {
		if x.number != modelFunctions || x.kind != message {
			return nil
		}
		begin := m.at
		f, err := m.head(x.end)
		m.functions[f] = &body{calls: map[*body]uint64{}, begin: begin, end: x.end, isTwice: m.functions[f] != nil}
		return err
	})
	if err == nil {
		err = m.seek(0)
	}
	if err != nil {
		return alone, whole, err
	}
	graph := &body{calls: map[*body]uint64{}}
	err = m.fields(length, func(x field) error {
		switch {
		case x.kind != message:
			return nil
		case x.number == modelGraph:
			return m.graph(graph, x.end)
		case x.number == modelFunctions:
			return m.function(x.end)
		}
		return nil
	})
	if err != nil {
		return alone, whole, err
	}
	whole, err = graph.unfold()
	return graph.own, whole, err
}

// head reads the identifying fields of a function.
func (m *model) head(end int64) (function, error) {
	return m.named(end, functionDomain, functionName, functionOverload, nil)
}

// named reads the three texts that identify an operator. It passes other fields to rest.
func (m *model) named(end int64, domain, name, overload int, rest func(field) error) (function, error) {
	var f function
	err := m.fields(end, func(x field) (err error) {
		switch x.number {
		case domain:
			f.domain, err = m.text(x)
		case name:
			f.name, err = m.text(x)
		case overload:
			f.overload, err = m.text(x)
		default:
			if rest != nil {
				err = rest(x)
			}
		}
		return err
	})
	if f.domain == "ai.onnx" {
		f.domain = "" // two names for the same domain
	}
	return f, err
}

// function measures the body of a function.
func (m *model) function(end int64) error {
	begin := m.at
	f, err := m.head(end)
	if err != nil {
		return err
	}
	if err := m.seek(begin); err != nil {
		return err
	}
	b := m.functions[f]
	return m.fields(end, func(x field) error {
		switch {
		case x.kind != message:
			return nil
		case x.number == functionNode:
			return m.node(b, x.end)
		case x.number == functionDefault:
			return m.attribute(b, x.end)
		}
		return nil
	})
}

// graph adds a graph's size to a body.
func (m *model) graph(b *body, end int64) error {
	if m.depth++; m.depth > deepestNesting {
		return errDeep
	}
	defer func() { m.depth-- }()
	return m.fields(end, func(x field) error {
		switch {
		case x.kind != message:
			return nil
		case x.number == graphNode:
			return m.node(b, x.end)
		case x.number == graphInitializer:
			b.own.bytes += uint64(x.end - m.at)
		case x.number == graphSparse:
			return m.sparse(b, x.end)
		}
		return nil
	})
}

// node adds a node to a body, with its callee. A function may repeat a graph that it receives as
// often as it has nodes.
func (m *model) node(b *body, end int64) error {
	before := b.own.nodes
	f, err := m.named(end, nodeDomain, nodeOperator, nodeOverload, func(x field) error {
		if x.number == nodeAttribute && x.kind == message {
			return m.attribute(b, x.end)
		}
		return nil
	})
	if called := m.functions[f]; called != nil {
		b.calls[called] += 1 + b.own.nodes - before
	}
	b.own.nodes++
	return err
}

// attribute adds an attribute's tensors and graphs to a body.
func (m *model) attribute(b *body, end int64) error {
	return m.fields(end, func(x field) error {
		if x.kind != message {
			return nil
		}
		switch x.number {
		case attributeTensor, attributeTensors:
			b.own.bytes += uint64(x.end - m.at)
		case attributeGraph, attributeGraphs:
			return m.graph(b, x.end)
		case attributeSparse, attributeSparses:
			return m.sparse(b, x.end)
		}
		return nil
	})
}

// sparse adds a sparse tensor to a body, with the size of ONNX Runtime's dense tensor.
func (m *model) sparse(b *body, end int64) error {
	elements, width := uint64(1), uint64(8)
	err := m.fields(end, func(x field) error {
		switch {
		case x.number == sparseDims:
			return m.dims(&elements, x)
		case x.number == sparseValues && x.kind == message:
			return m.fields(x.end, func(y field) error {
				if size := onnx.DataType(y.value).Size(); y.number == tensorDataType && size > 0 {
					width = uint64(size)
				}
				return nil
			})
		}
		return nil
	})
	b.own.bytes = sum(b.own.bytes, product(elements, width))
	return err
}

// dims multiplies a count of elements by dimensions.
func (m *model) dims(elements *uint64, x field) error {
	switch x.kind {
	case varint:
		*elements = product(*elements, x.value)
	case message: // packed
		return m.packed(x.end, func(n uint64) { *elements = product(*elements, n) })
	}
	return nil
}
