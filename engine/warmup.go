package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/state"
	"tuner/engine/statistics"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Bounds of all warm-up samples of a model together: bytes of data, and requests. A request is a
// row, as in Triton, each time that it is run. A million take minutes even with a small model,
// which is longer than any useful warm-up. A count may be up to four billion.
const (
	maxWarmupBytes    = 1 << 30
	maxWarmupRequests = 1 << 20
)

// warmup is a sample of model_warmup.
type warmup struct {
	name  string
	batch *Batch
	rows  int
	count int // number of runs
}

// newWarmups makes the samples of a model.
func newWarmups(src *source, sig *request.Signature, added *state.Spec, samples []*configpb.ModelWarmup) ([]warmup, error) {
	var out []warmup
	left, requests := uint64(maxWarmupBytes), uint64(0)
	for _, sample := range samples {
		if sample.GetBatchSize() == 0 {
			continue // as in Triton, where the sample then has no requests
		}
		requests += uint64(sample.GetBatchSize()) * max(1, uint64(sample.GetCount()))
		if requests > maxWarmupRequests {
			return nil, fault.Errorf(fault.InvalidArgument, "warmup sample '%s' of model '%s': batch_size %d and count %d take the samples over %d requests, which is the most that this engine warms up with",
				sample.GetName(), src.Name, sample.GetBatchSize(), sample.GetCount(), maxWarmupRequests)
		}
		w, err := newWarmup(src, sig, added, sample, &left)
		var known *fault.Error
		switch {
		case errors.As(err, &known), errors.Is(err, fs.ErrNotExist):
			return nil, err
		case err != nil:
			return nil, fault.Errorf(fault.InvalidArgument, "warmup sample '%s' of model '%s': %v", sample.GetName(), src.Name, err)
		}
		out = append(out, w)
	}
	return out, nil
}

// warmUp runs the samples on a session, so that the first real request is not slow. They are
// counted as in Triton: each row is a request.
func warmUp(ctx context.Context, s Session, samples []warmup, stats *statistics.Statistics) error {
	for _, w := range samples {
		for range w.count {
			if err := ctx.Err(); err != nil {
				return fault.Errorf(fault.Cancelled, "failed to run warmup sample '%s': %v", w.name, context.Cause(ctx))
			}
			begin := time.Now()
			result, err := s.Execute(w.batch)
			if err != nil {
				return failedWarmup(fault.CodeOf(err), w.name, w.rows, err.Error())
			}
			if result.Free != nil {
				result.Free()
			}
			end := time.Now()
			d := statistics.Span{Input: result.Gathered.Sub(begin), Infer: result.Computed.Sub(result.Gathered), Output: end.Sub(result.Computed)}
			stats.Executed(w.rows, d)
			for range w.rows {
				stats.Succeeded(1, end.Sub(begin), 0, d, end)
			}
		}
	}
	return nil
}

// failedWarmup returns the error of a sample. Triton makes a request of each row, all of which fail
// alike, and reports each. Here at most a hundred are reported.
func failedWarmup(code fault.Code, sample string, rows int, text string) error {
	return fault.Errorf(code, "failed to run warmup sample '%s': %s", sample, strings.Repeat(text+"; ", min(rows, 100)))
}

// newWarmup makes a sample, and subtracts its size from left.
func newWarmup(src *source, sig *request.Signature, added *state.Spec, sample *configpb.ModelWarmup, left *uint64) (warmup, error) {
	r, b := &Request{Model: src.Name}, &Batch{}
	unknown := ""
	for _, name := range slices.Sorted(maps.Keys(sample.GetInputs())) {
		isAdded := added != nil && added.Adds(name) // the sample must have what the server adds to requests
		if !isAdded && !slices.ContainsFunc(sig.Inputs, func(spec request.Spec) bool { return spec.Name == name }) {
			unknown = name
			continue // as in Triton, which checks the other inputs first
		}
		in := sample.GetInputs()[name]
		t := Tensor{Name: name, DataType: in.GetDataType(), Shape: slices.Clone(in.GetDims())}
		if sig.MaxBatch > 0 {
			t.Shape = append([]int64{int64(sample.GetBatchSize())}, t.Shape...)
		}
		var err error
		if t.Data, err = warmupData(src, in, t.Shape, *left); err != nil {
			return warmup{}, err
		}
		*left -= uint64(len(t.Data))
		if isAdded {
			b.Inputs = append(b.Inputs, BatchInput{t.Name, t.DataType, t.Shape, [][]byte{t.Data}})
			continue
		}
		r.Inputs = append(r.Inputs, t)
	}
	p, err := sig.Prepare(r)
	if err != nil {
		return warmup{}, err
	}
	if unknown != "" {
		return warmup{}, failedWarmup(fault.InvalidArgument, sample.GetName(), p.Rows, fmt.Sprintf("Failed to retrieve the ONNX input tensor info from '%s'.", unknown))
	}
	for _, in := range p.Inputs {
		b.Inputs = append(b.Inputs, BatchInput{in.Name, in.DataType, in.Shape, [][]byte{in.Data}})
	}
	for _, out := range sig.Outputs {
		b.Outputs = append(b.Outputs, out.Name)
	}
	return warmup{sample.GetName(), b, p.Rows, max(1, int(sample.GetCount()))}, nil
}

// warmupData returns the data of one input for all rows: zeros, random bytes, or a file below the
// model's warmup folder.
func warmupData(src *source, in *configpb.ModelWarmup_Input, shape []int64, limit uint64) ([]byte, error) {
	if file := in.GetInputDataFile(); file != "" {
		return warmupFile(src, file, int64(limit))
	}
	width := modelconfig.ByteSize(in.GetDataType())
	if width == 0 {
		width = 4 // strings, all empty
	}
	elements, ok := request.Product(shape)
	size, ok := request.Multiply(elements, uint64(width), ok)
	if !ok || size > limit {
		return nil, fmt.Errorf("shape %s takes the samples over %d bytes", request.ShapeText(shape), maxWarmupBytes)
	}
	data := make([]byte, size)
	if in.GetRandomData() && in.GetDataType() != configpb.DataType_TYPE_STRING {
		fillRandom(data, in.GetDataType())
	}
	return data, nil
}

// fillRandom always writes the same numbers: floats in [1,2), any integers, booleans.
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

// fillFloats makes numbers in [1,2) from random mantissas. Their exponent is the bias of the
// format.
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

func warmupFile(src *source, file string, limit int64) ([]byte, error) {
	if !filepath.IsLocal(file) {
		return nil, fmt.Errorf("input_data_file '%s' leaves the model's warmup folder", file)
	}
	return src.ReadFile(filepath.Join(src.Dir, "warmup", file), limit)
}
