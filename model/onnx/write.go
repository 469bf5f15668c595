package onnx

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"google.golang.org/protobuf/proto"

	"tuner/internal/durable"
	"tuner/internal/problems"
	"tuner/model/onnx/onnxpb"
)

// MaxInline is the largest file, in bytes, that Write makes without external data: protobuf's limit
// of 2 GiB minus a margin.
const MaxInline = 2<<30 - 64<<20

const (
	externalAlign = 4096 // allows a runtime to map a tensor into memory
	externalMin   = 1024 // smaller tensors stay in the file
)

// Write writes the model to path atomically: a reader sees the old or the new file.
//
// Tensors that m has outside go into path + ".data", which is written first. So do all tensors of a
// kilobyte and more if the file would exceed maxInline bytes (0: MaxInline). Smaller tensors are
// always inside.
func (m *Model) Write(path string, maxInline int64) error {
	if maxInline <= 0 {
		maxInline = MaxInline
	}
	if err := m.write(path, maxInline); err != nil {
		return fmt.Errorf("cannot write the model %q: %w", path, err)
	}
	return nil
}

func (m *Model) write(path string, maxInline int64) error {
	p := m.proto
	tooLarge := int64(proto.Size(p)) > maxInline
	if tooLarge || len(m.external) > 0 {
		p = proto.Clone(p).(*onnxpb.ModelProto)
		outside, err := m.chooseExternal(p, tooLarge)
		if err != nil {
			return err
		}
		if len(outside) > 0 {
			if err := m.externalise(outside, path+".data"); err != nil {
				return err
			}
		}
	}
	data, err := marshal(p)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// chooseExternal decides for each tensor of p, a clone of m's content, whether it is stored inside
// or outside. It returns the tensors for the external file. It loads small ones that were outside
// into p, since ONNX Runtime requires shapes and axes inside the model.
func (m *Model) chooseExternal(p *onnxpb.ModelProto, tooLarge bool) ([]*onnxpb.TensorProto, error) {
	var outside []*onnxpb.TensorProto
	var wrong problems.List
	eachTensor(p, func(t *onnxpb.TensorProto) {
		size, err := tensorSize(t)
		switch {
		case err == nil && size >= externalMin && (tooLarge || isExternal(t)):
			outside = append(outside, t)
		case isExternal(t):
			data, err := m.Data(t)
			wrong.Add(err)
			t.RawData, t.DataLocation, t.ExternalData = data, nil, nil
		}
	})
	return outside, wrong.Err()
}

// externalise moves tensors of a clone of m's content into one file.
func (m *Model) externalise(tensors []*onnxpb.TensorProto, path string) error {
	return durable.WriteFile(path, func(w io.Writer) error {
		out := &externalWriter{model: m, w: w, location: filepath.Base(path)}
		for _, t := range tensors {
			if err := out.move(t); err != nil {
				return fmt.Errorf("tensor %q: %w", t.GetName(), err)
			}
		}
		return nil
	})
}

// externalWriter appends tensors to an external data file.
type externalWriter struct {
	model    *Model
	w        io.Writer
	location string
	offset   int64
}

// move writes t's values, and makes t refer to them.
func (e *externalWriter) move(t *onnxpb.TensorProto) error {
	size, err := tensorSize(t)
	if err != nil {
		return err
	}
	if err := e.pad(); err != nil {
		return err
	}
	r, err := e.open(t, size)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.CopyN(e.w, r, size); err != nil {
		return err
	}
	t.RawData, t.FloatData, t.Int32Data, t.Int64Data, t.DoubleData, t.Uint64Data = nil, nil, nil, nil, nil, nil
	t.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
	t.ExternalData = []*onnxpb.StringStringEntryProto{
		entry("location", e.location),
		entry("offset", strconv.FormatInt(e.offset, 10)),
		entry("length", strconv.FormatInt(size, 10)),
	}
	e.offset += size
	return nil
}

func (e *externalWriter) open(t *onnxpb.TensorProto, size int64) (io.ReadCloser, error) {
	if isExternal(t) {
		return e.model.openExternal(t, size)
	}
	data, err := e.model.Data(t)
	return io.NopCloser(bytes.NewReader(data)), err
}

// pad advances the offset to the next multiple of externalAlign.
func (e *externalWriter) pad() error {
	gap := (externalAlign - e.offset%externalAlign) % externalAlign
	if _, err := e.w.Write(make([]byte, gap)); err != nil {
		return err
	}
	e.offset += gap
	return nil
}

func entry(key, value string) *onnxpb.StringStringEntryProto {
	return &onnxpb.StringStringEntryProto{Key: proto.String(key), Value: proto.String(value)}
}
