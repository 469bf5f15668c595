package onnx

import (
	"encoding/binary"
	"math"
)

// AppendInteger appends an integer in the encoding of an integer type or BOOL. The caller has
// checked that it fits.
func AppendInteger(data []byte, t DataType, v int64) []byte {
	le := binary.LittleEndian
	switch t.Size() {
	case 1:
		return append(data, byte(v))
	case 2:
		return le.AppendUint16(data, uint16(v))
	case 4:
		return le.AppendUint32(data, uint32(v))
	default:
		return le.AppendUint64(data, uint64(v))
	}
}

// AppendFloat appends a number in the encoding of a floating-point type, rounded to nearest, ties
// to even. Numbers that are too large become infinite.
func AppendFloat(data []byte, t DataType, v float64) []byte {
	le := binary.LittleEndian
	switch t {
	case Float16:
		return le.AppendUint16(data, Float16bits(v))
	case BFloat16:
		return le.AppendUint16(data, bfloat16bits(v))
	case Double:
		return le.AppendUint64(data, math.Float64bits(v))
	default:
		return le.AppendUint32(data, math.Float32bits(float32(v)))
	}
}

// Float16bits rounds to IEEE 754 half precision, ties to even. A half has a fraction of 10 bits and
// exponents from -14 to 15. Below these, its values are multiples of 2^-24.
func Float16bits(v float64) uint16 {
	const (
		tooLarge = 65520   // half-way between the largest number, 65504, and the next step
		normal   = 0x1p-14 // the smallest normal number
		lost     = 52 - 10 // bits of the fraction that are lost
		rebias   = (1023 - 15) << 52
	)
	abs := math.Abs(v)
	sign := uint16(math.Float64bits(v)>>48) & 0x8000
	switch {
	case math.IsNaN(v):
		return 0x7e00
	case abs >= tooLarge:
		return sign | 0x7c00
	case abs < normal:
		return sign | uint16(math.RoundToEven(abs*0x1p24))
	}
	bits := math.Float64bits(abs)
	bits += 1<<(lost-1) - 1 + bits>>lost&1 // a carry increases the exponent
	return sign | uint16((bits-rebias)>>lost)
}

// Float16frombits returns the value of IEEE 754 half-precision bits.
func Float16frombits(bits uint16) float64 {
	exponent, fraction := int(bits>>10&31), float64(bits&0x3ff)
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 31:
		if v = math.Inf(1); fraction != 0 {
			return math.NaN()
		}
	default:
		v = math.Ldexp(fraction+1024, exponent-25)
	}
	return math.Copysign(v, 1-2*float64(bits>>15))
}

// bfloat16bits rounds to the upper half of a float32.
func bfloat16bits(v float64) uint16 {
	if math.IsNaN(v) {
		return 0x7fc0
	}
	bits := math.Float32bits(float32(v))
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
