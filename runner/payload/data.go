package payload

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tuner/engine/api"
	"tuner/model/dataset"
	"tuner/model/dataset/perfdata"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// step is one element of a request's batch, without the batch dimension: its inputs and the
// expected outputs.
type step struct {
	in, out perfdata.Step
	origin  string
}

// readFiles reads perf_analyzer's JSON files, one after the other.
func (k *maker) readFiles(paths []string) (steps []step, streams int) {
	plain := func(list []spec) []perfdata.Spec {
		out := make([]perfdata.Spec, len(list))
		for i, s := range list {
			out[i] = s.Spec
		}
		return out
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			k.problem("cannot read the input data: %v", err)
			continue
		}
		file, err := perfdata.Parse(text, plain(k.in), plain(k.out))
		if err != nil {
			k.problem("%s: %v", path, err)
			continue
		}
		streams += len(file.Streams)
		for i, stream := range file.Streams {
			for j, in := range stream {
				origin := fmt.Sprintf("%s, step %d", path, j)
				if len(file.Streams) > 1 {
					origin = fmt.Sprintf("%s, stream %d, step %d", path, i, j)
				}
				s := step{in: in, origin: origin}
				if file.Expected != nil {
					s.out = file.Expected[i][j]
				}
				steps = append(steps, s)
			}
		}
	}
	return steps, streams
}

// mostRows bounds the bytes of rows. All of them are encoded and kept.
const mostRows = 1 << 30

// readRows reads NumPy's arrays. Each row is a step, in the order of the file or folder. Labels are not
// used.
func (k *maker) readRows(path string) []step {
	d, err := dataset.ReadFor(path, k.signature())
	switch {
	case err != nil:
		k.problem("%v", err)
		return nil
	case d.Bytes() > mostRows:
		k.problem("%s has %d MiB of rows, but all requests are kept in memory: give at most %d MiB", path, d.Bytes()>>20, mostRows>>20)
		return nil
	}
	steps := make([]step, d.Rows)
	for place, i := range d.Order() {
		row := d.Slice(i, i+1)
		if k.model.Batches() {
			for name, t := range row {
				t.Shape = t.Shape[1:]
				row[name] = t
			}
		}
		steps[place] = step{in: row, origin: fmt.Sprintf("%s, row %d", path, place)}
	}
	return steps
}

// signature returns what arrays have to fit.
func (k *maker) signature() dataset.Signature {
	s := dataset.Signature{Batches: k.model.Batches()}
	for _, in := range k.in {
		v := onnx.Value{Name: in.Name, Type: in.Type, Ranked: true}
		if s.Batches {
			v.Shape = append(v.Shape, onnx.Symbol(""))
		}
		file := k.fileDims(in)
		for i, size := range in.Dims {
			switch {
			case size >= 0:
				v.Shape = append(v.Shape, onnx.Fixed(size))
			case file != nil:
				v.Shape = append(v.Shape, file[i])
			default:
				v.Shape = append(v.Shape, onnx.Symbol(""))
			}
		}
		if s.Inputs = append(s.Inputs, v); in.optional {
			s.Optional = append(s.Optional, in.Name)
		}
	}
	return s
}

// readFolder reads a folder with a file per input, named after it. Expected outputs may have files
// too. A file has raw elements or lines of text.
func (k *maker) readFolder(dir string) []step {
	s := step{in: perfdata.Step{}, out: perfdata.Step{}, origin: dir}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path) // the name of a tensor may have slashes
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		in, out := find(k.in, name), find(k.out, name)
		if in == nil && out == nil {
			k.problem("%s has the name of no input or output of model %q; the inputs are %q, the outputs %q", path, k.model.Name, names(k.in), names(k.out))
			return nil
		}
		content, err := os.ReadFile(path)
		switch {
		case err != nil:
			return err
		case in != nil:
			s.in[name] = k.tensor(path, content, *in)
		default:
			s.out[name] = k.tensor(path, content, *out)
		}
		return nil
	})
	if err != nil {
		k.problem("cannot read the folder of input data: %v", err)
	}
	return []step{s}
}

