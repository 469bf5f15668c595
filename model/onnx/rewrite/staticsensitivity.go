package rewrite

import "tuner/model/onnx"

// Int8StaticSensitivity returns a model that computes what m computes and, beside each layer that Int8Static would convert, its
// 8-bit form of the same input, which is quantized by its range. A further output per layer, FLOAT[1], is the relative squared
// error of that form over all elements, as Int8Sensitivity has it. outputs names it by the layer's node. Errors are
// Int8Static's.
func Int8StaticSensitivity(m *onnx.Model, o Int8StaticOptions) (probe *onnx.Model, outputs map[string]string, err error) {
	s, err := newStatic(m, o)
	if err == nil {
		err = s.checkRanges()
	}
	if err != nil {
		return nil, nil, err
	}
	s.probing = true
	for _, node := range s.Nodes() { // all of them first: what follows may consume any
		s.keep(node)
	}
	outputs = map[string]string{}
	relative := newRelativeError(s.editor)
	for _, l := range s.sorted() {
		if _, done := s.decoded[l.activation]; !done {
			s.pair(l.activation, l.activation)
		}
		exact, name := l.node.GetOutput()[0], l.node.GetName()
		twin := s.used.fresh(exact + "_int8")
		if err := s.writeLayer(l, s.decoded[l.activation], twin); err != nil {
			return nil, nil, err
		}
		outputs[name] = relative.output(name+"_int8_error", exact, twin)
	}
	probe, err = s.finish()
	return probe, outputs, err
}
