package starter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tuner/internal/exit"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/profile"
	"tuner/spec"
	"tuner/spec/mixture"
)

// ExampleShapes sets the size of every symbolic dimension except the batch. It is the size given
// for the dimension, or given by another input with the same symbol. Otherwise it is the size in
// the user's configuration, or an example.
func ExampleShapes(subject profile.Subject, given map[string][]int64) ([]spec.StarterShape, error) {
	configured := map[string][]int64{}
	for _, in := range subject.Config.GetInput() {
		configured[in.GetName()] = in.GetDims()
	}
	sizes, err := GivenSizes(subject.Model, given)
	if err != nil {
		return nil, err
	}
	examples, batches := exampleSizes(subject.Model), inputs.Batches(subject.Model)
	var shapes []spec.StarterShape
	for _, in := range subject.Model.Inputs() {
		if dims := requestShape(in, batches); slices.ContainsFunc(dims, func(d onnx.Dim) bool { return !d.IsFixed() }) {
			shape := exampleShape(in, dims, configured[in.Name], sizes, examples)
			if own, ok := given[in.Name]; ok {
				shape.Dims, shape.Example = own, false
			}
			shapes = append(shapes, shape)
		}
	}
	return shapes, nil
}

// CheckMix checks a mix from a command line against the model, with the shapes that it leaves out.
func (m Model) CheckMix(of mixture.Mix, given map[string][]int64) error {
	if of.IsZero() {
		return nil
	}
	p := spec.Profile{Path: spec.FromFlags, Inputs: spec.Inputs{Mix: of, Shape: map[string][]int64{}}}
	shapes, err := ExampleShapes(m.Subject, given)
	if err != nil {
		return err
	}
	for _, s := range m.ShapesBeside(shapes, of.Dimension) {
		p.Inputs.Shape[s.Input] = s.Dims
	}
	return profile.CheckMix(p, m.Subject)
}

// ShapesBeside returns the shapes of inputs that have another open dimension than the named one,
// the batch left out. A mix of that dimension sets the others' shapes.
func (m Model) ShapesBeside(shapes []spec.StarterShape, dimension string) []spec.StarterShape {
	batches := inputs.Batches(m.Model)
	isOther := func(d onnx.Dim) bool { return !d.IsFixed() && d.Symbol != dimension }
	return slices.DeleteFunc(slices.Clone(shapes), func(s spec.StarterShape) bool {
		i := slices.IndexFunc(m.Model.Inputs(), func(v onnx.Value) bool { return v.Name == s.Input })
		return i >= 0 && !slices.ContainsFunc(requestShape(m.Model.Inputs()[i], batches), isOther)
	})
}

// exampleSizes returns examples by symbol, the same in all inputs. A symbol in an image gets an
// image's size.
func exampleSizes(m *onnx.Model) map[string]int64 {
	sizes, ofImages := map[string]int64{}, map[string]bool{}
	for _, in := range m.Inputs() {
		isImage := inputs.IsImage(in)
		for i, size := range inputs.Example(in) {
			symbol := in.Shape[i].Symbol
			if symbol != "" && (sizes[symbol] == 0 || isImage && !ofImages[symbol]) {
				sizes[symbol], ofImages[symbol] = size, isImage
			}
		}
	}
	return sizes
}

// requestShape returns an input's shape, without the batch dimension if the model batches.
func requestShape(in onnx.Value, batches bool) []onnx.Dim {
	if batches {
		return in.Shape[1:]
	}
	return in.Shape
}

// GivenSizes returns the sizes of symbols in given shapes, and refuses shapes that do not match the
// model.
func GivenSizes(m *onnx.Model, given map[string][]int64) (map[string]int64, error) {
	sizes, batches := map[string]int64{}, inputs.Batches(m)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(m.Inputs(), func(v onnx.Value) bool { return v.Name == name })
		if i < 0 {
			return nil, exit.Usagef("--shape %s: the model has no such input; its inputs are %s", name, inputsText(m))
		}
		dims := requestShape(m.Inputs()[i], batches)
		fits := len(dims) == len(given[name])
		for k := 0; fits && k < len(dims); k++ {
			fits = !dims[k].IsFixed() || dims[k].Size == given[name][k]
			if dims[k].Symbol != "" {
				sizes[dims[k].Symbol] = given[name][k]
			}
		}
		if !fits {
			return nil, exit.Usagef("--shape %s: %v does not fit %s; leave out the batch dimension", name, given[name], m.Inputs()[i])
		}
	}
	return sizes, nil
}

// inputsText lists a model's inputs.
func inputsText(m *onnx.Model) string {
	texts := make([]string, len(m.Inputs()))
	for i, in := range m.Inputs() {
		texts[i] = in.String()
	}
	return strings.Join(texts, ", ")
}

// exampleShape sets the dimensions of one input. configured are those of the configuration. One of
// the two may have a batch dimension that the other lacks, so they are matched from the last
// dimension on. given and examples are sizes of symbols.
func exampleShape(in onnx.Value, dims []onnx.Dim, configured []int64, given, examples map[string]int64) spec.StarterShape {
	shape := spec.StarterShape{Input: in.Name, Note: strings.TrimPrefix(in.String(), in.Name+" ")}
	own := inputs.Example(in)[len(in.Shape)-len(dims):]
	for i, d := range dims {
		size := d.Size
		fromEnd := len(configured) - len(dims) + i
		switch {
		case d.IsFixed():
		case given[d.Symbol] > 0:
			size = given[d.Symbol]
		case fromEnd >= 0 && configured[fromEnd] > 0:
			size = configured[fromEnd]
		default:
			size, shape.Example = cmp.Or(examples[d.Symbol], own[i]), true
			shape.Note += fmt.Sprintf("; %s = %d is an example", d, size)
		}
		shape.Dims = append(shape.Dims, size)
	}
	return shape
}
