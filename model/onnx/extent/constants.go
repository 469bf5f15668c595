package extent

import "math"

// More field numbers in onnx.proto.
const (
	graphInput, nodeInput, nodeOutput                = 11, 1, 2
	functionInput, functionOutput                    = 4, 5
	tensorDims, tensorStrings, tensorName, valueName = 1, 6, 8, 1
	attributeName, attributeInteger, attributeText   = 1, 3, 4
	attributeTexts, attributeReference               = 9, 21
)

// Constants are the nodes of a model that depend on no input. ONNX Runtime computes them while it
// loads the model. Sizes are upper bounds, because the values are not computed here.
type Constants struct {
	nodes   []computed
	times   []uint64 // how often there is each of them
	unknown uint64   // further nodes, about which nothing is known
}

// computed is a constant node. It has no names, so that equal nodes are counted once.
type computed struct {
	effort   effort
	outputs  uint64  // number of outputs
	elements uint64  // of each output; most: unknown
	width    uint64  // bytes of an element; 0: unknown
	read     float64 // elements of the inputs whose size is known, in all
	times    float64 // their product
	open     uint64  // number of inputs whose size is unknown
}

const (
	elementBytes  = 8  // of the largest usual type, for an unknown one
	textBytes     = 32 // of a string without its characters
	shapeElements = 64 // more dimensions than any kernel supports
	// mostEntries limits the names, inputs and nodes that are collected, about 100 MB of them. What
	// is beyond counts as unknown. The largest language models have about 100,000 nodes.
	mostEntries = 1 << 20
	// mostBodies limits the bytes of functions that are read, which happens again for each call. Calls
	// beyond it count as unknown. With twice as many, a file of any size takes twice the time, about
	// a tenth of a second.
	mostBodies = 4 << 20
	bodyBytes  = 64 // that a call of an empty function counts
	// deepestCalls limits the calls inside calls that are followed, for the stack. Deeper ones count
	// as unknown. Functions of exporters, one for each module of a network, are about ten deep.
	deepestCalls = 100
)

// constants returns the constant nodes of a model that was measured.
func (m *model) constants(length int64) (Constants, error) {
	if err := m.seek(0); err != nil {
		return Constants{}, err
	}
	w := wiring{model: m, index: map[computed]int{}, entries: mostEntries, bodies: mostBodies}
	err := m.fields(length, func(x field) error {
		if x.number == modelGraph && x.kind == message {
			return w.graph(nil, x.end)
		}
		return nil
	})
	return w.found, err
}

// Bytes returns an upper bound for the bytes of all computed constants, if ONNX Runtime computes none
// that has more than bound bytes. It does not count the characters of strings, so they come on top.
func (c Constants) Bytes(bound uint64) uint64 {
	total := product(c.unknown, bound)
	for i, n := range c.nodes {
		width, largest := n.width, bound
		if width == 0 {
			width = elementBytes
		}
		if width > textBytes {
			largest = product(bound/textBytes, width)
		}
		total = sum(total, product(c.times[i], product(n.outputs, min(product(n.elements, width), largest))))
	}
	return total
}

// Work returns about how many elements are read, multiplied or written for all constants, if each
// has at most bound bytes.
func (c Constants) Work(bound uint64) float64 {
	largest := float64(bound) // elements have a byte at least
	total := float64(c.unknown) * largest * largest
	for i, n := range c.nodes {
		total += float64(c.times[i]) * n.work(largest)
	}
	return total
}

// work is Work for one node, if a constant of unknown size has this many elements.
func (n computed) work(largest float64) float64 {
	out, read := min(float64(n.elements), largest), n.read+float64(n.open)*largest
	switch n.effort {
	case linear:
		return read + out
	case repeated:
		return passes * (read + out)
	case contraction: // of (m, k) and (k, n) to (m, n): the root of mk · kn · mn is mkn
		times := n.times * math.Pow(max(largest, 1), float64(n.open))
		return math.Sqrt(min(times, math.MaxFloat64)) * math.Sqrt(out)
	case quadratic:
		return out * read
	default:
		return math.Inf(1)
	}
}

// value is a named value, as far as the file shows it.
type value struct {
	varies          bool   // it depends on an input
	elements, width uint64 // as in computed
}

// either returns a value that may be one or the other. It varies only if both do.
func (v value) either(other value) value {
	switch {
	case v.varies:
		return other
	case other.varies:
		return v
	case v.width == 0 || other.width == 0:
		return value{elements: max(v.elements, other.elements)}
	}
	return value{elements: max(v.elements, other.elements), width: max(v.width, other.width)}
}

// scope has the values of a graph or a function. Graphs see those of the graph around them.
type scope struct {
	values map[string]value
	outer  *scope
}

// find returns the value with a name. One that is not defined yet counts as a constant, because the
// nodes may be in any order.
func (s *scope) find(name string) value {
	for ; s != nil; s = s.outer {
		if v, ok := s.values[name]; ok {
			return v
		}
	}
	return value{elements: most}
}

// wiring collects the constant nodes of a model. It reads each graph twice, because a file has the
// initializers and the inputs after the nodes.
type wiring struct {
	*model
	found   Constants
	index   map[computed]int // in found
	entries int              // how many are still collected, of mostEntries
	bodies  int64            // how many bytes are still read, of mostBodies
	calls   int              // that are being followed
}

// isFull reports whether no more is collected. It counts what the caller has now.
func (w *wiring) isFull() bool {
	w.entries--
	return w.entries < 0
}

// define adds a value to a scope. Old files list initializers as inputs too.
func (w *wiring) define(s *scope, name string, v value) {
	if name == "" {
		return
	}
	if old, ok := s.values[name]; ok {
		s.values[name] = v.either(old)
	} else if !w.isFull() {
		s.values[name] = v
	}
}

// add adds a constant node.
func (w *wiring) add(n computed) {
	i, ok := w.index[n]
	if !ok {
		i = len(w.found.nodes)
		w.index[n] = i
		w.found.nodes, w.found.times = append(w.found.nodes, n), append(w.found.times, 0)
	}
	w.found.times[i]++
}

func (w *wiring) graph(outer *scope, end int64) error {
	if w.depth++; w.depth > deepestNesting {
		return errDeep
	}
	defer func() { w.depth-- }()
	s := &scope{values: map[string]value{}, outer: outer}
	begin := w.at
	err := w.fields(end, func(x field) error {
		if x.kind != message {
			return nil
		}
		return w.given(s, x)
	})
	if err != nil {
		return err
	}
	if err := w.seek(begin); err != nil {
		return err
	}
	return w.fields(end, func(x field) error {
		if x.number == graphNode && x.kind == message {
			return w.node(s, x.end)
		}
		return nil
	})
}

// given adds an input or an initializer of a graph to its scope.
func (w *wiring) given(s *scope, x field) error {
	switch x.number {
	case graphInput:
		name, err := w.name(x.end, valueName)
		w.define(s, name, value{varies: true})
		return err
	case graphInitializer:
		name, v, err := w.tensor(x.end)
		w.define(s, name, v)
		return err
	case graphSparse:
		name, v, err := w.sparseTensor(x.end)
		w.define(s, name, v)
		return err
	}
	return nil
}
