package document

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/model/modelconfig/configpb"
)

// elements iterates over the elements of a JSON array, flat or nested. The array was checked
// before, so that brackets, commas and white space can be skipped.
type elements struct {
	text    []byte
	element []byte // the current one: a string with its quotes, only the bracket of an object
}

func (e *elements) next() bool {
	i := 0
	for i < len(e.text) && (e.text[i] <= ' ' || e.text[i] == ',' || e.text[i] == '[' || e.text[i] == ']') {
		i++
	}
	e.text = e.text[i:]
	if len(e.text) == 0 {
		return false
	}
	n := 1
	switch e.text[0] {
	case '{': // the iteration ends here, since no tensor has objects
	case '"':
		for e.text[n] != '"' {
			if e.text[n] == '\\' {
				n++
			}
			n++
		}
		n++
	default:
		for n < len(e.text) && e.text[n] > ' ' && e.text[n] != ',' && e.text[n] != ']' {
			n++
		}
	}
	e.element, e.text = e.text[:n], e.text[n:]
	return true
}

// AppendStrings appends the strings of an array in wire form.
func AppendStrings(dst, array []byte) ([]byte, error) {
	for e := (elements{text: array}); e.next(); {
		if e.element[0] != '"' {
			return dst, KindError("string")
		}
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		dst = appendUnescaped(dst, e.element[1:len(e.element)-1])
		binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst, nil
}

// AppendNumbers appends the elements of an array in wire form. Their number must be count.
func AppendNumbers(dst, array []byte, t request.DataType, count uint64) ([]byte, error) {
	bits, signed := integerType(t)
	n := uint64(0)
	for e := (elements{text: array}); e.next(); n++ {
		if n == count {
			return dst, errCount()
		}
		var err error
		switch {
		case signed:
			dst, err = appendSigned(dst, e.element, bits)
		case bits != 0:
			dst, err = appendUnsigned(dst, e.element, bits)
		case t == configpb.DataType_TYPE_BOOL:
			dst, err = appendBool(dst, e.element)
		default:
			dst, err = appendReal(dst, e.element, t)
		}
		if err != nil {
			return dst, err
		}
	}
	if n != count {
		return dst, errCount()
	}
	return dst, nil
}

func errCount() error {
	return fault.Errorf(fault.Internal, "Shape does not match true shape of 'data' field")
}

func appendBool(dst, element []byte) ([]byte, error) {
	switch element[0] {
	case 't':
		return append(dst, 1), nil
	case 'f':
		return append(dst, 0), nil
	}
	return dst, KindError("boolean")
}

// appendReal appends a number. As in Triton, it first becomes a double, and infinite if it is too
// large for the type.
func appendReal(dst, element []byte, t request.DataType) ([]byte, error) {
	switch element[0] {
	case '"', '{', 't', 'f', 'n':
		return dst, kindErrorAs("number", "double")
	}
	f, err := strconv.ParseFloat(string(element), 64)
	if err != nil { // -NaN, which strconv does not accept
		f = math.NaN()
	}
	if t == configpb.DataType_TYPE_FP32 {
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f))), nil
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), nil
}

// appendSigned appends an integer of a width in bits. One that does not fit is an error.
func appendSigned(dst, element []byte, bits int) ([]byte, error) {
	digits, negative := bytes.CutPrefix(element, []byte("-"))
	u, ok := parseDigits(digits)
	limit := uint64(1) << 63
	if !negative {
		limit--
	}
	if !ok || u > limit {
		return dst, KindError("signed-integer")
	}
	if negative {
		u = -u
	}
	if int64(u)<<(64-bits)>>(64-bits) != int64(u) {
		return dst, errRange(element, "INT", bits)
	}
	return appendWidth(dst, u, bits), nil
}

func appendUnsigned(dst, element []byte, bits int) ([]byte, error) {
	u, ok := parseDigits(element)
	if !ok {
		return dst, KindError("unsigned-integer")
	}
	if u<<(64-bits)>>(64-bits) != u {
		return dst, errRange(element, "UINT", bits)
	}
	return appendWidth(dst, u, bits), nil
}

func errRange(element []byte, kind string, bits int) error {
	return fault.Errorf(fault.InvalidArgument, "%s does not fit %s%d", element, kind, bits)
}

// parseDigits reads an unsigned integer. It returns false for any other text, and beyond 64 bits.
func parseDigits(text []byte) (uint64, bool) {
	if len(text) > 19 {
		u, err := strconv.ParseUint(string(text), 10, 64)
		return u, err == nil
	}
	var u uint64
	for _, c := range text {
		if c -= '0'; c > 9 {
			return 0, false
		}
		u = u*10 + uint64(c)
	}
	return u, len(text) > 0
}

