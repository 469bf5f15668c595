// Package dataset holds rows of a model's inputs: those that the user brings, or random ones that the model accepts. Accuracy
// checks, calibration and load draw from it. It stands between files of foreign make and everything that runs the model, so it
// refuses whatever does not fit the model, names the file, the array and the remedy, and converts only what cannot hide a
// mistake.
package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tuner/model/dataset/elements"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// Dataset is rows of inputs. It must not be changed.
type Dataset struct {
	Name    string // of the file, for people
	Rows    int
	Inputs  map[string]inputs.Tensor // by input; the first dimension is the rows
	Labels  []int64                  // the right class of each row; nil without labels
	Batched bool                     // the model batches: any rows can be one request. Else each row is a request of its own
	// Synthetic says that the values are random: they are valid, but say less about accuracy than real ones.
	Synthetic bool
	Notes     []string // what was converted, for people
}

// Slice returns the request of the rows from … to-1, sharing memory with d. Of a model that does not batch, one row is a whole
// request, in the shape that the model wants; asking for several is a bug of the caller.
func (d Dataset) Slice(from, to int) map[string]inputs.Tensor {
	if from < 0 || to > d.Rows || from >= to || !d.Batched && to-from > 1 {
		panic(fmt.Sprintf("no request of rows %d to %d (%d rows, batched: %t)", from, to, d.Rows, d.Batched))
	}
	request := make(map[string]inputs.Tensor, len(d.Inputs))
	for name, t := range d.Inputs {
		part := rowsOf(t, from, to)
		if !d.Batched {
			part.Shape = part.Shape[1:]
		}
		request[name] = part
	}
	return request
}

// rowsOf returns the rows from … to-1 of a tensor, sharing memory with it.
func rowsOf(t inputs.Tensor, from, to int) inputs.Tensor {
	part := inputs.Tensor{Type: t.Type, Shape: slices.Clone(t.Shape)}
	part.Shape[0] = int64(to - from)
	rows := int(t.Shape[0])
	if t.Type == onnx.String {
		n := len(t.Strings) / rows
		part.Strings = t.Strings[from*n : to*n]
	} else {
		n := len(t.Data) / rows
		part.Data = t.Data[from*n : to*n]
	}
	return part
}

// Head returns the first n rows, at least one, with their labels, sharing memory with d; d itself when it has no more.
func (d Dataset) Head(n int) Dataset {
	if n >= d.Rows {
		return d
	}
	if n <= 0 {
		panic(fmt.Sprintf("no head of %d rows", n))
	}
	head := d
	head.Inputs = make(map[string]inputs.Tensor, len(d.Inputs))
	for name, t := range d.Inputs {
		head.Inputs[name] = rowsOf(t, 0, n)
	}
	head.Labels = d.Labels[:len(d.Labels)/d.Rows*n]
	head.Rows = n
	return head
}

// Digest returns the sha256, as lower-case hex, of everything that a run with the rows depends on: inputs and labels, not the
// name.
func (d Dataset) Digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d rows, batched %t\n", d.Rows, d.Batched)
	for _, name := range slices.Sorted(maps.Keys(d.Inputs)) {
		t := d.Inputs[name]
		fmt.Fprintf(h, "%q %v %v %d\n", name, t.Type, t.Shape, len(t.Data))
		h.Write(t.Data)
		for _, s := range t.Strings {
			fmt.Fprintf(h, "%q\n", s)
		}
	}
	if d.Labels != nil {
		fmt.Fprintf(h, "labels %d\n", d.Labels)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// maxSynthetic is the most bytes of random rows: beyond it the number of rows is taken for a mistake.
const maxSynthetic = 4 << 30

// Synthetic makes random rows that the model accepts, the same for the same model, options and seed.
func Synthetic(m *onnx.Model, o inputs.Options, rows int, seed uint64) (Dataset, error) {
	list, err := inputs.Derive(m, o)
	if err != nil {
		return Dataset{}, err
	}
	if rows <= 0 {
		return Dataset{}, fmt.Errorf("cannot make %d rows: at least one is needed", rows)
	}
	total := int64(0)
	for _, in := range list {
		n, _ := onnx.Elements(in.Dims) // Derive keeps it small
		total += n * max(in.Type.Size(), 16)
	}
	if total > maxSynthetic/int64(rows) {
		return Dataset{}, fmt.Errorf("cannot make %d rows of %d bytes: they exceed %d GiB; ask for fewer", rows, total, maxSynthetic>>30)
	}
	d := Dataset{Name: "synthetic", Rows: rows, Batched: inputs.Batches(m), Synthetic: true}
	if d.Batched {
		d.Inputs = inputs.Generate(list, rows, seed)
		return d, nil
	}
	requests := make([]map[string]inputs.Tensor, rows)
	for i := range requests {
		requests[i] = inputs.Generate(list, 1, seed+uint64(i))
	}
	d.Inputs, err = stack(requests)
	return d, err
}

// stack joins requests of equal shapes: the first dimension of what it returns is the requests.
func stack[T ~map[string]inputs.Tensor](requests []T) (map[string]inputs.Tensor, error) {
	stacked := map[string]inputs.Tensor{}
	for i, request := range requests {
		for name, t := range request {
			all, known := stacked[name]
			if !known {
				all = inputs.Tensor{Type: t.Type, Shape: append([]int64{0}, t.Shape...)}
			}
			switch {
			case all.Shape[0] != int64(i):
				return nil, fmt.Errorf("step %d lacks %q, which step %d has: every step needs the same inputs", all.Shape[0], name, i)
			case !slices.Equal(all.Shape[1:], t.Shape):
				return nil, fmt.Errorf("%q has the shape %v in step %d, before it %v: pad the steps to one shape", name, t.Shape, i, all.Shape[1:])
			}
			all.Shape[0]++
			all.Data = append(all.Data, t.Data...)
			all.Strings = append(all.Strings, t.Strings...)
			stacked[name] = all
		}
	}
	for name, t := range stacked {
		if t.Shape[0] != int64(len(requests)) {
			return nil, fmt.Errorf("step %d lacks %q: every step needs the same inputs", t.Shape[0], name)
		}
	}
	return stacked, nil
}

// labelNames are the names under which arrays of labels come.
var labelNames = []string{"label", "labels"}

// takeLabels takes the labels out of arrays: whole numbers, one per row, under a name that no input has. Arrays without data
// have no labels, but are checked and taken out all the same.
func takeLabels(arrays map[string]inputs.Tensor, m *onnx.Model) ([]int64, error) {
	isInput := func(name string) bool {
		return slices.ContainsFunc(m.Inputs(), func(v onnx.Value) bool { return v.Name == name })
	}
	var labels []int64
	for _, name := range labelNames {
		t, ok := arrays[name]
		if !ok || isInput(name) {
			continue
		}
		if labels != nil {
			return nil, errors.New("there are arrays label and labels: one is enough")
		}
		delete(arrays, name)
		values, isWhole := elements.Integers(t)
		n, _ := onnx.Elements(t.Shape)
		isColumn := len(t.Shape) == 1 || len(t.Shape) == 2 && t.Shape[1] == 1
		if !isWhole || !isColumn || n == 0 {
			return nil, fmt.Errorf("the array %q, %s%v, is none of class numbers, one per row: y.argmax(1) makes one of one-hot rows", name, t.Type, t.Shape)
		}
		labels = values
	}
	return labels, nil
}
