package shapes

import "tuner/model/onnx"

// makeRule returns the rules of operators that make tensors from numbers, shapes or nothing.
func makeRule(operator string) rule {
	switch operator {
	case "Constant":
		return constant
	case "ConstantOfShape":
		return constantOfShape
	case "Range":
		return func(n node) []Info { return one(known(n.firstType(0), openDims(1))) }
	case "OneHot":
		return oneHot
	case "EyeLike":
		return func(n node) []Info { return one(withType(n.in(0), n.dtype(n.in(0).Type))) }
	case "RandomNormalLike", "RandomUniformLike", "Bernoulli":
		return func(n node) []Info { return one(withType(n.in(0), n.dtype(n.in(0).Type))) }
	case "RandomNormal", "RandomUniform":
		return func(n node) []Info { return one(known(n.dtype(onnx.Float), fixedDims(n.integers("shape")))) }
	case "Multinomial":
		return multinomial
	default:
		return nil
	}
}

// dtype returns the type in the attribute, or the default if it is absent.
func (n node) dtype(absent onnx.DataType) onnx.DataType {
	return onnx.DataType(n.integer("dtype", int64(absent)))
}

// constant reads all forms of a Constant's value.
func constant(n node) []Info {
	if len(n.GetAttribute()) != 1 {
		return nil
	}
	list := func(t onnx.DataType, count int) []Info { return one(known(t, []onnx.Dim{onnx.Fixed(int64(count))})) }
	switch a := n.GetAttribute()[0]; a.GetName() {
	case "value":
		return one(known(onnx.DataType(a.GetT().GetDataType()), fixedDims(a.GetT().GetDims())))
	case "sparse_value":
		s := a.GetSparseTensor()
		return one(known(onnx.DataType(s.GetValues().GetDataType()), fixedDims(s.GetDims())))
	case "value_float":
		return one(known(onnx.Float, nil))
	case "value_int":
		return one(known(onnx.Int64, nil))
	case "value_string":
		return one(known(onnx.String, nil))
	case "value_floats":
		return list(onnx.Float, len(a.GetFloats()))
	case "value_ints":
		return list(onnx.Int64, len(a.GetInts()))
	case "value_strings":
		return list(onnx.String, len(a.GetStrings()))
	default:
		return nil
	}
}

// constantOfShape repeats a value, by default the FLOAT 0.
func constantOfShape(n node) []Info {
	t := onnx.Float
	if value := onnx.Attribute(n.NodeProto, "value").GetT(); value != nil {
		t = onnx.DataType(value.GetDataType())
	}
	shape, ok := n.target(0)
	if !ok {
		return one(typed(t))
	}
	return one(known(t, shape))
}

// oneHot inserts a dimension for the classes.
func oneHot(n node) []Info {
	indices, t := n.in(0), n.in(2).Type
	axis, ok := at(n.integer("axis", -1), len(indices.Shape)+1)
	if !indices.Ranked || !ok {
		return one(typed(t))
	}
	depth := open()
	if numbers, ok := n.numbers(1); ok && len(numbers) == 1 {
		depth = numbers[0].dim()
	}
	shape := make([]onnx.Dim, 0, len(indices.Shape)+1)
	shape = append(append(append(shape, indices.Shape[:axis]...), depth), indices.Shape[axis:]...)
	return one(known(t, shape))
}

// multinomial draws classes, [batch, sample_size], of type INT32 unless dtype names another.
func multinomial(n node) []Info {
	shape := []onnx.Dim{open(), sized(n.integer("sample_size", 1))}
	if x := n.in(0); len(x.Shape) == 2 {
		shape[0] = x.Shape[0]
	}
	return one(known(n.dtype(onnx.Int32), shape))
}
