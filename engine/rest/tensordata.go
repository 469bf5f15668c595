package rest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"tuner/engine"
	"tuner/modelconfig"
	"tuner/modelconfig/configpb"
)

// appendData decodes the JSON array raw, flat or nested, and appends its elements in wire form to dst. It returns how many
// there were.
func appendData(dst, raw []byte, t engine.DataType) ([]byte, int, error) {
	s := &scanner{data: raw}
	count := 0
	var element func() error
	element = func() error {
		if s.peek() == '[' {
			return s.array(element)
		}
		var err error
		dst, err = appendElement(dst, s, t)
		count++
		return err
	}
	err := s.array(element)
	return dst, count, err
}

// appendElement decodes one element.
func appendElement(dst []byte, s *scanner, t engine.DataType) ([]byte, error) {
	if t == configpb.DataType_TYPE_STRING {
		return appendText(dst, s)
	}
	if c := s.peek(); c == '"' || c == '{' {
		return dst, s.expect(kindOf(t))
	}
	w, err := s.word()
	if err != nil {
		return dst, err
	}
	switch t {
	case configpb.DataType_TYPE_BOOL:
		switch string(w) {
		case "true":
			return append(dst, 1), nil
		case "false":
			return append(dst, 0), nil
		}
		return dst, &kindError{"boolean"}
	case configpb.DataType_TYPE_FP32:
		f, err := parseFloat(w, 32)
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f))), err
	case configpb.DataType_TYPE_FP64:
		f, err := parseFloat(w, 64)
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), err
	}
	return appendInteger(dst, w, t)
}

func appendText(dst []byte, s *scanner) ([]byte, error) {
	raw, escaped, err := s.rawText()
	if err != nil {
		return dst, err
	}
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if escaped {
		if dst, err = unescape(dst, raw); err != nil {
			return dst, err
		}
	} else {
		dst = append(dst, raw...)
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst, nil
}

// parseFloat reads a number, NaN or Infinity; too large a number for the type becomes infinite.
func parseFloat(w []byte, bits int) (float64, error) {
	f, err := strconv.ParseFloat(string(w), bits)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, &kindError{"number"}
	}
	return f, nil
}

// appendInteger appends an integer of the type's width; a number that doesn't fit is an error.
func appendInteger(dst, w []byte, t engine.DataType) ([]byte, error) {
	bits, signed := integerType(t)
	if bits == 0 {
		return dst, fmt.Errorf("unsupported data type %v", t)
	}
	var u uint64
	var err error
	if signed {
		var n int64
		n, err = strconv.ParseInt(string(w), 10, bits)
		u = uint64(n)
	} else {
		u, err = strconv.ParseUint(string(w), 10, bits)
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return dst, fmt.Errorf("%s does not fit %s", w, modelconfig.WireName(t))
	case err != nil:
		return dst, &kindError{kindOf(t)}
	}
	switch bits {
	case 8:
		return append(dst, byte(u)), nil
	case 16:
		return binary.LittleEndian.AppendUint16(dst, uint16(u)), nil
	case 32:
		return binary.LittleEndian.AppendUint32(dst, uint32(u)), nil
	default:
		return binary.LittleEndian.AppendUint64(dst, u), nil
	}
}

// kindOf names what JSON value an element of the type is.
func kindOf(t engine.DataType) string {
	bits, signed := integerType(t)
	switch {
	case t == configpb.DataType_TYPE_BOOL:
		return "boolean"
	case bits == 0:
		return "number"
	case signed:
		return "signed-integer"
	}
	return "unsigned-integer"
}

func integerType(t engine.DataType) (bits int, signed bool) {
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

// appendJSON writes a tensor's elements as a flat JSON array.
func appendJSON(dst []byte, t *engine.Tensor) []byte {
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
func appendJSONElement(dst, data []byte, t engine.DataType) (out, rest []byte) {
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
	default: // TYPE_STRING; half floats are refused before
		n := 4 + int(le.Uint32(data))
		return appendQuoted(dst, data[4:n]), data[n:]
	}
}

// appendFloat writes a number as a double, whose shortest form reads back as the same value; whole numbers keep a decimal
// point, and what JSON has no number for is written as the protocol does.
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

// appendQuoted writes a JSON string. Bytes that are not valid UTF-8 are passed on as they are.
func appendQuoted(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