// tensor makes a tensor from the content of a file.
func (k *maker) tensor(path string, content []byte, s spec) inputs.Tensor {
	t := inputs.Tensor{Type: s.Type, Shape: s.Dims, Data: content}
	have, unit, each := int64(len(content)), "bytes", s.Type.Size()
	if s.Type == onnx.String {
		t.Data, t.Strings = nil, bytes.Split(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
		have, unit, each = int64(len(t.Strings)), "lines of text", 1
	}
	if s.isOpen() && find(k.in, s.Name) != nil {
		k.problem("%s: the shape of input %s is open: give it%s with --shape %s:SIZE,…", path, s, k.withoutBatch(), s.Name)
	} else if s.isOpen() { // to compare an output, its length suffices
		t.Shape = []int64{have / each}
	}
	if n, ok := onnx.Elements(t.Shape); !s.isOpen() && (!ok || n*each != have) {
		k.problem("%s has %d %s, %s needs %d", path, have, unit, s, n*each)
	}
	return t
}

// join makes requests from steps. Each request has as many consecutive steps as the batch size.
// After the last step it starts again with the first. The number of requests is the least that uses
// all steps.
func (k *maker) join(steps []step) []Request {
	k.checkSteps(steps)
	if len(k.problems) > 0 {
		return nil
	}
	var requests []Request
	for first := 0; first < len(steps); first += k.source.Batch {
		batch := make([]step, k.source.Batch)
		for i := range batch {
			batch[i] = steps[(first+i)%len(steps)]
		}
		r := Request{Infer: k.infer(), Origin: batch[0].origin}
		if len(batch) > 1 {
			r.Origin += " to " + batch[len(batch)-1].origin
		}
		r.Infer.Inputs = k.stack(batch, k.in, func(s step) perfdata.Step { return s.in })
		r.Expected = k.stack(batch, k.out, func(s step) perfdata.Step { return s.out })
		requests = append(requests, r)
	}
	return requests
}

// infer returns a request without tensors.
func (k *maker) infer() api.InferRequest {
	return api.InferRequest{Model: k.model.Name, Version: k.model.Version}
}

// checkSteps checks that each step has all that the model needs.
func (k *maker) checkSteps(steps []step) {
	for _, s := range steps {
		for _, in := range k.in {
			if _, ok := s.in[in.Name]; !ok && !in.optional {
				k.problem("%s has no values for the input %s", s.origin, in)
			}
		}
	}
}

// stack joins the tensors of several steps into one tensor per name. Without a batch dimension
// there is only one step.
func (k *maker) stack(batch []step, specs []spec, of func(step) perfdata.Step) []api.Tensor {
	var out []api.Tensor
	for _, s := range specs {
		first, has := of(batch[0])[s.Name]
		t := inputs.Tensor{Type: s.Type, Shape: first.Shape}
		if k.model.Batches() {
			t.Shape = append([]int64{int64(len(batch))}, first.Shape...)
		}
		for _, each := range batch {
			v, ok := of(each)[s.Name]
			if ok != has || !slices.Equal(v.Shape, first.Shape) {
				k.problem("%s and %s cannot be in one batch: %q is %s in one, but %s in the other", batch[0].origin, each.origin, s.Name, form(first, has), form(v, ok))
				break
			}
			t.Data, t.Strings = append(t.Data, v.Data...), append(t.Strings, v.Strings...)
		}
		if has {
			out = append(out, Wire(s.Name, t))
		}
	}
	return out
}

// form describes type and shape of a tensor, for the message about a difference.
func form(t inputs.Tensor, has bool) string {
	if !has {
		return "missing"
	}
	return fmt.Sprint(t.Shape)
}
