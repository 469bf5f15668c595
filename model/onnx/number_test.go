package onnx

import (
	"math"
	"testing"
)

// Each of the 2^16 patterns is converted to itself. A value half-way between two neighbours is
// rounded to the even one.
func TestFloat16(t *testing.T) {
	t.Parallel()
	for bits := range uint16(0x7c00) {
		v := Float16frombits(bits)
		if got := Float16bits(v); got != bits {
			t.Fatalf("%#04x is %v, which is %#04x", bits, v, got)
		}
		if got := Float16bits(-v); got != bits|0x8000 || Float16frombits(got) != -v {
			t.Fatalf("%v is %#04x", -v, got)
		}
		next := 65536.0 // the step after the largest number
		if bits < 0x7bff {
			next = Float16frombits(bits + 1)
		}
		middle := (v + next) / 2 // exact, since it needs only one more bit
		for value, want := range map[float64]uint16{math.Nextafter(middle, 0): bits, middle: bits + bits&1, math.Nextafter(middle, 1e9): bits + 1} {
			if got := Float16bits(value); got != want {
				t.Fatalf("%v is %#04x, want %#04x", value, got, want)
			}
		}
	}
	for _, c := range []struct {
		bits uint16
		want float64
	}{{0x3c00, 1}, {0xc000, -2}, {0x7bff, 65504}, {0x0400, 0x1p-14}, {0x0001, 0x1p-24}, {0x7c00, math.Inf(1)}, {0xfc00, math.Inf(-1)}} {
		if got := Float16frombits(c.bits); got != c.want || Float16bits(c.want) != c.bits {
			t.Errorf("%#04x is %v, want %v, which is %#04x", c.bits, got, c.want, Float16bits(c.want))
		}
	}
	if !math.IsNaN(Float16frombits(0x7e01)) || !math.IsNaN(Float16frombits(Float16bits(math.NaN()))) {
		t.Error("NaN is a number")
	}
	if got := Float16bits(math.MaxFloat64); got != 0x7c00 {
		t.Errorf("the greatest float64 is %#04x", got)
	}
}
