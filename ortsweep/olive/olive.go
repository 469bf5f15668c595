// Package olive reads the input forms of ONNX Runtime OLive:
//
//   - the JSON of its optimization config (the Python package of 2021 and 2022),
//   - its texts for names, shapes and types of inputs,
//   - the variables of its scripts.
//
// It returns settings for a sweep, and a note for every field that cannot apply. It ignores nothing
// silently. It reads only texts, and does not know files or sweeps.
package olive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"tuner/model/onnx"
)

// Settings has the settings from OLive's forms.
type Settings struct {
	Model      string // path of the ONNX file
	Name       string
	Output     string // folder
	Data       string // npz file with sample inputs
	Inputs     []Input
	Outputs    []string
	Throughput bool // otherwise latency
	Batch      int  // 0: not set
	Sessions   int  // 0: not set
	Knobs      []Knob
	Notes      []string // fields that cannot apply, with reasons, for people
}

// Knob is a searched setting, by tuner's name, with its values.
type Knob struct {
	Name   string
	Values []string
}

// Input is a model input in OLive's description.
type Input struct {
	Name  string
	Type  string  // "" if not given
	Shape []int64 // -1 for the batch; nil if not given
}

// Tensors has OLive's texts for inputs and outputs: names separated by commas, or JSON lists.
type Tensors struct {
	InNames  string // input_names,input_mask
	InShapes string // [[-1,256],[-1,256]]
	InTypes  string // int64,int64
	OutNames string // start,end
}

// IsZero reports whether nothing is given.
func (t Tensors) IsZero() bool { return t == Tensors{} }

// Parse reads the texts. The error lists all mistakes.
func (t Tensors) Parse() (inputs []Input, outputs []string, err error) {
	names, nameErr := list(t.InNames)
	types, typeErr := list(t.InTypes)
	outputs, outErr := list(t.OutNames)
	shapes, shapeErr := parseShapes(t.InShapes)
	err = errors.Join(about("input names", nameErr), about("input types", typeErr), about("output names", outErr), about("input shapes", shapeErr))
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 && len(types)+len(shapes) > 0 {
		return nil, nil, errors.New("cannot read the inputs: shapes and types need the inputs' names")
	}
	for what, n := range map[string]int{"shapes": len(shapes), "types": len(types)} {
		if n > 0 && n != len(names) {
			err = errors.Join(err, fmt.Errorf("cannot read the inputs: there are %d names, but %d %s", len(names), n, what))
		}
	}
	for i, name := range names {
		in := Input{Name: name}
		if i < len(shapes) {
			in.Shape = shapes[i]
		}
		if i < len(types) {
			in.Type = types[i]
		}
		inputs = append(inputs, in)
	}
	return inputs, outputs, errors.Join(err, checkShapes(inputs))
}

// about names the text that could not be read.
func about(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot read the %s: %w", what, err)
}

// list reads names separated by commas, or a JSON list of texts. An empty text has no names.
func list(text string) ([]string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if strings.HasPrefix(text, "[") {
		var names []string
		if err := json.Unmarshal([]byte(text), &names); err != nil {
			return nil, fmt.Errorf("%q is neither names separated by commas nor a JSON list of texts", text)
		}
		return names, checkNames(names)
	}
	names := strings.Split(text, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names, checkNames(names)
}

func checkNames(names []string) error {
	for i, name := range names {
		if name == "" {
			return fmt.Errorf("name %d of %q is empty", i+1, names)
		}
	}
	return nil
}

// parseShapes reads [[-1,256],[-1,256]]. For a single input it may be [-1,256].
func parseShapes(text string) ([][]int64, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	var shapes [][]int64
	if json.Unmarshal([]byte(text), &shapes) == nil {
		return shapes, nil
	}
	var single []int64
	if json.Unmarshal([]byte(text), &single) == nil {
		return [][]int64{single}, nil
	}
	return nil, fmt.Errorf("%q is not a list of shapes such as [[-1,256],[-1,256]]", text)
}

// checkShapes refuses shapes that no request can have: sizes below 1, and -1 in other places than
// the first, where it is the batch.
func checkShapes(inputs []Input) error {
	var errs []error
	seen := map[string]bool{}
	for _, in := range inputs {
		if seen[in.Name] {
			errs = append(errs, fmt.Errorf("cannot read the inputs: %q is named twice", in.Name))
		}
		seen[in.Name] = true
		for i, d := range in.Shape {
			switch {
			case d == -1 && i == 0 || d >= 1:
			case d == -1:
				errs = append(errs, fmt.Errorf("cannot read the shape %v of input %q: only the first dimension, the batch, may be -1; write the size that requests have", in.Shape, in.Name))
			default:
				errs = append(errs, fmt.Errorf("cannot read the shape %v of input %q: %d is not a size", in.Shape, in.Name, d))
			}
		}
	}
	return errors.Join(errs...)
}

// Check compares the settings with the model: names, types and shapes. The error lists all
// differences.
func (s Settings) Check(m *onnx.Model) error {
	var errs []error
	for _, in := range s.Inputs {
		i := slices.IndexFunc(m.Inputs(), func(v onnx.Value) bool { return v.Name == in.Name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("cannot find input %q in the model; its inputs are %q", in.Name, names(m.Inputs())))
			continue
		}
		v := m.Inputs()[i]
		if t, ok := elementType(in.Type); in.Type != "" && (!ok || t != v.Type) {
			errs = append(errs, fmt.Errorf("cannot use type %q for input %q: the model says %s", in.Type, in.Name, v.Type))
		}
		if in.Shape != nil && v.Ranked && !fits(in.Shape, v.Shape) {
			errs = append(errs, fmt.Errorf("cannot use shape %v for input %s: it does not fit the model's", in.Shape, v))
		}
	}
	for _, out := range s.Outputs {
		if !slices.ContainsFunc(m.Outputs(), func(v onnx.Value) bool { return v.Name == out }) {
			errs = append(errs, fmt.Errorf("cannot find output %q in the model; its outputs are %q", out, names(m.Outputs())))
		}
	}
	return errors.Join(errs...)
}

// fits reports whether a request can have a shape: the number of dimensions and the fixed sizes
// must be equal. -1 matches a batch of any size, and a fixed batch of one.
func fits(shape []int64, dims []onnx.Dim) bool {
	if len(shape) != len(dims) {
		return false
	}
	for i, d := range dims {
		if d.IsFixed() && shape[i] != d.Size && !(i == 0 && shape[i] == -1 && d.Size == 1) {
			return false
		}
	}
	return true
}

func names(values []onnx.Value) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = v.Name
	}
	return list
}

