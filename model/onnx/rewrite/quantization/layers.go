package quantization

import "tuner/model/onnx"

// Products names the nodes that Dynamic would convert, in graph order. It computes no weights.
// Errors are Dynamic's.
func Products(m *onnx.Model) ([]string, error) {
	_, products, err := newDynamic(m, Options{})
	names := make([]string, len(products))
	for i, p := range products {
		names[i] = p.node.GetName()
	}
	return names, err
}

// Layers names the nodes that Static would convert, in graph order. It needs no ranges. Errors are
// Static's, apart from those about ranges.
func Layers(m *onnx.Model) ([]string, error) {
	s, err := newStatic(m, StaticOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, node := range s.Nodes() {
		if _, ok := s.layers[node]; ok {
			names = append(names, node.GetName())
		}
	}
	return names, nil
}
