// Package dataset holds rows of a model's inputs: the user's, or random ones that the model
// accepts. Accuracy checks, calibration and load use them.
//
// It stands between the users' files and everything that runs the model. It refuses data that does
// not match the model, and names the file, the array and the remedy. It makes only conversions that
// cannot hide a mistake.
package dataset

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"tuner/model/dataset/elements"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// Dataset holds rows of inputs. It must not be changed.
type Dataset struct {
	Name   string // name of the file, for people
	Rows   int
	Inputs map[string]inputs.Tensor // by input; the first dimension has the rows; nil with Parts
	// Parts have the rows of each shape, in ascending order of their sizes, if rows have several
	// shapes; nil for one shape. Their labels are also in Labels.
	Parts  []Dataset
	Labels []int64 // correct class of each row; nil without labels
	// Places has the place of each row in the file or folder, where Parts have another order; nil: the
	// same order
	Places []int
	// Batched: the model batches: a request may have several rows; otherwise each row is one
	// request
	Batched bool
	// Synthetic means that the values are random. They are valid, but less useful for accuracy than
	// real ones.
	Synthetic bool
	Notes     []string // conversions that were made, for people
}

// Slice returns a request with the rows from … to-1, sharing memory with d. If the model does not
// batch, one row is a whole request, in the model's shape. Asking for several rows is then a bug of
// the caller, as is asking for rows of several shapes.
func (d Dataset) Slice(from, to int) map[string]inputs.Tensor {
	for _, part := range d.Parts {
		if from < part.Rows {
			return part.Slice(from, to)
		}
		from, to = from-part.Rows, to-part.Rows
	}
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

// End returns the end of a batch of at most `most` rows that begins with the row `from`: rows of a
// batch have one shape.
func (d Dataset) End(from, most int) int {
	end, total := d.Rows, 0
	for _, part := range d.Parts {
		if total += part.Rows; from < total {
			end = total
			break
		}
	}
	if !d.Batched {
		most = 1
	}
	return min(from+most, end)
}

// Batches returns the number of batches of at most `most` rows.
func (d Dataset) Batches(most int) int {
	n := 0
	for from := 0; from < d.Rows; from = d.End(from, most) {
		n++
	}
	return n
}

// Order lists the rows in the order of the file or folder.
func (d Dataset) Order() []int {
	order := make([]int, d.Rows)
	for i := range order {
		order[i] = i
	}
	if d.Places != nil {
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(d.Places[a], d.Places[b]) })
	}
	return order
}

// Join returns a dataset with the rows of several parts, which differ in their shapes. There is at
// least one part.
func Join(parts []Dataset) Dataset {
	if len(parts) == 1 {
		return parts[0]
	}
	d := Dataset{Name: parts[0].Name, Parts: parts, Batched: parts[0].Batched, Synthetic: parts[0].Synthetic}
	for _, part := range parts {
		d.Rows += part.Rows
		d.Labels, d.Places = append(d.Labels, part.Labels...), append(d.Places, part.Places...)
		for _, note := range part.Notes {
			if !slices.Contains(d.Notes, note) {
				d.Notes = append(d.Notes, note)
			}
		}
	}
	return d
}

