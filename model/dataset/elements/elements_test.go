package elements_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/dataset/elements"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// whole makes a tensor of integers.
func whole(t onnx.DataType, values ...int64) inputs.Tensor {
	out := inputs.Tensor{Type: t, Shape: []int64{int64(len(values))}}
	for _, v := range values {
		out.Data = onnx.AppendInteger(out.Data, t, v)
	}
	return out
}

// floats makes a tensor of floating-point numbers.
func floats(t onnx.DataType, values ...float64) inputs.Tensor {
	out := inputs.Tensor{Type: t, Shape: []int64{int64(len(values))}}
	for _, v := range values {
		out.Data = onnx.AppendFloat(out.Data, t, v)
	}
	return out
}

// The extreme values of every type are read correctly.
func TestIntegers(t *testing.T) {
	t.Parallel()
	for _, typ := range []onnx.DataType{onnx.Int8, onnx.Uint8, onnx.Int16, onnx.Uint16, onnx.Int32, onnx.Uint32, onnx.Int64, onnx.Uint64, onnx.Bool} {
		lo, hi := elements.InRange(typ)
		got, ok := elements.Integers(whole(typ, lo, 1, hi))
		if diff := cmp.Diff([]int64{lo, 1, hi}, got); diff != "" || !ok {
			t.Errorf("%v: ok %t, -want +got:\n%s", typ, ok, diff)
		}
	}
	if _, ok := elements.Integers(whole(onnx.Uint64, -1)); ok { // the bits of 2^64 - 1
		t.Error("2^64-1 became an int64")
	}
	if _, ok := elements.Integers(floats(onnx.Float, 1)); ok {
		t.Error("FLOAT passed for whole numbers")
	}
}

// The bit patterns follow IEEE 754's definition.
func TestFloats(t *testing.T) {
	t.Parallel()
	check := func(typ onnx.DataType, bits int64, want float64) {
		data := inputs.Tensor{Type: typ, Data: onnx.AppendInteger(nil, onnx.Uint16, bits)}
		if got := elements.Floats(data)[0]; got != want {
			t.Errorf("%v %#04x is %v, want %v", typ, bits, got, want)
		}
		if back := onnx.AppendFloat(nil, typ, want); !cmp.Equal(back, data.Data) {
			t.Errorf("%v of %v is %x, want %#04x", typ, want, back, bits)
		}
	}
	check(onnx.Float16, 0x0000, 0)
	check(onnx.Float16, 0x3c00, 1)
	check(onnx.Float16, 0xc000, -2)
	check(onnx.Float16, 0x7bff, 65504)                  // (2 - 2^-10)·2^15
	check(onnx.Float16, 0x0400, math.Ldexp(1, -14))     // the smallest normal
	check(onnx.Float16, 0x0001, math.Ldexp(1, -24))     // the smallest subnormal
	check(onnx.Float16, 0x83ff, -math.Ldexp(1023, -24)) // the largest subnormal
	check(onnx.Float16, 0x7c00, math.Inf(1))
	check(onnx.Float16, 0xfc00, math.Inf(-1))
	check(onnx.BFloat16, 0x3f80, 1)
	check(onnx.BFloat16, 0xc0a0, -5) // -1.25·2^2
	check(onnx.BFloat16, 0xff80, math.Inf(-1))
}

// Each of the 2^16 patterns is converted to itself.
func TestFloat16EveryNumber(t *testing.T) {
	t.Parallel()
	for bits := range int64(1 << 16) {
		data := onnx.AppendInteger(nil, onnx.Uint16, bits)
		v := elements.Floats(inputs.Tensor{Type: onnx.Float16, Data: data})[0]
		back := onnx.AppendFloat(nil, onnx.Float16, v)
		if math.IsNaN(v) != (bits&0x7c00 == 0x7c00 && bits&0x3ff != 0) || !math.IsNaN(v) && !bytes.Equal(back, data) {
			t.Fatalf("%#04x is %v, which is %x", bits, v, back)
		}
	}
}

