package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/modelconfig"
	"tuner/modelconfig/configpb"
)

// maxWarmupBytes bounds the input that a warm-up sample may ask for.
const maxWarmupBytes = 1 << 30

// warmUp runs the samples of model_warmup on each session, so that the first real request is not the slow one.
func warmUp(src *source, c *modelconfig.Config, sessions []Session) error {
	sig := newSignature(c)
	for _, sample := range c.GetModelWarmup() {
		batch, err := newWarmup(src, sig, sample)
		if err != nil {
			return Errorf(InvalidArgument, "warmup sample '%s' of model '%s': %v", sample.GetName(), src.name, err)
		}
		for _, s := range sessions {
			for range max(1, sample.GetCount()) {
				result, err := s.Execute(batch)
				if err != nil {
					return Errorf(CodeOf(err), "failed to run warmup sample '%s': %v", sample.GetName(), err)
				}
				if result.Free != nil {
					result.Free()
				}
			}
		}
	}
	return nil
}

// newWarmup makes the batch of a sample.
func newWarmup(src *source, sig *signature, sample *configpb.ModelWarmup) (*Batch, error) {
	r := &Request{Model: src.name}
	for name, in := range sample.GetInputs() {
		t := Tensor{Name: name, DataType: in.GetDataType(), Shape: slices.Clone(in.GetDims())}
		rows := max(1, int64(sample.GetBatchSize()))
		if sig.maxBatch > 0 {
			t.Shape = append([]int64{rows}, t.Shape...)
		}
		var err error
		if t.Data, err = warmupData(src, in, t.Shape); err != nil {
			return nil, fmt.Errorf("input '%s': %w", name, err)
		}
		r.Inputs = append(r.Inputs, t)
	}
	p, err := sig.prepare(r)
	if err != nil {
		return nil, err
	}
	b := &Batch{}
	for _, in := range p.inputs {
		b.Inputs = append(b.Inputs, BatchInput{in.Name, in.DataType, in.Shape, [][]byte{in.Data}})
	}
	for _, out := range sig.outputs {
		b.Outputs = append(b.Outputs, out.name)
	}
	return b, nil
}

// warmupData is the data of one input for all rows: zeros, random bytes, or a file below the model's warmup folder.
func warmupData(src *source, in *configpb.ModelWarmup_Input, shape []int64) ([]byte, error) {
	elements, ok := product(shape)
	size, ok := multiply(elements, uint64(max(4, modelconfig.ByteSize(in.GetDataType()))), ok)
	if !ok || size > maxWarmupBytes {
		return nil, fmt.Errorf("shape %s takes more than %d bytes", shapeText(shape), maxWarmupBytes)
	}
	if file := in.GetInputDataFile(); file != "" {
		return warmupFile(src, file)
	}
	width := modelconfig.ByteSize(in.GetDataType())
	if width == 0 { // strings: all empty
		return make([]byte, 4*elements), nil
	}
	data := make([]byte, elements*uint64(width))
	if in.GetRandomData() {
		fillRandom(data, in.GetDataType())
	}
	return data, nil
}

// fillRandom writes the same numbers each time: floats in [1,2), any integers, booleans.
func fillRandom(data []byte, t DataType) {
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

// fillFloats makes numbers in [1,2) from random mantissas: their exponent is the bias of the format.
func fillFloats(data []byte, t DataType, random *rand.Rand) {
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

func warmupFile(src *source, file string) ([]byte, error) {
	if !filepath.IsLocal(file) {
		return nil, fmt.Errorf("input_data_file '%s' leaves the model's warmup folder", file)
	}
	path := filepath.Join(src.dir, "warmup", file)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read input_data_file: %w", err)
	case info.Size() > maxWarmupBytes:
		return nil, errors.New("input_data_file is too large: " + strings.TrimSpace(file))
	}
	if err := src.contain(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