// AsBatches returns the data as if the model batched: a request may have several rows.
func (d Dataset) AsBatches() Dataset {
	d.Batched, d.Parts = true, slices.Clone(d.Parts)
	for i := range d.Parts {
		d.Parts[i].Batched = true
	}
	return d
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

// Head returns the first n rows, at least one, with their labels, sharing memory with d. It returns
// d if d has at most n rows. Of several shapes it has the first rows of each in proportion, and at
// least one of each, which may be more than n.
func (d Dataset) Head(n int) Dataset {
	if n >= d.Rows {
		return d
	}
	if n <= 0 {
		panic(fmt.Sprintf("no head of %d rows", n))
	}
	if d.Parts != nil {
		heads := make([]Dataset, len(d.Parts))
		for i, part := range d.Parts {
			heads[i] = part.Head(max(1, n*part.Rows/d.Rows))
		}
		return Join(heads)
	}
	head := d
	head.Inputs = make(map[string]inputs.Tensor, len(d.Inputs))
	for name, t := range d.Inputs {
		head.Inputs[name] = rowsOf(t, 0, n)
	}
	head.Labels = d.Labels[:len(d.Labels)/d.Rows*n]
	head.Places = d.Places[:min(n, len(d.Places))]
	head.Rows = n
	return head
}

// Draw returns a request of n rows of one shape that are drawn with replacement. If the model does
// not batch, it has one row.
func (d Dataset) Draw(n int, r *rand.Rand) map[string]inputs.Tensor {
	if d.Parts != nil {
		row := r.IntN(d.Rows)
		for _, part := range d.Parts {
			if row < part.Rows {
				return part.Draw(n, r)
			}
			row -= part.Rows
		}
	}
	if !d.Batched {
		n = 1
	}
	drawn := make([]int, n)
	for i := range drawn {
		drawn[i] = r.IntN(d.Rows)
	}
	request := d.Slice(drawn[0], drawn[0]+1)
	for name, t := range request {
		t.Data, t.Strings = slices.Clone(t.Data), slices.Clone(t.Strings)
		for _, row := range drawn[1:] {
			more := rowsOf(d.Inputs[name], row, row+1)
			t.Data, t.Strings = append(t.Data, more.Data...), append(t.Strings, more.Strings...)
			t.Shape[0]++
		}
		request[name] = t
	}
	return request
}

// Shapes returns the shape of each input in a row, without the batch dimension. Of several shapes it
// returns that of the most rows.
func (d Dataset) Shapes() map[string][]int64 {
	if d.Parts != nil {
		most := d.Parts[0]
		for _, part := range d.Parts {
			if part.Rows > most.Rows {
				most = part
			}
		}
		return most.Shapes()
	}
	shapes := make(map[string][]int64, len(d.Inputs))
	for name, t := range d.Inputs {
		shapes[name] = slices.Clone(t.Shape[1:])
	}
	return shapes
}

// Bytes returns the size of all elements.
func (d Dataset) Bytes() int {
	total := 0
	for _, part := range d.Parts {
		total += part.Bytes()
	}
	for _, t := range d.Inputs {
		total += bytesOf(t)
	}
	return total
}

// bytesOf returns the size of a tensor's elements.
func bytesOf(t inputs.Tensor) int {
	total := len(t.Data)
	for _, s := range t.Strings {
		total += len(s)
	}
	return total
}

// Digest returns the sha256, as lower-case hex, of everything that affects a run with the rows:
// inputs and labels, without the name. The order in which rows of several shapes follow each other is
// not part of it, since each run has them by shape.
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
	for _, part := range d.Parts {
		fmt.Fprintln(h, part.Digest())
	}
	if d.Labels != nil {
		fmt.Fprintf(h, "labels %d\n", d.Labels)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// maxSynthetic is the largest size of random rows in bytes. A larger number of rows is considered a
// mistake.
const maxSynthetic = 4 << 30

// Synthetic makes random rows that the model accepts. The same model, options and seed give the
// same rows.
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
		n, _ := onnx.Elements(in.Dims) // Derive limits the size
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

// stack combines requests of equal shapes. The first dimension of the result has the requests.
func stack[T ~map[string]inputs.Tensor](requests []T) (map[string]inputs.Tensor, error) {
	if err := sameNames(requests); err != nil {
		return nil, err
	}
	stacked := map[string]inputs.Tensor{}
	for i, request := range requests {
		for name, t := range request {
			all, known := stacked[name]
			if !known {
				all = inputs.Tensor{Type: t.Type, Shape: append([]int64{0}, t.Shape...)}
			}
			if !slices.Equal(all.Shape[1:], t.Shape) {
				return nil, fmt.Errorf("%q has the shape %v in step %d, but %v in the steps before it", name, t.Shape, i, all.Shape[1:])
			}
			all.Shape[0]++
			all.Data = append(all.Data, t.Data...)
			all.Strings = append(all.Strings, t.Strings...)
			stacked[name] = all
		}
	}
	return stacked, nil
}

// sameNames checks that all requests have the same inputs.
func sameNames[T ~map[string]inputs.Tensor](requests []T) error {
	for i, request := range requests {
		for name := range request {
			if _, has := requests[0][name]; !has {
				return fmt.Errorf("step 0 lacks %q, which step %d has: every step needs the same inputs", name, i)
			}
		}
		for name := range requests[0] {
			if _, has := request[name]; !has {
				return fmt.Errorf("step %d lacks %q: every step needs the same inputs", i, name)
			}
		}
	}
	return nil
}

// grouped groups values with equal keys, in the order in which the keys first appear.
func grouped[T any](values []T, key func(T) string) [][]T {
	at := map[string]int{}
	var groups [][]T
	for _, v := range values {
		k := key(v)
		i, known := at[k]
		if !known {
			i = len(groups)
			at[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], v)
	}
	return groups
}

// runs splits values into runs of consecutive ones with equal keys.
func runs[T any](values []T, key func(T) string) [][]T {
	var list [][]T
	before := ""
	for i, v := range values {
		if k := key(v); i == 0 || k != before {
			list, before = append(list, nil), k
		}
		last := len(list) - 1
		list[last] = append(list[last], v)
	}
	return list
}

// shapesKey is equal for arrays of equal names and shapes.
func shapesKey[T ~map[string]inputs.Tensor](arrays T) string {
	key := ""
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		key += fmt.Sprintf("%q %v ", name, arrays[name].Shape)
	}
	return key
}

// labelNames are the array names that stand for labels.
var labelNames = []string{"label", "labels"}

// takeLabels removes the labels from arrays and returns them. Labels are integers, one per row,
// under a name that no input has. It also checks and removes arrays without data, but returns no
// labels for them.
func takeLabels(arrays map[string]inputs.Tensor, s Signature) ([]int64, error) {
	isInput := func(name string) bool {
		return slices.ContainsFunc(s.Inputs, func(v onnx.Value) bool { return v.Name == name })
	}
	var labels []int64
	for _, name := range labelNames {
		t, ok := arrays[name]
		if !ok || isInput(name) {
			continue
		}
		if labels != nil {
			return nil, errors.New("it has two arrays of classes, label and labels: leave one out")
		}
		delete(arrays, name)
		values, isWhole := elements.Integers(t)
		n, _ := onnx.Elements(t.Shape)
		isColumn := len(t.Shape) == 1 || len(t.Shape) == 2 && t.Shape[1] == 1
		if !isWhole || !isColumn || n == 0 {
			return nil, fmt.Errorf("the array %q is %s%v, but labels are one class number for each row: y.argmax(1) makes them from one-hot rows", name, t.Type, t.Shape)
		}
		labels = values
	}
	return labels, nil
}
