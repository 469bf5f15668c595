package quantization

import "tuner/model/onnx"

// StaticSensitivity returns a model that computes the same as m. For each layer that Static
// would convert, it also computes the 8-bit form from the same input, quantized by its range.
//
// For each layer it has an additional output, FLOAT[1], with the relative squared error over all
// elements, as in Sensitivity. outputs has the output's name by the layer's node. Errors are
// Static's.
func StaticSensitivity(m *onnx.Model, o StaticOptions) (probe *onnx.Model, outputs map[string]string, err error) {
	s, err := newStatic(m, o)
	if err == nil {
		err = s.checkRanges()
	}
	if err != nil {
		return nil, nil, err
	}
	s.probing = true
	for _, node := range s.Nodes() { // all nodes first, since later ones may use any of them
		s.Keep(node)
	}
	outputs = map[string]string{}
	relative := newRelativeError(s.Editor)
	for _, l := range s.sorted() {
		if _, done := s.decoded[l.activation]; !done {
			s.pair(l.activation, l.activation)
		}
		exact, name := l.node.GetOutput()[0], l.node.GetName()
		twin := s.Used.Fresh(exact + "_int8")
		if err := s.writeLayer(l, s.decoded[l.activation], twin); err != nil {
			return nil, nil, err
		}
		outputs[name] = relative.output(name+"_int8_error", exact, twin)
	}
	probe, err = s.Finish()
	return probe, outputs, err
}
