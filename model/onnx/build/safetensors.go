package build

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"tuner/model/onnx"
)

// safetensors is a file of that format: the length of the header (8 bytes, little-endian), the
// header as JSON, then the data. The header has the offsets of tensors in the data.
type safetensors struct {
	tensors map[string]storedTensor
	data    []byte
}

type storedTensor struct {
	Type    string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"` // begin and end in the data
}

// parseSafetensors checks the header against the data, so that reading a tensor cannot fail later.
func parseSafetensors(file []byte) (*safetensors, error) {
	if len(file) < 8 {
		return nil, errors.New("cannot read the safetensors file: it is shorter than its header")
	}
	size := binary.LittleEndian.Uint64(file)
	if size > uint64(len(file)-8) {
		return nil, fmt.Errorf("cannot read the safetensors file: its header of %d bytes does not fit into %d (truncated?)", size, len(file))
	}
	header, data := file[8:8+size], file[8+size:]
	entries := map[string]json.RawMessage{}
	if err := json.Unmarshal(header, &entries); err != nil {
		return nil, fmt.Errorf("cannot read the safetensors header: %v", err)
	}
	delete(entries, "__metadata__")
	s := &safetensors{tensors: make(map[string]storedTensor, len(entries)), data: data}
	for name, entry := range entries {
		t, err := parseStored(entry, int64(len(data)))
		if err != nil {
			return nil, fmt.Errorf("cannot read the tensor %q of the safetensors file: %v", name, err)
		}
		s.tensors[name] = t
	}
	return s, nil
}

func parseStored(entry json.RawMessage, size int64) (storedTensor, error) {
	var t storedTensor
	decoder := json.NewDecoder(bytes.NewReader(entry))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&t); err != nil {
		return t, err
	}
	begin, end := t.Offsets[0], t.Offsets[1]
	if begin < 0 || end < begin || end > size {
		return t, fmt.Errorf("its data [%d, %d) lies outside the file's %d bytes (truncated?)", begin, end, size)
	}
	if t.Type != "F32" {
		return t, nil // the file may have other types, but only floats can be read
	}
	if n, ok := onnx.Elements(t.Shape); !ok || n > math.MaxInt64/4 || 4*n != end-begin {
		return t, fmt.Errorf("F32%v does not fit into %d bytes", t.Shape, end-begin)
	}
	return t, nil
}

// floats returns a tensor of 32-bit floats with exactly that shape.
func (s *safetensors) floats(name string, shape ...int64) ([]float32, error) {
	t, ok := s.tensors[name]
	if !ok {
		return nil, fmt.Errorf("the weights have no tensor %q", name)
	}
	if t.Type != "F32" || !slices.Equal(t.Shape, shape) {
		return nil, fmt.Errorf("the weights' tensor %q is %s%v, expected F32%v", name, t.Type, t.Shape, shape)
	}
	raw := s.data[t.Offsets[0]:t.Offsets[1]]
	values := make([]float32, len(raw)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return values, nil
}
