package output

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"tuner/engine/api"
)

// inputsJSON returns the first batch element's inputs in the form of perf_analyzer's export: a
// value for one element, a flat list for several.
func inputsJSON(inputs []api.Tensor, batch int) []byte {
	text := []byte{'{'}
	for i, t := range inputs {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := json.Marshal(t.Name)
		if err != nil {
			panic(err) // JSON can represent every string
		}
		text = append(append(text, name...), ':')
		value, err := json.Marshal(firstElement(t, max(1, batch)))
		if err != nil { // infinity or NaN
			value = []byte("null")
		}
		text = append(text, value...)
	}
	return append(text, '}')
}

// firstElement returns the values of a tensor's first batch element. It returns nil for 16-bit
// floats, which perf_analyzer leaves out too, and for data that does not match its type.
func firstElement(t api.Tensor, batch int) any {
	if t.Datatype == "BYTES" {
		list := texts(t.Data)
		return oneOrList(list[:len(list)/batch])
	}
	data := t.Data[:len(t.Data)/batch]
	switch t.Datatype {
	case "BOOL":
		return decode[bool](data)
	case "INT8":
		return decode[int8](data)
	case "INT16":
		return decode[int16](data)
	case "INT32":
		return decode[int32](data)
	case "INT64":
		return decode[int64](data)
	case "UINT8":
		wide := make([]uint16, len(data)) // encoding/json would write bytes as text
		for i, b := range data {
			wide[i] = uint16(b)
		}
		return oneOrList(wide)
	case "UINT16":
		return decode[uint16](data)
	case "UINT32":
		return decode[uint32](data)
	case "UINT64":
		return decode[uint64](data)
	case "FP32":
		return decode[float32](data)
	case "FP64":
		return decode[float64](data)
	}
	return nil
}

// decode reads elements of fixed size.
func decode[T any](data []byte) any {
	var element T
	values := make([]T, len(data)/binary.Size(element))
	if err := binary.Read(bytes.NewReader(data), binary.LittleEndian, values); err != nil {
		return nil
	}
	return oneOrList(values)
}

// oneOrList returns the only element of a list, "" for an empty list, else the list.
func oneOrList[T any](values []T) any {
	switch len(values) {
	case 0:
		return ""
	case 1:
		return values[0]
	}
	return values
}

// texts cuts BYTES data into its elements, each with its length in front.
func texts(data []byte) []string {
	var list []string
	for len(data) >= 4 {
		end := 4 + int(binary.LittleEndian.Uint32(data))
		if end > len(data) {
			break
		}
		list, data = append(list, string(data[4:end])), data[end:]
	}
	return list
}
