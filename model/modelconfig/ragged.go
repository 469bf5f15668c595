package modelconfig

import (
	"slices"

	"tuner/model/modelconfig/configpb"
)

// checkBatchIO checks the tensors that a server derives from the shapes of a batch's requests, by
// Triton's rules and in its words.
func checkBatchIO(c *Config) error {
	isInput := func(name string) bool {
		return slices.ContainsFunc(c.GetInput(), func(in *configpb.ModelInput) bool { return in.GetName() == name })
	}
	sources := func(side, kind string, names []string) error {
		if len(names) != 1 {
			return refuse("batch %s kind '%s' expects 1 source input, got %d", side, kind, len(names))
		}
		return nil
	}
	for _, b := range c.GetBatchInput() {
		if _, known := configpb.BatchInput_Kind_name[int32(b.GetKind())]; !known {
			return refuse("unknown batch input kind '%s'", "")
		}
		if err := sources("input", b.GetKind().String(), b.GetSourceInput()); err != nil {
			return err
		}
		if t := b.GetDataType(); t != configpb.DataType_TYPE_INT32 && t != configpb.DataType_TYPE_FP32 {
			return refuse("batch input data type must be TYPE_INT32 or TYPE_FP32")
		}
		if name := b.GetSourceInput()[0]; !isInput(name) {
			return refuse("unknown source input name '%s'", name)
		}
	}
	for _, b := range c.GetBatchOutput() {
		if b.GetKind() != configpb.BatchOutput_BATCH_SCATTER_WITH_INPUT_SHAPE {
			return refuse("unknown batch output kind '%s'", "")
		}
		if err := sources("output", b.GetKind().String(), b.GetSourceInput()); err != nil {
			return err
		}
		if name := b.GetSourceInput()[0]; !isInput(name) {
			return refuse("unknown source input name '%s'", name)
		}
		if err := checkTargets(c, b.GetTargetName()); err != nil {
			return err
		}
	}
	return nil
}

// checkTargets checks the outputs of one batch_output.
func checkTargets(c *Config, names []string) error {
	for i, name := range names {
		if !slices.ContainsFunc(c.GetOutput(), func(out *configpb.ModelOutput) bool { return out.GetName() == name }) {
			return refuse("unknown target output name '%s'", name)
		}
		if slices.Contains(names[:i], name) {
			return refuse("target output name '%s' can only be specified once", name)
		}
	}
	return nil
}

// checkBatchInputs checks that the model has the inputs that the server derives.
func (s signature) checkBatchInputs() error {
	for _, b := range s.config.GetBatchInput() {
		for _, name := range b.GetTargetName() {
			model, isDeclared := s.declared[name]
			switch {
			case !isDeclared:
				return refuse("unable to load model '%s', it has no input '%s', which batch_input names", s.config.GetName(), name)
			case model.DataType != b.GetDataType():
				return refuse("unable to load model '%s', configuration expects datatype %s for batch input '%s', model provides %s%s",
					s.config.GetName(), b.GetDataType(), name, typePrefix, WireName(model.DataType))
			}
		}
	}
	return nil
}

// checkRagged checks the model's side of an input whose requests have different shapes: their
// elements come one after the other, in one dimension.
func checkRagged(model string, t Tensor) error {
	if len(t.Dims) != 1 || t.Dims[0] != -1 {
		return refuse("unable to load model '%s', configuration expects model provides input with shape [-1]  for ragged input '%s', model provides %s",
			model, t.Name, Shape(t.Dims))
	}
	return nil
}