// elementType reads a type by ONNX's, NumPy's or PyTorch's name.
func elementType(name string) (onnx.DataType, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	name = strings.TrimSuffix(strings.TrimPrefix(name, "tensor("), ")")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "torch."), "np.")
	alias := map[string]string{"float32": "float", "float64": "double", "long": "int64", "int": "int32", "half": "float16", "bool_": "bool",
		"boolean": "bool", "str": "string", "byte": "uint8"}
	if known, ok := alias[name]; ok {
		name = known
	}
	for _, t := range onnx.ServableTypes() {
		if strings.EqualFold(t.String(), name) {
			return t, true
		}
	}
	return 0, false
}

// BatchSize returns the batch size that the inputs' shapes have instead of -1, if the model's first
// dimension is the batch. It returns 0 if they have none. Different sizes are an error.
func (s Settings) BatchSize() (int, error) {
	batch := int64(0)
	for _, in := range s.Inputs {
		if len(in.Shape) == 0 || in.Shape[0] == -1 {
			continue
		}
		if batch > 0 && in.Shape[0] != batch {
			return 0, fmt.Errorf("cannot read the shape %v of input %q: another input has batch %d; write -1 for the batch", in.Shape, in.Name, batch)
		}
		batch = in.Shape[0]
	}
	return int(batch), nil
}

// Shapes returns the shapes of one request by input, without the batch dimension, in tuner's form.
// batched means that the model's first dimension is the batch.
func (s Settings) Shapes(batched bool) map[string][]int64 {
	shapes := map[string][]int64{}
	for _, in := range s.Inputs {
		switch {
		case in.Shape == nil:
		case batched && len(in.Shape) > 0:
			shapes[in.Name] = in.Shape[1:]
		case len(in.Shape) > 0 && in.Shape[0] == -1: // of a model with a fixed batch of one
			shapes[in.Name] = append([]int64{1}, in.Shape[1:]...)
		default:
			shapes[in.Name] = in.Shape
		}
	}
	return shapes
}

// Variables reads the variables of OLive's scripts: model_filename with model_location, model_name,
// model_type, in_names, in_shapes, in_types, out_names. found is false if they name no model.
func Variables(lookup func(string) (string, bool)) (s Settings, found bool, err error) {
	get := func(name string) string {
		value, _ := lookup(name)
		return strings.TrimSpace(value)
	}
	file := get("model_filename")
	if file == "" {
		return Settings{}, false, nil
	}
	s.Model, s.Name = file, get("model_name")
	switch location := get("model_location"); {
	case strings.Contains(location, "://"):
		s.addNote("model_location", "tuner downloads nothing: the model is taken from "+file)
	case location != "":
		s.Model = path.Join(location, file)
	}
	if t := get("model_type"); t != "" && !strings.EqualFold(t, "onnx") {
		s.addNote("model_type", t+" is not converted here: `tuner convert` takes PyTorch models")
	}
	s.Inputs, s.Outputs, err = Tensors{get("in_names"), get("in_shapes"), get("in_types"), get("out_names")}.Parse()
	for _, name := range []string{"OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_MAX_ACTIVE_LEVELS", "KMP_AFFINITY"} {
		if get(name) != "" {
			s.addNote(name, "has no effect: ONNX Runtime has had no OpenMP since version 1.8")
		}
	}
	return s, true, err
}

func (s *Settings) addNote(field, text string) { s.Notes = append(s.Notes, field+": "+text) }

// strict decodes JSON and refuses what comes after it.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if decoder.More() {
		return errors.New("there is more text after the end of the JSON")
	}
	return nil
}
