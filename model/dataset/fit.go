package dataset

import (
	"fmt"
	"maps"
	"slices"

	"tuner/internal/problems"
	"tuner/model/dataset/elements"
	"tuner/model/dataset/npy"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// fit makes a dataset from arrays. It checks each array against the model, and all arrays against
// each other. first is the place of the first row in the file or folder.
func fit(arrays map[string]inputs.Tensor, labels []int64, s Signature, first int) (Dataset, error) {
	f := fitter{batched: s.Batches, first: int64(first), sizes: map[string]boundSize{}}
	d := Dataset{Batched: f.batched, Labels: labels}
	if d.Inputs, d.Rows = f.all(arrays, s, f.fit); d.Rows > 0 && labels != nil && len(labels)%d.Rows != 0 {
		f.wrong.Addf("there are %d labels for %d rows", len(labels), d.Rows)
	}
	d.Notes = f.notes
	return d, f.wrong.Err()
}

// checkOutlines makes the checks of fit that need no data: names, types and shapes.
func checkOutlines(outlines map[string]npy.Outline, s Signature) error {
	arrays := make(map[string]inputs.Tensor, len(outlines))
	for name, o := range outlines {
		arrays[name] = inputs.Tensor{Type: o.Type, Shape: o.Shape}
	}
	if _, err := takeLabels(arrays, s); err != nil {
		return err
	}
	f := fitter{batched: s.Batches, sizes: map[string]boundSize{}}
	f.all(arrays, s, func(v onnx.Value, t inputs.Tensor) (inputs.Tensor, error) {
		shaped, err := f.shape(v, t)
		if err == nil {
			err = conversion(v.Type, elements.CheckTypes(t.Type, v.Type))
		}
		return shaped, err
	})
	return f.wrong.Err()
}

// fitter collects errors and conversions.
type fitter struct {
	batched bool
	first   int64                // place of the first row
	sizes   map[string]boundSize // by symbol of the model's shapes
	wrong   problems.List
	notes   []string
}

// boundSize is the size of a symbol, with the array that set it.
type boundSize struct {
	size  int64
	array string
}

// all takes the arrays of all inputs from arrays, converted by take. It counts the rows: 0 unless
// all arrays match.
func (f *fitter) all(arrays map[string]inputs.Tensor, s Signature, take func(onnx.Value, inputs.Tensor) (inputs.Tensor, error)) (map[string]inputs.Tensor, int) {
	fitting := map[string]inputs.Tensor{}
	if len(s.Inputs) == 0 {
		f.wrong.Addf("the model has no inputs")
		return fitting, 0
	}
	for _, v := range s.Inputs {
		t, ok := arrays[v.Name]
		if !ok && slices.Contains(s.Optional, v.Name) {
			continue
		}
		if !ok {
			f.wrong.AddFunc(func() error {
				return fmt.Errorf("the array %q is missing, which the model's input %s needs; the data has %s", v.Name, v, problems.Quote(slices.Sorted(maps.Keys(arrays))))
			})
			continue
		}
		delete(arrays, v.Name)
		t, err := take(v, t)
		if err != nil {
			f.wrong.Addf("array %q: %w", v.Name, err)
			continue
		}
		fitting[v.Name] = t
	}
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		f.wrong.AddFunc(func() error {
			return fmt.Errorf("the array %q is not one of the model's inputs %s; leave it out, or name it label if it holds the classes", name, problems.Quote(names(s.Inputs)))
		})
	}
	if !f.wrong.IsEmpty() {
		return fitting, 0
	}
	return fitting, f.countRows(s.Inputs, fitting)
}

// fit returns an array in the model's type. Its first dimension has the rows.
func (f *fitter) fit(v onnx.Value, t inputs.Tensor) (inputs.Tensor, error) {
	shaped, err := f.shape(v, t)
	if err != nil {
		return inputs.Tensor{}, err
	}
	converted, err := elements.Convert(shaped, v.Type)
	if err != nil {
		return inputs.Tensor{}, conversion(v.Type, err)
	}
	if t.Type != v.Type {
		f.notes = append(f.notes, fmt.Sprintf("%s: %s became %s", v.Name, t.Type, v.Type))
	}
	if i, ok := elements.FindNaN(converted); ok {
		n, _ := onnx.Elements(converted.Shape[1:]) // elements of one row
		return inputs.Tensor{}, fmt.Errorf("it has NaN (row %d, counted from 0), and the outputs of such a row cannot be compared; leave such rows out", f.first+i/n)
	}
	return converted, nil
}

