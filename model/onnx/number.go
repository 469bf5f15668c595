package onnx

import (
	"encoding/binary"
	"math"
)

// AppendInteger appends a whole number in the form of a type of whole numbers or BOOL. The caller has checked that it fits.
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

// AppendFloat appends a number in the form of a floating-point type, rounded to nearest, ties to even. What is too large
// becomes infinite.
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

// Float16bits rounds to IEEE 754 half precision, halves to even: a fraction of 10 bits, exponents from -14 to 15, and below
// them equal steps of 2^-24.
func Float16bits(v float64) uint16 {
	const (
		tooLarge = 65520   // half-way between the greatest, 65504, and what would come next
		normal   = 0x1p-14 // the smallest normal number
		lost     = 52 - 10 // bits of the fraction
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
	bits += 1<<(lost-1) - 1 + bits>>lost&1 // a carry raises the exponent
	return sign | uint16((bits-rebias)>>lost)
}

// Float16frombits returns the number that IEEE 754 half-precision bits stand for.
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
