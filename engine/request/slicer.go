package request

import (
	"encoding/binary"
	"math"

	"tuner/engine/fault"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Slicer cuts an output of a batch into the parts of its requests.
type Slicer struct {
	whole    *Tensor
	rest     []byte
	rowBytes int // 0: strings, whose sizes differ
	perRow   uint64
	batched  bool
}

// NewSlicer begins with the first row. rows is their number.
func NewSlicer(t *Tensor, rows int, batched bool) (Slicer, error) {
	s := Slicer{whole: t, rest: t.Data, batched: batched}
	if !batched {
		return s, nil
	}
	if len(t.Shape) == 0 || t.Shape[0] != int64(rows) {
		return s, fault.Errorf(fault.Internal, "output '%s' has shape %s, expected a first dimension of %d, the batch size", t.Name, ShapeText(t.Shape), rows)
	}
	perRow, ok := Product(t.Shape[1:])
	if !ok || perRow > math.MaxInt32 {
		return s, fault.Errorf(fault.Internal, "output '%s' has too many elements: shape %s", t.Name, ShapeText(t.Shape))
	}
	s.perRow = perRow
	s.rowBytes = int(perRow) * modelconfig.ByteSize(t.DataType)
	return s, nil
}

// Next returns the data of the following rows.
func (s *Slicer) Next(rows int) ([]byte, error) {
	if !s.batched {
		return s.rest, nil
	}
	n := rows * s.rowBytes
	if s.whole.DataType == configpb.DataType_TYPE_STRING {
		n = stringsLength(s.rest, uint64(rows)*s.perRow)
	}
	if n > len(s.rest) {
		return nil, fault.Errorf(fault.Internal, "output '%s' is shorter than its shape %s says", s.whole.Name, ShapeText(s.whole.Shape))
	}
	data := s.rest[:n:n]
	s.rest = s.rest[n:]
	return data, nil
}

// stringsLength returns the number of bytes of count length-prefixed strings. It is larger than
// len(data) if they are incomplete.
func stringsLength(data []byte, count uint64) int {
	n := 0
	for range count {
		if len(data)-n < 4 {
			return len(data) + 1
		}
		n += 4 + int(binary.LittleEndian.Uint32(data[n:]))
		if n > len(data) {
			return len(data) + 1
		}
	}
	return n
}

// StringBytes returns the memory that backends take for string inputs: a C++ object for each, and
// the characters. For other types they copy less than the input itself, into memory that they keep.
func StringBytes(inputs []Tensor) int {
	const object = 32
	n := 0
	for i := range inputs {
		if in := &inputs[i]; in.DataType == configpb.DataType_TYPE_STRING {
			count, _ := Product(in.Shape) // checked against the data before
			n += object*int(count) + len(in.Data)
		}
	}
	return n
}

// FullShape returns dims, with the batch dimension in front if the model batches.
func FullShape(dims []int64, batched bool) []int64 {
	shape := make([]int64, 0, len(dims)+1)
	if batched {
		shape = append(shape, -1)
	}
	return append(shape, dims...)
}

// DataBytes returns the bytes of the data of tensors.
func DataBytes(tensors []Tensor) int {
	n := 0
	for i := range tensors {
		n += len(tensors[i].Data)
	}
	return n
}