// conversion adds the remedy to a conversion error.
func conversion(to onnx.DataType, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; convert it where it is made: arr.astype(%s)", err, dtype(to))
}

// dtype returns NumPy's name of a type.
func dtype(t onnx.DataType) string {
	names := map[onnx.DataType]string{
		onnx.Float: "numpy.float32", onnx.Double: "numpy.float64", onnx.Float16: "numpy.float16", onnx.BFloat16: "numpy.float32",
		onnx.Int8: "numpy.int8", onnx.Int16: "numpy.int16", onnx.Int32: "numpy.int32", onnx.Int64: "numpy.int64",
		onnx.Uint8: "numpy.uint8", onnx.Uint16: "numpy.uint16", onnx.Uint32: "numpy.uint32", onnx.Uint64: "numpy.uint64",
		onnx.Bool: "bool", onnx.String: "str",
	}
	return names[t]
}

// shape returns a checked array. Its first dimension has the rows, and the others are those of one
// row.
func (f *fitter) shape(v onnx.Value, t inputs.Tensor) (inputs.Tensor, error) {
	if n, _ := onnx.Elements(t.Shape); len(t.Shape) == 0 || n == 0 {
		return inputs.Tensor{}, fmt.Errorf("its shape %v is empty; the first dimension is the rows", t.Shape)
	}
	own := v.Shape
	if f.batched {
		own = v.Shape[1:]
	}
	switch have := len(t.Shape) - 1; {
	case !v.Ranked:
		return t, nil
	case have == len(own): // rows, then the dimensions of one row
	case !f.batched && have == len(own)-1:
		var err error
		if t.Shape, err = splitFirst(t.Shape, own[0]); err != nil {
			return inputs.Tensor{}, err
		}
	default:
		return inputs.Tensor{}, fmt.Errorf("its shape %v has %d dimensions, but the model's input is %s, and the first dimension has the rows", t.Shape, len(t.Shape), v)
	}
	for i, d := range own {
		if err := f.bind(v.Name, d, t.Shape[i+1]); err != nil {
			return inputs.Tensor{}, fmt.Errorf("its shape %v does not fit %s: %w", t.Shape, v, err)
		}
	}
	return t, nil
}

// splitFirst splits the first dimension into rows and the model's size, which is 1 if the model
// accepts any.
func splitFirst(shape []int64, want onnx.Dim) ([]int64, error) {
	size := int64(1)
	if want.IsFixed() {
		size = want.Size
	}
	if size == 0 || shape[0]%size != 0 {
		return nil, fmt.Errorf("its first dimension %d is not a multiple of the model's %d", shape[0], size)
	}
	return append([]int64{shape[0] / size, size}, shape[1:]...), nil
}

// bind checks one size. A symbol has the same size in all arrays.
func (f *fitter) bind(array string, d onnx.Dim, size int64) error {
	before, known := f.sizes[d.Symbol]
	switch {
	case d.IsFixed() && d.Size != size:
		return fmt.Errorf("%d instead of %d", size, d.Size)
	case d.Symbol != "" && known && before.size != size:
		return fmt.Errorf("%q is %d here and %d in %q", d.Symbol, size, before.size, before.array)
	case d.Symbol != "" && !known:
		f.sizes[d.Symbol] = boundSize{size, array}
	}
	return nil
}

// countRows returns the number of rows, which is the same in all arrays.
func (f *fitter) countRows(in []onnx.Value, arrays map[string]inputs.Tensor) int {
	first, rows := "", int64(0)
	for _, v := range in {
		switch t, ok := arrays[v.Name]; {
		case !ok: // optional
		case first == "":
			first, rows = v.Name, t.Shape[0]
		case t.Shape[0] != rows:
			f.wrong.Addf("the array %q has %d rows, but %q has %d", v.Name, t.Shape[0], first, rows)
		}
	}
	if first == "" {
		f.wrong.Addf("the data has none of the model's inputs %s", problems.Quote(names(in)))
	}
	return int(rows)
}
