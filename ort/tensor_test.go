package ort

import (
	"math"
	"strings"
	"testing"
)

func TestTensorErrors(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	tests := []struct {
		elementType ElementType
		shape       []int64
		bytes       int
		want        string
	}{
		{Float32, []int64{2}, 4, "takes 8 bytes, found 4"},
		{Float32, []int64{-1}, 4, "negative dimension"},
		{Int64, []int64{math.MaxInt64}, 8, "too many bytes"},
		{Int64, []int64{math.MaxInt64, 3}, 8, "too many elements"},
		{String, []int64{1}, 1, "cannot make a tensor of STRING"},
		{ElementType(14), []int64{1}, 8, "cannot make a tensor of ONNX element type 14"},
	}
	for _, tt := range tests {
		_, err := r.NewTensor(tt.elementType, tt.shape, make([]byte, tt.bytes))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v %v: error %v, want one with %q", tt.elementType, tt.shape, err, tt.want)
		}
	}
	for name, parts := range map[string][][]byte{
		"one string": {wire("a")}, "none": nil, "three": {wire("a", "b"), wire("c")}, "half a length": {wire("a"), {1, 0}}, "half a string": {wire("a"), {2, 0, 0, 0, 'b'}},
	} {
		if _, err := r.NewStringTensor([]int64{2}, parts); err == nil || !strings.Contains(err.Error(), "takes 2 strings") {
			t.Errorf("two strings out of %s: %v", name, err)
		}
	}
}

func TestByteSize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		elementType ElementType
		shape       []int64
		want        int // -1: an error is expected
	}{
		{Float32, nil, 4}, // a scalar
		{Float32, []int64{2, 3}, 24},
		{Int64, []int64{0, 5}, 0},
		{Bool, []int64{-1}, -1},
		{Bool, []int64{math.MaxInt64}, math.MaxInt64},
		{Uint16, []int64{math.MaxInt64}, -1},
		{Bool, []int64{1 << 32, 1 << 32}, -1}, // 2^64, which is 0 in 64 bits
	}
	for _, tt := range tests {
		got, err := byteSize(tt.elementType, tt.shape)
		if (err != nil) != (tt.want < 0) || err == nil && got != tt.want {
			t.Errorf("%v %v: %d, %v; want %d", tt.elementType, tt.shape, got, err, tt.want)
		}
	}
}
