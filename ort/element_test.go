package ort

import "testing"

func TestElementType(t *testing.T) {
	t.Parallel()
	tests := []struct {
		elementType ElementType
		name        string
		size        int
		supported   bool
	}{
		{Bool, "BOOL", 1, true},
		{Uint8, "UINT8", 1, true}, {Uint16, "UINT16", 2, true}, {Uint32, "UINT32", 4, true}, {Uint64, "UINT64", 8, true},
		{Int8, "INT8", 1, true}, {Int16, "INT16", 2, true}, {Int32, "INT32", 4, true}, {Int64, "INT64", 8, true},
		{Float16, "FP16", 2, true}, {BFloat16, "BF16", 2, true}, {Float32, "FP32", 4, true}, {Float64, "FP64", 8, true},
		{String, "STRING", 0, true},
		{ElementType(14), "ONNX element type 14", 0, false}, // complex
		{ElementType(0), "ONNX element type 0", 0, false},   // undefined
	}
	for _, tt := range tests {
		if got := tt.elementType; got.String() != tt.name || got.Size() != tt.size || got.IsSupported() != tt.supported {
			t.Errorf("%d: %v, %d bytes, supported %t; want %+v", int(got), got, got.Size(), got.IsSupported(), tt)
		}
	}
}
