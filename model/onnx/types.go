package onnx

import (
	"fmt"
	"strings"

	"tuner/model/onnx/onnxpb"
)

// DataType is the type of a tensor's elements, with ONNX's numbers.
type DataType int32

// The types that models can serve: both ONNX Runtime and the inference protocol have them.
const (
	Float    = DataType(onnxpb.TensorProto_FLOAT)
	Uint8    = DataType(onnxpb.TensorProto_UINT8)
	Int8     = DataType(onnxpb.TensorProto_INT8)
	Uint16   = DataType(onnxpb.TensorProto_UINT16)
	Int16    = DataType(onnxpb.TensorProto_INT16)
	Int32    = DataType(onnxpb.TensorProto_INT32)
	Int64    = DataType(onnxpb.TensorProto_INT64)
	String   = DataType(onnxpb.TensorProto_STRING)
	Bool     = DataType(onnxpb.TensorProto_BOOL)
	Float16  = DataType(onnxpb.TensorProto_FLOAT16)
	Double   = DataType(onnxpb.TensorProto_DOUBLE)
	Uint32   = DataType(onnxpb.TensorProto_UINT32)
	Uint64   = DataType(onnxpb.TensorProto_UINT64)
	BFloat16 = DataType(onnxpb.TensorProto_BFLOAT16)
)

// ONNX 1.20's numbers of the 2-bit integers, which the generated code lacks.
const (
	uint2 = DataType(25)
	int2  = DataType(26)
)

// ServableTypes returns every type that an input or output can have, in ONNX's order.
func ServableTypes() []DataType {
	return []DataType{Float, Uint8, Int8, Uint16, Int16, Int32, Int64, String, Bool, Float16, Double, Uint32, Uint64, BFloat16}
}

