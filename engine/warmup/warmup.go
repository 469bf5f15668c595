// Package warmup makes the samples of a model's model_warmup, and runs them on its sessions.
package warmup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"tuner/engine/fault"
	"tuner/engine/ragged"
	"tuner/engine/request"
	"tuner/engine/session"
	"tuner/engine/state"
	"tuner/engine/statistics"
	"tuner/model/modelconfig/configpb"
)

// Bounds of all warm-up samples of a model together: bytes of data, and requests. A request is a
// row, as in Triton, each time that it is run. A million take minutes even with a small model,
// which is longer than any useful warm-up. A count may be up to four billion.
const (
	maxBytes    = 1 << 30
	maxRequests = 1 << 20
)

// Reader reads a file with at most limit bytes.
type Reader func(file string, limit int64) ([]byte, error)

// Sample is a sample of model_warmup.
type Sample struct {
	name  string
	batch *session.Batch
	rows  int
	count int // number of runs
}

// Joining says what the server makes of the requests of a batch, beside putting them one after the
// other. Both may be nil.
type Joining struct {
	Added  *state.Spec  // inputs that it adds to requests of sequences
	Ragged *ragged.Spec // requests of different shapes
}

// New makes the samples of a model. read reads a file below its warmup folder.
func New(model string, read Reader, sig *request.Signature, j Joining, samples []*configpb.ModelWarmup) ([]Sample, error) {
	var out []Sample
	left, requests := uint64(maxBytes), uint64(0)
	for _, sample := range samples {
		if sample.GetBatchSize() == 0 {
			continue // as in Triton, where the sample then has no requests
		}
		requests += uint64(sample.GetBatchSize()) * max(1, uint64(sample.GetCount()))
		if requests > maxRequests {
			return nil, fault.Errorf(fault.InvalidArgument, "warmup sample '%s' of model '%s': batch_size %d and count %d take the samples over %d requests, which is the most that this engine warms up with",
				sample.GetName(), model, sample.GetBatchSize(), sample.GetCount(), maxRequests)
		}
		w, err := newSample(model, read, sig, j, sample, &left)
		var known *fault.Error
		switch {
		case errors.As(err, &known), errors.Is(err, fs.ErrNotExist):
			return nil, err
		case err != nil:
			return nil, fault.Errorf(fault.InvalidArgument, "warmup sample '%s' of model '%s': %v", sample.GetName(), model, err)
		}
		out = append(out, w)
	}
	return out, nil
}

// Run runs the samples on a session, so that the first real request is not slow. They are
// counted as in Triton: each row is a request. note is called before each run.
func Run(ctx context.Context, s session.Session, samples []Sample, stats *statistics.Statistics, note func(sample string, iteration int)) error {
	for _, w := range samples {
		for i := range w.count {
			note(w.name, int(i)+1)
			if err := ctx.Err(); err != nil {
				return fault.Errorf(fault.Cancelled, "failed to run warmup sample '%s': %v", w.name, context.Cause(ctx))
			}
			begin := time.Now()
			result, err := s.Execute(w.batch)
			if err != nil {
				return failed(fault.CodeOf(err), w.name, w.rows, err.Error())
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

// failed returns the error of a sample. Triton makes a request of each row, all of which fail
// alike, and reports each. Here at most a hundred are reported.
func failed(code fault.Code, sample string, rows int, text string) error {
	return fault.Errorf(code, "failed to run warmup sample '%s': %s", sample, strings.Repeat(text+"; ", min(rows, 100)))
}

// newSample makes a sample, and subtracts its size from left.
func newSample(model string, read Reader, sig *request.Signature, j Joining, sample *configpb.ModelWarmup, left *uint64) (Sample, error) {
	r, b := &request.Request{Model: model}, &session.Batch{}
	unknown := ""
	for _, name := range slices.Sorted(maps.Keys(sample.GetInputs())) {
		isAdded := j.Added != nil && j.Added.Adds(name) // the sample must have what the server adds to requests
		if !isAdded && !slices.ContainsFunc(sig.Inputs, func(spec request.Spec) bool { return spec.Name == name }) {
			unknown = name
			continue // as in Triton, which checks the other inputs first
		}
		in := sample.GetInputs()[name]
		t := request.Tensor{Name: name, DataType: in.GetDataType(), Shape: slices.Clone(in.GetDims())}
		rows := 1
		if sig.MaxBatch > 0 {
			rows = int(sample.GetBatchSize())
			t.Shape = append([]int64{int64(rows)}, t.Shape...)
		}
		var err error
		if t.Data, err = makeData(in, t.Shape, rows, *left, read); err != nil {
			return Sample{}, err
		}
		*left -= uint64(len(t.Data))
		if isAdded {
			b.Inputs = append(b.Inputs, session.BatchInput{Name: t.Name, DataType: t.DataType, Shape: t.Shape, Parts: [][]byte{t.Data}})
			continue
		}
		r.Inputs = append(r.Inputs, t)
	}
	p, err := sig.Prepare(r)
	if err != nil {
		return Sample{}, err
	}
	if unknown != "" {
		return Sample{}, failed(fault.InvalidArgument, sample.GetName(), p.Rows, fmt.Sprintf("Failed to retrieve the ONNX input tensor info from '%s'.", unknown))
	}
	for _, in := range p.Inputs {
		b.Inputs = append(b.Inputs, session.BatchInput{Name: in.Name, DataType: in.DataType, Shape: in.Shape, Parts: [][]byte{in.Data}})
	}
	if j.Ragged != nil {
		if err := join(b, j.Ragged, p.Rows, sig.MaxBatch > 0, left); err != nil {
			return Sample{}, err
		}
	}
	for _, out := range sig.Outputs {
		b.Outputs = append(b.Outputs, out.Name)
	}
	return Sample{sample.GetName(), b, p.Rows, max(1, int(sample.GetCount()))}, nil
}

// join joins the rows of a sample, each of which is a request, and subtracts the size of what is added from left.
func join(b *session.Batch, spec *ragged.Spec, rows int, batched bool, left *uint64) error {
	shapes := make(map[string][]int64, len(b.Inputs))
	for _, in := range b.Inputs {
		shapes[in.Name] = slices.Clone(in.Shape)
		if batched {
			shapes[in.Name][0] = 1
		}
	}
	of := func(_ int, input string) []int64 { return shapes[input] }
	size := uint64(spec.Bytes(rows, of))
	if size > *left {
		return fmt.Errorf("batch_input takes the samples over %d bytes", maxBytes)
	}
	*left -= size
	spec.Join(b, rows, of)
	return nil
}
