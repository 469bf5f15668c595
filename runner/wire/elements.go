package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"tuner/engine/api"
)

// sizes are the bytes per element. BYTES is missing: its elements have a length in front.
var sizes = map[string]int{
	"BOOL": 1, "INT8": 1, "UINT8": 1, "INT16": 2, "UINT16": 2, "FP16": 2, "BF16": 2, "INT32": 4, "UINT32": 4, "FP32": 4,
	"INT64": 8, "UINT64": 8, "FP64": 8,
}

// elements cuts a tensor's data into elements.
func elements(t api.Tensor) ([][]byte, error) {
	var out [][]byte
	size, known := sizes[t.Datatype]
	if !known && t.Datatype != "BYTES" {
		return nil, fmt.Errorf("tensor %q has the unknown datatype %q", t.Name, t.Datatype)
	}
	for rest := t.Data; len(rest) > 0; {
		n := size
		if !known {
			if len(rest) < 4 {
				return nil, fmt.Errorf("tensor %q ends inside the length of element %d", t.Name, len(out))
			}
			n, rest = int(binary.LittleEndian.Uint32(rest)), rest[4:]
		}
		if n > len(rest) {
			return nil, fmt.Errorf("tensor %q ends inside element %d: it has %d bytes of %d", t.Name, len(out), len(rest), n)
		}
		out, rest = append(out, rest[:n]), rest[n:]
	}
	return out, nil
}

// text returns an element as people and JSON write it. Strings are quoted. 16-bit floats are their
// bits.
func text(datatype string, e []byte) string {
	little := binary.LittleEndian
	switch datatype {
	case "BOOL":
		return strconv.FormatBool(e[0] != 0)
	case "INT8":
		return strconv.Itoa(int(int8(e[0])))
	case "UINT8":
		return strconv.Itoa(int(e[0]))
	case "INT16":
		return strconv.Itoa(int(int16(little.Uint16(e))))
	case "UINT16":
		return strconv.Itoa(int(little.Uint16(e)))
	case "INT32":
		return strconv.Itoa(int(int32(little.Uint32(e))))
	case "UINT32":
		return strconv.FormatUint(uint64(little.Uint32(e)), 10)
	case "INT64":
		return strconv.FormatInt(int64(little.Uint64(e)), 10)
	case "UINT64":
		return strconv.FormatUint(little.Uint64(e), 10)
	case "FP32":
		return strconv.FormatFloat(float64(math.Float32frombits(little.Uint32(e))), 'g', -1, 32)
	case "FP64":
		return strconv.FormatFloat(math.Float64frombits(little.Uint64(e)), 'g', -1, 64)
	case "FP16", "BF16":
		return fmt.Sprintf("bits %#04x", little.Uint16(e))
	default:
		return fmt.Sprintf("%q", excerpt(e))
	}
}

// jsonData writes the elements of an input as a flat list. An *InputError names a value that JSON
// cannot carry.
func jsonData(t api.Tensor) (json.RawMessage, error) {
	if t.Datatype == "FP16" || t.Datatype == "BF16" {
		return nil, &InputError{fmt.Sprintf("input %q is %s, which has no form in JSON: send it in binary form", t.Name, t.Datatype)}
	}
	list, err := elements(t)
	if err != nil {
		return nil, &InputError{err.Error()}
	}
	out := []byte{'['}
	for i, e := range list {
		if i > 0 {
			out = append(out, ',')
		}
		if t.Datatype != "BYTES" {
			number := text(t.Datatype, e)
			if !json.Valid([]byte(number)) { // such as NaN, +Inf, -Inf
				return nil, &InputError{fmt.Sprintf("input %q has %s at element %d, which JSON cannot carry: send it in binary form", t.Name, number, i)}
			}
			out = append(out, number...)
			continue
		}
		if !utf8.Valid(e) {
			return nil, &InputError{fmt.Sprintf("input %q has bytes at element %d that are not UTF-8 text, which JSON cannot carry: send it in binary form", t.Name, i)}
		}
		quoted, err := json.Marshal(string(e))
		if err != nil {
			return nil, fmt.Errorf("cannot encode input %q: %w", t.Name, err)
		}
		out = append(out, quoted...)
	}
	return append(out, ']'), nil
}

// parseData converts an output's list, which may be nested, to wire form.
func parseData(t api.Tensor, data json.RawMessage) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var out []byte
	for {
		token, err := decoder.Token()
		if err != nil {
			if len(data) > 0 && decoder.InputOffset() == int64(len(data)) {
				return out, nil
			}
			return nil, fmt.Errorf("cannot read the data of output %q: %w", t.Name, err)
		}
		if bracket, found := token.(json.Delim); found && bracket != '{' {
			continue
		}
		if out, err = appendElement(out, t.Datatype, token); err != nil {
			return nil, fmt.Errorf("cannot read the data of output %q: %w", t.Name, err)
		}
	}
}

// appendElement appends a JSON value in wire form.
func appendElement(out []byte, datatype string, token json.Token) ([]byte, error) {
	little, bits := binary.LittleEndian, sizes[datatype]*8
	switch value := token.(type) {
	case bool:
		if datatype == "BOOL" {
			return append(out, map[bool]byte{true: 1}[value]), nil
		}
	case string:
		if datatype == "BYTES" {
			return append(little.AppendUint32(out, uint32(len(value))), value...), nil
		}
	case json.Number:
		var raw uint64
		var err error
		switch datatype {
		case "INT8", "INT16", "INT32", "INT64":
			var n int64
			n, err = strconv.ParseInt(value.String(), 10, bits)
			raw = uint64(n)
		case "UINT8", "UINT16", "UINT32", "UINT64":
			raw, err = strconv.ParseUint(value.String(), 10, bits)
		case "FP32":
			var f float64
			f, err = strconv.ParseFloat(value.String(), bits)
			raw = uint64(math.Float32bits(float32(f)))
		case "FP64":
			var f float64
			f, err = strconv.ParseFloat(value.String(), bits)
			raw = math.Float64bits(f)
		default:
			err = errors.New("it is a number")
		}
		if err != nil {
			return nil, fmt.Errorf("%s is not a value of %s: %w", value, datatype, err)
		}
		return append(out, little.AppendUint64(nil, raw)[:bits/8]...), nil
	}
	return nil, fmt.Errorf("%v is not a value of %s", token, datatype)
}
