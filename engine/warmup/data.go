package warmup

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"tuner/engine/request"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// makeData returns the data of one input for all rows: zeros, random bytes, or a file below the model's
// warmup folder. limit is the number of bytes that are left.
func makeData(in *configpb.ModelWarmup_Input, shape []int64, rows int, limit uint64, read Reader) ([]byte, error) {
	if file := in.GetInputDataFile(); file != "" {
		if !filepath.IsLocal(file) {
			return nil, fmt.Errorf("input_data_file '%s' leaves the model's warmup folder", file)
		}
		return readRows(in, shape, rows, limit, read)
	}
	width := modelconfig.ByteSize(in.GetDataType())
	if width == 0 {
		width = 4 // strings, all empty
	}
	elements, ok := request.Product(shape)
	size, ok := request.Multiply(elements, uint64(width), ok)
	if !ok || size > limit {
		return nil, fmt.Errorf("shape %s takes the samples over %d bytes", request.ShapeText(shape), maxBytes)
	}
	data := make([]byte, size)
	if in.GetRandomData() && in.GetDataType() != configpb.DataType_TYPE_STRING {
		fillRandom(data, in.GetDataType())
	}
	return data, nil
}

// readRows returns the data of a file, once for each row: as in Triton, a file has one row. What lies
// beyond it is not used.
func readRows(in *configpb.ModelWarmup_Input, shape []int64, rows int, limit uint64, read Reader) ([]byte, error) {
	file := in.GetInputDataFile()
	data, err := read(file, int64(limit))
	if err != nil {
		return nil, err
	}
	if width := modelconfig.ByteSize(in.GetDataType()); width > 0 {
		size, ok := request.Product(in.GetDims())
		if size, ok = request.Multiply(size, uint64(width), ok); !ok || size > uint64(len(data)) {
			return nil, fmt.Errorf("warmup setting expects %d bytes, but the data provided from %s only has %d bytes", size, file, len(data))
		}
		data = data[:size]
	}
	if uint64(len(data))*uint64(rows) > limit {
		return nil, fmt.Errorf("shape %s takes the samples over %d bytes", request.ShapeText(shape), maxBytes)
	}
	return bytes.Repeat(data, rows), nil
}

// fillRandom always writes the same numbers: floats in [1,2), any integers, booleans.
func fillRandom(data []byte, t configpb.DataType) {
	random := rand.New(rand.NewPCG(1, 2))
	switch t {
	case configpb.DataType_TYPE_FP32, configpb.DataType_TYPE_FP64, configpb.DataType_TYPE_FP16, configpb.DataType_TYPE_BF16:
		fillFloats(data, t, random)
	default:
		for i := range data {
			data[i] = byte(random.Uint32())
			if t == configpb.DataType_TYPE_BOOL {
				data[i] &= 1
			}
		}
	}
}

// fillFloats makes numbers in [1,2) from random mantissas. Their exponent is the bias of the
// format.
func fillFloats(data []byte, t configpb.DataType, random *rand.Rand) {
	switch t {
	case configpb.DataType_TYPE_FP64:
		for i := 0; i < len(data); i += 8 {
			binary.LittleEndian.PutUint64(data[i:], 1023<<52|random.Uint64()>>12)
		}
	case configpb.DataType_TYPE_FP32:
		for i := 0; i < len(data); i += 4 {
			binary.LittleEndian.PutUint32(data[i:], 127<<23|random.Uint32()>>9)
		}
	case configpb.DataType_TYPE_FP16:
		for i := 0; i < len(data); i += 2 {
			binary.LittleEndian.PutUint16(data[i:], 15<<10|uint16(random.Uint32())>>6)
		}
	default: // BF16
		for i := 0; i < len(data); i += 2 {
			binary.LittleEndian.PutUint16(data[i:], 127<<7|uint16(random.Uint32())>>9)
		}
	}
}
