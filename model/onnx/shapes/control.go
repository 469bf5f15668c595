package shapes

import (
	"slices"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// control infers a node with subgraphs. The subgraphs see the outer values, and their results are
// the node's results.
func (n node) control() ([]Info, error) {
	switch n.operator() {
	case "If":
		return n.branches()
	case "Loop":
		return n.loop()
	case "Scan":
		return n.scan()
	}
	for _, g := range onnx.Subgraphs(n.NodeProto) {
		if _, err := n.within(g, nil); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// within infers a subgraph and returns the known types and shapes of its outputs.
func (n node) within(g *onnxpb.GraphProto, inputs []Info) ([]Info, error) {
	inner := n.scope.inner(g)
	defer inner.close()
	if err := inner.infer(inputs); err != nil {
		return nil, err
	}
	outputs := make([]Info, len(g.GetOutput()))
	for i, v := range g.GetOutput() {
		outputs[i] = inner.info(v.GetName())
	}
	return outputs, nil
}

// branches combines the results of the two branches of an If.
func (n node) branches() ([]Info, error) {
	var joined []Info
	for i, g := range onnx.Subgraphs(n.NodeProto) {
		outputs, err := n.within(g, nil)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			joined = outputs
			continue
		}
		for k := range joined {
			if k < len(outputs) {
				joined[k] = meet(joined[k], outputs[k])
			}
		}
	}
	return joined, nil
}

// meet returns the common part of two values that must have one type. If one has no type, it gets
// the other's.
func meet(a, b Info) Info {
	t := a.Type
	if t == 0 {
		t = b.Type
	}
	if !a.Ranked || !b.Ranked || a.Type == 0 || b.Type == 0 {
		return typed(t)
	}
	shape, ok := agree(a.Shape, b.Shape)
	return Info{t, shape, ok}
}

// loop infers a Loop. Inputs are a count, a condition and the carried values. Outputs are the
// carried values and one list for each other output of the body. The shape of a carried value may
// change between iterations.
func (n node) loop() ([]Info, error) {
	graphs := onnx.Subgraphs(n.NodeProto)
	if len(graphs) != 1 {
		return nil, nil
	}
	carried := max(len(n.GetInput())-2, 0)
	inputs := []Info{known(onnx.Int64, nil), known(onnx.Bool, nil)}
	for i := range carried {
		inputs = append(inputs, typed(n.in(2+i).Type))
	}
	outputs, err := n.within(graphs[0], inputs)
	if err != nil || len(outputs) == 0 {
		return nil, err
	}
	return n.afterLoop(outputs[1:], 0, carried, 2), nil
}

// scan infers a Scan. Inputs are the carried values and the lists to iterate over. Outputs are like
// Loop's. Before opset 9 it had a batch dimension and one more input.
func (n node) scan() ([]Info, error) {
	graphs := onnx.Subgraphs(n.NodeProto)
	const current = 9
	if len(graphs) != 1 || n.opset() < current {
		return nil, nil
	}
	lists := n.integer("num_scan_inputs", 0)
	carried := len(n.GetInput()) - int(min(max(lists, 0), int64(len(n.GetInput()))))
	var inputs []Info
	for i := range n.GetInput() {
		inputs = append(inputs, typed(n.in(i).Type))
	}
	outputs, err := n.within(graphs[0], inputs)
	if err != nil {
		return nil, err
	}
	results := n.afterLoop(outputs, 0, carried, 0)
	for i := range results {
		if i >= carried && n.integers("scan_output_axes") != nil {
			results[i] = typed(results[i].Type) // the iterations may lie along another dimension than the first
		}
	}
	return results, nil
}

// afterLoop converts the outputs of a body, from index from on, into the node's outputs. First come
// the carried values, which without iterations equal the inputs from firstInput on. Then come lists
// with an additional first dimension.
func (n node) afterLoop(outputs []Info, from, carried, firstInput int) []Info {
	var results []Info
	for i, info := range outputs[from:] {
		switch {
		case i < carried:
			results = append(results, meet(n.in(firstInput+i), onlyFixed(info)))
		case info.Ranked:
			results = append(results, known(info.Type, slices.Concat(openDims(1), onlyFixed(info).Shape)))
		default:
			results = append(results, typed(info.Type))
		}
	}
	return results
}

// onlyFixed removes the symbols of a body's sizes, since a symbol may stand for another size in
// each iteration.
func onlyFixed(info Info) Info {
	shape := slices.Clone(info.Shape)
	for i, d := range shape {
		if !d.IsFixed() {
			shape[i] = open()
		}
	}
	info.Shape = shape
	return info
}
