package starter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/profile"
	"tuner/spec"
	"tuner/spec/draft"
	"tuner/spec/mixture"
)

// ExampleShapes sets the size of every symbolic dimension except the batch. It is the size given
// for the dimension, or given by another input with the same symbol. Otherwise it is the size in
// the user's configuration, or an example.
func ExampleShapes(subject profile.Subject, given map[string][]int64) ([]draft.StarterShape, error) {
	configured := map[string][]int64{}
	for _, in := range subject.Config.GetInput() {
		configured[in.GetName()] = in.GetDims()
	}
	sizes, err := GivenSizes(subject.Model, given)
	if err != nil {
		return nil, err
	}
	examples, batches := inputs.Examples(subject.Model), inputs.Batches(subject.Model)
	var shapes []draft.StarterShape
	for _, in := range subject.Model.Inputs() {
		if dims := requestShape(in, batches); slices.ContainsFunc(dims, func(d onnx.Dim) bool { return !d.IsFixed() }) {
			shape := draft.StarterShape{Input: in.Name, Dims: given[in.Name], Note: strings.TrimPrefix(in.String(), in.Name+" ")}
			if shape.Dims == nil {
				shape = exampleShape(shape, dims, configured[in.Name], sizes, examples[in.Name])
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
	p := spec.Profile{Path: "--mix", Inputs: spec.Inputs{Mix: of, Shape: map[string][]int64{}}}
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
func (m Model) ShapesBeside(shapes []draft.StarterShape, dimension string) []draft.StarterShape {
	batches := inputs.Batches(m.Model)
	isOther := func(d onnx.Dim) bool { return !d.IsFixed() && d.Symbol != dimension }
	return slices.DeleteFunc(slices.Clone(shapes), func(s draft.StarterShape) bool {
		i := slices.IndexFunc(m.Model.Inputs(), func(v onnx.Value) bool { return v.Name == s.Input })
		return i >= 0 && !slices.ContainsFunc(requestShape(m.Model.Inputs()[i], batches), isOther)
	})
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
			return nil, exit.Usagef("--shape %s: the model has no such input%s; its inputs are%s", name, nearestInput(m, name), inputsText(m))
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

// inputsText lists a model's inputs, one on each line.
func inputsText(m *onnx.Model) string {
	text := ""
	for _, in := range m.Inputs() {
		text += "\n    " + in.String()
	}
	return text
}

// nearestInput names the input that was probably meant; "" if none is similar.
func nearestInput(m *onnx.Model, name string) string {
	var names []string
	for _, in := range m.Inputs() {
		names = append(names, in.Name)
	}
	if near := words.Nearest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// exampleShape sets the dimensions of one input. configured are those of the configuration. One of
// the two may have a batch dimension that the other lacks, so they are matched from the last
// dimension on. given are sizes of symbols. examples has a size for each dimension in the file.
func exampleShape(shape draft.StarterShape, dims []onnx.Dim, configured []int64, given map[string]int64, examples []inputs.Size) draft.StarterShape {
	own := examples[len(examples)-len(dims):]
	var reasons []string
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
			size = own[i].Size
			if !slices.Contains(reasons, own[i].Reason) {
				reasons = append(reasons, own[i].Reason)
			}
		}
		shape.Dims = append(shape.Dims, size)
	}
	shape.Reason = strings.Join(reasons, ", ")
	return shape
}

// fixedValues says which inputs have the same value in every request, and why. It says nothing of a
// model whose inputs cannot be derived: a campaign names the mistake.
func fixedValues(m *onnx.Model, shapes []draft.StarterShape) []string {
	options := inputs.Options{Shape: map[string][]int64{}}
	for _, s := range shapes {
		options.Shape[s.Input] = s.Dims
	}
	derived, err := inputs.Derive(m, options)
	if err != nil {
		return nil
	}
	var list []string
	for _, in := range derived {
		if value, isFixed := in.Value(); isFixed {
			list = append(list, fmt.Sprintf("%s is %d in every request: %s", in.Name, value, in.Reason))
		}
	}
	return list
}
