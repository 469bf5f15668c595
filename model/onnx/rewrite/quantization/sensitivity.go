package quantization

import (
	"tuner/model/onnx"
	"tuner/model/onnx/rewrite"
)

// Sensitivity returns a model that computes the same as m. For each product that Dynamic
// would convert, it also computes the int8 form from the same input.
//
// For each product it has an additional output, FLOAT[1], with the relative squared error over all
// elements: sum((y-y8)²)/sum(y²). A sum of zeros counts as 1e-30. outputs has the output's name by
// the product's node. The errors are local, since each product gets its exact input. So one pass
// measures all of them separately. Errors are Dynamic's.
func Sensitivity(m *onnx.Model, o Options) (probe *onnx.Model, outputs map[string]string, err error) {
	q, products, err := newDynamic(m, o)
	if err != nil {
		return nil, nil, err
	}
	for _, node := range q.Nodes() { // all nodes first, since later ones may use any of them
		q.Keep(node)
	}
	outputs = map[string]string{}
	relative := newRelativeError(q.Editor)
	for _, p := range products {
		exact, name := p.node.GetOutput()[0], p.node.GetName()
		twin := q.Used.Fresh(exact + "_int8")
		if err := q.convert(p, twin); err != nil {
			return nil, nil, err
		}
		outputs[name] = relative.output(name+"_int8_error", exact, twin)
	}
	probe, err = q.Finish()
	return probe, outputs, err
}

// relativeError writes the comparison of two values into a graph.
type relativeError struct {
	*rewrite.Editor
	floor, shape string // names of constants
}

func newRelativeError(e *rewrite.Editor) relativeError {
	return relativeError{e, e.Constant("error_floor", onnx.Float, rewrite.FloatBytes([]float32{1e-30})),
		e.Constant("error_shape", onnx.Int64, rewrite.Int64Bytes([]int64{1}), 1)}
}

// output declares an additional output of the graph, FLOAT[1], named after name:
// sum((exact-approximate)²)/sum(exact²) over all elements. It returns the output's name.
func (r relativeError) output(name, exact, approximate string) string {
	keep := rewrite.IntAttribute("keepdims", 0)
	difference := r.Compute("Sub", name+"_difference", []string{exact, approximate})
	squares := r.Compute("ReduceSumSquare", name+"_sum", []string{difference}, keep)
	whole := r.Compute("ReduceSumSquare", name+"_whole", []string{exact}, keep)
	ratio := r.Compute("Div", name+"_ratio", []string{squares, r.Compute("Max", name+"_floor", []string{whole, r.floor})})
	value := r.Used.Fresh(name)
	r.AddNode("Reshape", name+"_reshape", []string{ratio, r.shape}, []string{value})
	r.Editor.Output(value, onnx.Float, 1)
	return value
}