func appendWidth(dst []byte, u uint64, bits int) []byte {
	switch bits {
	case 8:
		return append(dst, byte(u))
	case 16:
		return binary.LittleEndian.AppendUint16(dst, uint16(u))
	case 32:
		return binary.LittleEndian.AppendUint32(dst, uint32(u))
	default:
		return binary.LittleEndian.AppendUint64(dst, u)
	}
}

func integerType(t request.DataType) (bits int, signed bool) {
	switch t {
	case configpb.DataType_TYPE_INT8:
		return 8, true
	case configpb.DataType_TYPE_INT16:
		return 16, true
	case configpb.DataType_TYPE_INT32:
		return 32, true
	case configpb.DataType_TYPE_INT64:
		return 64, true
	case configpb.DataType_TYPE_UINT8:
		return 8, false
	case configpb.DataType_TYPE_UINT16:
		return 16, false
	case configpb.DataType_TYPE_UINT32:
		return 32, false
	case configpb.DataType_TYPE_UINT64:
		return 64, false
	default:
		return 0, false
	}
}

// AppendTensor writes a tensor's elements as a flat JSON array.
func AppendTensor(dst []byte, t *request.Tensor) []byte {
	dst = append(dst, '[')
	for data, first := t.Data, true; len(data) > 0; first = false {
		if !first {
			dst = append(dst, ',')
		}
		dst, data = appendJSONElement(dst, data, t.DataType)
	}
	return append(dst, ']')
}

// appendJSONElement writes the first element of data and returns the rest.
func appendJSONElement(dst, data []byte, t request.DataType) (out, rest []byte) {
	le := binary.LittleEndian
	switch t {
	case configpb.DataType_TYPE_BOOL:
		return strconv.AppendBool(dst, data[0] != 0), data[1:]
	case configpb.DataType_TYPE_INT8:
		return strconv.AppendInt(dst, int64(int8(data[0])), 10), data[1:]
	case configpb.DataType_TYPE_UINT8:
		return strconv.AppendUint(dst, uint64(data[0]), 10), data[1:]
	case configpb.DataType_TYPE_INT16:
		return strconv.AppendInt(dst, int64(int16(le.Uint16(data))), 10), data[2:]
	case configpb.DataType_TYPE_UINT16:
		return strconv.AppendUint(dst, uint64(le.Uint16(data)), 10), data[2:]
	case configpb.DataType_TYPE_INT32:
		return strconv.AppendInt(dst, int64(int32(le.Uint32(data))), 10), data[4:]
	case configpb.DataType_TYPE_UINT32:
		return strconv.AppendUint(dst, uint64(le.Uint32(data)), 10), data[4:]
	case configpb.DataType_TYPE_INT64:
		return strconv.AppendInt(dst, int64(le.Uint64(data)), 10), data[8:]
	case configpb.DataType_TYPE_UINT64:
		return strconv.AppendUint(dst, le.Uint64(data), 10), data[8:]
	case configpb.DataType_TYPE_FP32:
		return appendFloat(dst, float64(math.Float32frombits(le.Uint32(data)))), data[4:]
	case configpb.DataType_TYPE_FP64:
		return appendFloat(dst, math.Float64frombits(le.Uint64(data))), data[8:]
	default: // TYPE_STRING; half floats were refused before
		n := 4 + int(le.Uint32(data))
		return AppendQuoted(dst, data[4:n]), data[n:]
	}
}

// appendFloat writes a number as a double, whose shortest form reads back as the same value. Whole
// numbers keep a decimal point. Values without a JSON number are written as the protocol does.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
	for _, c := range dst[at:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// Shape reads the elements of a flat array of unsigned integers into memory.
func (d *JSON) Shape(memory *Memory[int64], array int32) ([]int64, error) {
	raw := d.Raw(array)
	if bytes.IndexByte(raw[1:], '[') >= 0 {
		return nil, KindError("unsigned-integer")
	}
	dst := memory.Room(len(raw) / 2) // an element takes a digit and a comma, or a bracket
	for e := (elements{text: raw}); e.next(); {
		n, err := strconv.ParseInt(string(e.element), 10, 64)
		if err != nil || n < 0 {
			return nil, KindError("unsigned-integer")
		}
		dst = append(dst, n)
	}
	return memory.Keep(dst), nil
}
