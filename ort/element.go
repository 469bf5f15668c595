package ort

import "fmt"

// ElementType is the type of a tensor's elements: the types that both ONNX Runtime and Triton have.
type ElementType int

// The values are those of ONNX Runtime's ONNXTensorElementDataType.
const (
	Float32  ElementType = 1
	Uint8    ElementType = 2
	Int8     ElementType = 3
	Uint16   ElementType = 4
	Int16    ElementType = 5
	Int32    ElementType = 6
	Int64    ElementType = 7
	String   ElementType = 8
	Bool     ElementType = 9
	Float16  ElementType = 10
	Float64  ElementType = 11
	Uint32   ElementType = 12
	Uint64   ElementType = 13
	BFloat16 ElementType = 16
)

// String returns Triton's name of the type without its TYPE_ prefix: FP32, INT64, STRING.
func (t ElementType) String() string {
	switch t {
	case Float32:
		return "FP32"
	case Uint8:
		return "UINT8"
	case Int8:
		return "INT8"
	case Uint16:
		return "UINT16"
	case Int16:
		return "INT16"
	case Int32:
		return "INT32"
	case Int64:
		return "INT64"
	case String:
		return "STRING"
	case Bool:
		return "BOOL"
	case Float16:
		return "FP16"
	case Float64:
		return "FP64"
	case Uint32:
		return "UINT32"
	case Uint64:
		return "UINT64"
	case BFloat16:
		return "BF16"
	}
	return fmt.Sprintf("ONNX element type %d", int(t))
}

// Size returns the bytes of one element. It is 0 for String, whose elements vary, and for
// unsupported types.
func (t ElementType) Size() int {
	switch t {
	case Bool, Uint8, Int8:
		return 1
	case Uint16, Int16, Float16, BFloat16:
		return 2
	case Uint32, Int32, Float32:
		return 4
	case Uint64, Int64, Float64:
		return 8
	}
	return 0
}

// IsSupported reports whether t is one of the constants above.
func (t ElementType) IsSupported() bool { return t == String || t.Size() > 0 }