// String returns ONNX's name of the type, such as "INT64".
func (t DataType) String() string {
	switch t {
	case uint2:
		return "UINT2"
	case int2:
		return "INT2"
	}
	if name, ok := onnxpb.TensorProto_DataType_name[int32(t)]; ok {
		return name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// Size returns the size of one element in bytes. It returns 0 for STRING and for types that cannot
// be served.
func (t DataType) Size() int64 {
	switch t {
	case Uint8, Int8, Bool:
		return 1
	case Uint16, Int16, Float16, BFloat16:
		return 2
	case Float, Int32, Uint32:
		return 4
	case Double, Int64, Uint64:
		return 8
	default:
		return 0
	}
}

// IsServable reports whether an input or output of this type can be served.
func (t DataType) IsServable() bool { return t == String || t.Size() > 0 }

// IsInteger reports whether the elements are integers. BOOL does not count.
func (t DataType) IsInteger() bool {
	switch t {
	case Uint8, Int8, Uint16, Int16, Int32, Int64, Uint32, Uint64:
		return true
	default:
		return false
	}
}

// IsFloat reports whether the elements are floating-point numbers.
func (t DataType) IsFloat() bool {
	return t == Float || t == Float16 || t == BFloat16 || t == Double
}

// packedSize returns the size of n elements in raw form, in bytes. It also covers types that cannot
// be served but occur in initializers. ok is false if the type has no raw form, or if the size
// overflows.
func (t DataType) packedSize(n int64) (size int64, ok bool) {
	switch onnxpb.TensorProto_DataType(t) {
	case onnxpb.TensorProto_INT4, onnxpb.TensorProto_UINT4, onnxpb.TensorProto_FLOAT4E2M1:
		return n/2 + n%2, true
	case onnxpb.TensorProto_DataType(uint2), onnxpb.TensorProto_DataType(int2):
		return n/4 + min(n%4, 1), true
	case onnxpb.TensorProto_FLOAT8E4M3FN, onnxpb.TensorProto_FLOAT8E4M3FNUZ, onnxpb.TensorProto_FLOAT8E5M2,
		onnxpb.TensorProto_FLOAT8E5M2FNUZ, onnxpb.TensorProto_FLOAT8E8M0:
		return n, true
	case onnxpb.TensorProto_COMPLEX64:
		return mulSize(n, 8)
	case onnxpb.TensorProto_COMPLEX128:
		return mulSize(n, 16)
	default:
		if t.Size() == 0 {
			return 0, false
		}
		return mulSize(n, t.Size())
	}
}

// Dim is one dimension of a shape. It is a fixed size, or a symbol whose size is only known at a
// request. A zero Size with an empty Symbol is the size 0.
type Dim struct {
	Size   int64  // -1 if the size is open
	Symbol string // name of the size; "" for a fixed or unnamed size
}

// Fixed returns a dimension with a fixed size.
func Fixed(size int64) Dim { return Dim{Size: size} }

// Symbol returns a dimension whose size has a name. "?" counts as no name: Paddle's exporter writes
// it for every open size, and two of them need not be equal.
func Symbol(name string) Dim {
	if name == "?" {
		name = ""
	}
	return Dim{Size: -1, Symbol: name}
}

// IsFixed reports whether the file has the size.
func (d Dim) IsFixed() bool { return d.Size >= 0 }

// String returns the size, the symbol, or "?".
func (d Dim) String() string {
	switch {
	case d.IsFixed():
		return fmt.Sprint(d.Size)
	case d.Symbol != "":
		return d.Symbol
	default:
		return "?"
	}
}

// Value is an input or output of the graph.
type Value struct {
	Name   string
	Kind   string   // "tensor", "sequence", "map", "optional", "sparse tensor", "opaque", or "" (unknown)
	Type   DataType // element type of a tensor; otherwise 0
	Shape  []Dim
	Ranked bool // false: the file has no shape, not even the number of dimensions
}

// Dims returns the shape as numbers, with -1 for open sizes.
func (v Value) Dims() []int64 {
	dims := make([]int64, len(v.Shape))
	for i, d := range v.Shape {
		dims[i] = d.Size
	}
	return dims
}

// String describes the value for people: "input_ids INT64[batch,sequence]".
func (v Value) String() string {
	if v.Kind != kindTensor {
		return v.Name + " (" + v.typeName() + ")"
	}
	if !v.Ranked {
		return fmt.Sprintf("%s %s[…]", v.Name, v.Type)
	}
	dims := make([]string, len(v.Shape))
	for i, d := range v.Shape {
		dims[i] = d.String()
	}
	return fmt.Sprintf("%s %s[%s]", v.Name, v.Type, strings.Join(dims, ","))
}

// typeName returns the type in words, for errors.
func (v Value) typeName() string {
	switch v.Kind {
	case kindTensor:
		return v.Type.String() + " tensor"
	case "":
		return "no type"
	default:
		return v.Kind
	}
}

const kindTensor = "tensor"

func newValue(info *onnxpb.ValueInfoProto) Value {
	v := Value{Name: info.GetName()}
	switch t := info.GetType().GetValue().(type) {
	case *onnxpb.TypeProto_TensorType:
		v.Kind = kindTensor
		v.Type = DataType(t.TensorType.GetElemType())
		v.Ranked = t.TensorType.GetShape() != nil
		v.Shape = newShape(t.TensorType.GetShape())
	case *onnxpb.TypeProto_SequenceType:
		v.Kind = "sequence"
	case *onnxpb.TypeProto_MapType:
		v.Kind = "map"
	case *onnxpb.TypeProto_OptionalType:
		v.Kind = "optional"
	case *onnxpb.TypeProto_SparseTensorType:
		v.Kind = "sparse tensor"
	case *onnxpb.TypeProto_OpaqueType:
		v.Kind = "opaque"
	}
	return v
}

func newShape(shape *onnxpb.TensorShapeProto) []Dim {
	var dims []Dim
	for _, d := range shape.GetDim() {
		switch v := d.GetValue().(type) {
		case *onnxpb.TensorShapeProto_Dimension_DimValue:
			dims = append(dims, Dim{Size: max(v.DimValue, -1)})
		case *onnxpb.TensorShapeProto_Dimension_DimParam:
			dims = append(dims, Symbol(v.DimParam))
		default:
			dims = append(dims, Symbol(""))
		}
	}
	return dims
}

// mulSize multiplies two sizes. ok is false if either is negative or the product overflows.
func mulSize(a, b int64) (product int64, ok bool) {
	if a < 0 || b < 0 {
		return 0, false
	}
	if a == 0 || b == 0 {
		return 0, true
	}
	product = a * b
	return product, product/b == a && product >= 0
}

// Elements returns the number of elements of a shape. ok is false for a negative size or an
// overflow.
func Elements(dims []int64) (n int64, ok bool) {
	n = 1
	for _, d := range dims {
		if n, ok = mulSize(n, d); !ok {
			return 0, false
		}
	}
	return n, true
}