// Half-way cases go to the even neighbour.
func TestRounding(t *testing.T) {
	t.Parallel()
	check := func(typ onnx.DataType, v, want float64) {
		if got := elements.Floats(floats(typ, v))[0]; got != want {
			t.Errorf("%v(%v) = %v, want %v", typ, v, got, want)
		}
	}
	step := math.Ldexp(1, -10)                // between 1 and 2
	check(onnx.Float16, 1+step/2, 1)          // between steps 0 and 1
	check(onnx.Float16, 1+3*step/2, 1+2*step) // between steps 1 and 2
	check(onnx.Float16, 2-step/4, 2)          // carries into the exponent
	check(onnx.Float16, 65519, 65504)
	check(onnx.Float16, 65520, math.Inf(1))
	check(onnx.Float16, math.Ldexp(1023.75, -24), math.Ldexp(1, -14)) // carries out of the subnormals
	check(onnx.BFloat16, 1+math.Ldexp(1, -8), 1)                      // the step is 2^-7
	check(onnx.BFloat16, 1+3*math.Ldexp(1, -8), 1+math.Ldexp(1, -6))
	if got := elements.Floats(floats(onnx.BFloat16, math.NaN()))[0]; !math.IsNaN(got) {
		t.Errorf("BFLOAT16(NaN) = %v", got)
	}
}

func TestConvert(t *testing.T) {
	t.Parallel()
	check := func(name string, from, want inputs.Tensor) {
		got, err := elements.Convert(from, want.Type)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	check("wider", whole(onnx.Int32, -7, 7), whole(onnx.Int64, -7, 7))
	check("narrower", whole(onnx.Int64, -7, 7), whole(onnx.Int8, -7, 7))
	check("float64", floats(onnx.Double, 0.1, math.Inf(1)), floats(onnx.Float, 0.1, math.Inf(1)))
	check("to half", floats(onnx.Float, 0.5), floats(onnx.Float16, 0.5))

	refuse := func(from inputs.Tensor, to onnx.DataType, want string) {
		_, err := elements.Convert(from, to)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v to %v: %v, want %q", from.Type, to, err, want)
		}
	}
	refuse(whole(onnx.Int64, 1, 300), onnx.Uint8, "its value 300 does not fit UINT8")
	refuse(whole(onnx.Int8, -1), onnx.Uint64, "its value -1 does not fit UINT64")
	refuse(whole(onnx.Uint64, -1), onnx.Int64, "too large for INT64")
	refuse(floats(onnx.Double, 1e39), onnx.Float, "its value 1e+39 does not fit FLOAT")
	refuse(whole(onnx.Uint8, 1), onnx.Float, "it is UINT8 instead of FLOAT")
	refuse(floats(onnx.Float, 1), onnx.Int64, "it is FLOAT instead of INT64")
	refuse(whole(onnx.Uint8, 1), onnx.Bool, "it is UINT8 instead of BOOL")
}

// A long tensor is converted and searched completely, in parts.
func TestParts(t *testing.T) {
	t.Parallel()
	const n = 1<<14 + 3
	whole, fractions := inputs.Tensor{Type: onnx.Int32, Shape: []int64{n}}, inputs.Tensor{Type: onnx.Double, Shape: []int64{n}}
	for i := range int64(n) {
		whole.Data = onnx.AppendInteger(whole.Data, onnx.Int32, i)
		fractions.Data = onnx.AppendFloat(fractions.Data, onnx.Double, float64(i)/4)
	}
	wide, err := elements.Convert(whole, onnx.Int64)
	if values, _ := elements.Integers(wide); err != nil || len(values) != n || values[n-1] != n-1 {
		t.Errorf("%d whole numbers, %v", len(values), err)
	}
	single, err := elements.Convert(fractions, onnx.Float)
	if values := elements.Floats(single); err != nil || len(values) != n || values[n-1] != float64(n-1)/4 {
		t.Errorf("%d fractions, %v", len(values), err)
	}
	if i, ok := elements.FindNaN(single); ok {
		t.Errorf("element %d is NaN", i)
	}
	copy(single.Data[4*(n-2):], onnx.AppendFloat(nil, onnx.Float, math.NaN()))
	if i, ok := elements.FindNaN(single); !ok || i != n-2 {
		t.Errorf("element %d is NaN (%t), want %d", i, ok, n-2)
	}
	if _, err := elements.Convert(whole, onnx.Int8); err == nil {
		t.Error("a number that does not fit was converted")
	}
}
