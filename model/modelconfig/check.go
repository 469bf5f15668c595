package modelconfig

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CheckModel checks a complete configuration against its model, like the onnxruntime backend when
// it loads: counts, names, data types and shapes. It stops at the first difference, and uses the
// backend's words.
func CheckModel(c *Config, io ModelIO) error {
	for _, t := range slices.Concat(io.Inputs, io.Outputs) {
		if !utf8.ValidString(t.Name) { // no message can have it
			return refuse("unable to load model '%s', the name of its tensor %q is not UTF-8", c.GetName(), t.Name)
		}
	}
	required := 0
	for _, in := range c.GetInput() {
		if !in.GetOptional() {
			required++
		}
	}
	if err := checkControls(c, io); err != nil {
		return err
	}
	controls, err := SequenceControls(c)
	if err != nil {
		return err
	}
	required += len(controls.All()) + len(c.GetSequenceBatching().GetState()) + len(c.GetBatchInput())
	if required != len(io.Inputs) {
		return refuse("unable to load model '%s', configuration expects %d inputs, model provides %d",
			c.GetName(), required, len(io.Inputs))
	}
	inputs := newSignature(c, "input", slices.Concat(io.Inputs, io.Constants))
	for _, in := range c.GetInput() {
		if in.GetOptional() && c.GetMaxBatchSize() != 0 {
			return refuse("unable to load model '%s', optional input '%s' is not supported for models that support batching",
				c.GetName(), in.GetName())
		}
		if err := inputs.check(in); err != nil {
			return err
		}
	}
	if err := inputs.checkBatchInputs(); err != nil {
		return err
	}
	outputs := newSignature(c, "output", io.Outputs)
	for _, out := range c.GetOutput() {
		if err := outputs.check(out); err != nil {
			return err
		}
	}
	return checkStates(c, io)
}

// signature has the inputs or the outputs of a model. A foreign model may have hundreds of
// thousands.
type signature struct {
	config    *Config
	side      string
	declared  map[string]Tensor
	scattered map[string]bool // outputs that are scattered back to the requests, so their shape is not checked
	ragged    map[string]bool // inputs whose requests may have different shapes
}

func newSignature(c *Config, side string, declared []Tensor) signature {
	s := signature{config: c, side: side, declared: make(map[string]Tensor, len(declared)), scattered: map[string]bool{}, ragged: map[string]bool{}}
	for _, d := range declared {
		s.declared[d.Name] = d
	}
	if side == "input" {
		for _, in := range c.GetInput() {
			s.ragged[in.GetName()] = in.GetAllowRaggedBatch()
		}
	} else {
		for _, b := range c.GetBatchOutput() {
			for _, name := range b.GetTargetName() {
				s.scattered[name] = true
			}
		}
	}
	return s
}

// check compares one configured tensor with the model's tensor of that name.
func (s signature) check(t tensorConfig) error {
	c, side, name := s.config, s.side, t.GetName()
	model, isDeclared := s.declared[name]
	if !isDeclared {
		allowed := slices.Sorted(maps.Keys(s.declared))
		return refuse("unexpected inference %s '%s', allowed %ss are: %s", side, name, side, strings.Join(allowed, ", "))
	}
	if t.GetDataType() != model.DataType {
		return refuse("unable to load model '%s', configuration expects datatype %s for %s '%s', model provides %s%s",
			c.GetName(), t.GetDataType(), side, name, typePrefix, WireName(model.DataType))
	}
	dims := t.GetDims()
	if t.GetReshape() != nil {
		dims = t.GetReshape().GetShape()
	}
	switch {
	case len(model.Dims) == 0:
		return checkScalar(c.GetName(), name, dims)
	case s.scattered[name]:
		return nil
	case s.ragged[name]:
		return checkRagged(c.GetName(), model)
	default:
		return checkShape(c, model, dims, side == "output")
	}
}

func checkScalar(model, tensor string, dims []int64) error {
	for _, d := range dims {
		if d != 1 {
			return refuse("unable to load model '%s', scalar tensor '%s', should only provide 1 in the model configuration when the model doesn't support batching. Model configuration provided: %s.",
				model, tensor, Shape(dims))
		}
	}
	return nil
}

// checkShape compares shapes. A configured input may fix a dimension that the model leaves open.
// Outputs must be exact.
func checkShape(c *Config, model Tensor, dims []int64, exact bool) error {
	prefix := fmt.Sprintf("model '%s', tensor '%s': ", c.GetName(), model.Name)
	batching := c.GetMaxBatchSize() > 0
	full := dims
	if batching {
		if model.Dims[0] != -1 {
			return refuse("%sfor the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is %s",
				prefix, Shape(model.Dims))
		}
		full = append([]int64{-1}, dims...)
	}
	agree := func(modelDim, configDim int64) bool {
		return modelDim == configDim || !exact && modelDim == -1
	}
	if slices.EqualFunc(model.Dims, full, agree) {
		return nil
	}
	specified := fmt.Sprintf("(shape %s)", Shape(full))
	if batching {
		specified = fmt.Sprintf("(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape %s)", Shape(full))
	}
	return refuse("%sthe model expects %d dimensions (shape %s) but the model configuration specifies %d dimensions %s",
		prefix, len(model.Dims), Shape(model.Dims), len(full), specified)
}

// Shape writes dimensions like Triton's messages: [-1,384].
func Shape(dims []int64) string {
	text := make([]string, len(dims))
	for i, d := range dims {
		text[i] = strconv.FormatInt(d, 10)
	}
	return "[" + strings.Join(text, ",") + "]"
}
