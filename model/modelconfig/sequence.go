package modelconfig

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"tuner/model/modelconfig/configpb"
)

// Control is an input by which the server tells a model where a request stands in its sequence. Its
// shape is [1].
type Control struct {
	Name     string
	DataType configpb.DataType
	// the two values in wire form; nil in the control for the identity
	False, True []byte
}

// Controls are the controls of a model. nil: the model does not have it.
type Controls struct{ Start, End, Ready, ID *Control }

// All lists the controls that a model has.
func (c Controls) All() []*Control {
	return slices.DeleteFunc([]*Control{c.Start, c.End, c.Ready, c.ID}, func(c *Control) bool { return c == nil })
}

// Names of the kinds of controls, as Triton prints them.
const (
	controlStart = configpb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_START
	controlEnd   = configpb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_END
	controlReady = configpb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_READY
	controlID    = configpb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_CORRID
)

// SequenceControls reads the controls of a configuration. The errors are Triton's, in its order.
func SequenceControls(c *Config) (Controls, error) {
	var out Controls
	for _, kind := range []struct {
		kind configpb.ModelSequenceBatching_Control_Kind
		to   **Control
	}{{controlStart, &out.Start}, {controlEnd, &out.End}, {controlReady, &out.Ready}, {controlID, &out.ID}} {
		name, found, err := findControl(c, kind.kind)
		if err == nil && found != nil {
			if *kind.to, err = newControl(c.GetName(), name, found); err == nil && kind.kind == controlID {
				err = checkIDType(c.GetName(), found.GetDataType())
			}
		}
		if err != nil {
			return Controls{}, err
		}
	}
	return out, nil
}

// findControl returns the control of a kind and the name of its input, or nil.
func findControl(c *Config, kind configpb.ModelSequenceBatching_Control_Kind) (string, *configpb.ModelSequenceBatching_Control, error) {
	seen := map[string]bool{}
	var name string
	var found *configpb.ModelSequenceBatching_Control
	for _, in := range c.GetSequenceBatching().GetControlInput() {
		switch {
		case in.GetName() == "":
			return "", nil, refuse("sequence batching control tensor must have a name for %s", c.GetName())
		case seen[in.GetName()]:
			return "", nil, refuse("sequence batching control tensor '%s' is specified for multiple control kinds for %s", in.GetName(), c.GetName())
		}
		seen[in.GetName()] = true
		for _, control := range in.GetControl() {
			switch {
			case control.GetKind() != kind:
			case found != nil:
				return "", nil, refuse("sequence batching specifies multiple %s tensors for %s", kind, c.GetName())
			default:
				name, found = in.GetName(), control
			}
		}
	}
	return name, found, nil
}

// newControl converts a control.
func newControl(model, name string, c *configpb.ModelSequenceBatching_Control) (*Control, error) {
	ints, floats, bools := c.GetInt32FalseTrue(), c.GetFp32FalseTrue(), c.GetBoolFalseTrue()
	given := 0
	for _, n := range []int{len(ints), len(floats), len(bools)} {
		if n > 0 {
			given++
		}
	}
	kind := c.GetKind()
	switch {
	case kind == controlID && given > 0:
		return nil, refuse("sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for %s for %s", kind, model)
	case kind == controlID:
		return &Control{Name: name, DataType: c.GetDataType()}, nil
	case given == 0:
		return nil, refuse("sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for %s for %s", kind, model)
	case given > 1:
		return nil, refuse("sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for %s for %s", kind, model)
	}
	pair := func(field string, n int) error {
		if n == 2 {
			return nil
		}
		return refuse("sequence batching control '%s' must have exactly 2 entries for %s for %s", field, kind, model)
	}
	word := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	switch {
	case len(ints) > 0:
		if err := pair("int32_false_true", len(ints)); err != nil {
			return nil, err
		}
		return &Control{name, configpb.DataType_TYPE_INT32, word(uint32(ints[0])), word(uint32(ints[1]))}, nil
	case len(floats) > 0:
		if err := pair("fp32_false_true", len(floats)); err != nil {
			return nil, err
		}
		return &Control{name, configpb.DataType_TYPE_FP32, word(math.Float32bits(floats[0])), word(math.Float32bits(floats[1]))}, nil
	}
	if err := pair("bool_false_true", len(bools)); err != nil {
		return nil, err
	}
	bit := map[bool]byte{true: 1}
	return &Control{name, configpb.DataType_TYPE_BOOL, []byte{bit[bools[0]]}, []byte{bit[bools[1]]}}, nil
}

// checkIDType checks the type of the control for the identity.
func checkIDType(model string, t configpb.DataType) error {
	switch t {
	case configpb.DataType_TYPE_UINT64, configpb.DataType_TYPE_INT64, configpb.DataType_TYPE_UINT32, configpb.DataType_TYPE_INT32, configpb.DataType_TYPE_STRING:
		return nil
	}
	return refuse("unexpected data type for control %s for %s. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING", controlID, model)
}

// maxSequenceSlots is the largest number of sequences that an instance serves at the same time. Each
// takes some 100 bytes, and its state.
const maxSequenceSlots = 1 << 20

// SequenceSlots returns the number of sequences that an instance serves at the same time.
func SequenceSlots(c *Config) int {
	if n := c.GetSequenceBatching().GetOldest().GetMaxCandidateSequences(); n > 0 {
		return int(n)
	}
	return max(1, int(c.GetMaxBatchSize()))
}

// checkSequenceBatching checks strategy, controls and states.
func checkSequenceBatching(c *Config) []error {
	s := c.GetSequenceBatching()
	if s == nil {
		return nil
	}
	var errs []error
	if c.GetResponseCache().GetEnable() {
		errs = append(errs, refuse("Response Cache does not currently support model %s with sequence batching scheduler. Please disable the response cache.", c.GetName()))
	}
	if _, err := SequenceControls(c); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, checkPreferred("sequence batching preferred batch size", c, s.GetOldest().GetPreferredBatchSize())...)
	if u := s.GetDirect().GetMinimumSlotUtilization(); u < 0 || u > 1 {
		errs = append(errs, refuse("sequence batching minimum slot utilization must be in range (0.0, 1.0] for %s", c.GetName()))
	}
	if n := SequenceSlots(c); n > maxSequenceSlots {
		errs = append(errs, refuse("sequence batching has %d slots in each instance of %s; this engine has %d at most", n, c.GetName(), maxSequenceSlots))
	}
	return errs
}

// InternalError has the reason for an error that Triton classes as internal, unlike all others here.
type InternalError struct{ Reason string }

func (e *InternalError) Error() string { return e.Reason }

// checkControls checks the controls against the model, like the onnxruntime backend.
func checkControls(c *Config, io ModelIO) error {
	controls, err := SequenceControls(c)
	if err != nil {
		return err
	}
	for _, control := range controls.All() {
		i := slices.IndexFunc(io.Inputs, func(t Tensor) bool { return t.Name == control.Name })
		if i < 0 {
			return &InternalError{fmt.Sprintf("configuration specified sequence control '%s', but model does not provide that input", control.Name)}
		}
		in := io.Inputs[i]
		dims := in.Dims
		if c.GetMaxBatchSize() > 0 && len(dims) > 0 {
			dims = dims[1:]
		}
		if len(dims) != 1 || dims[0] != 1 {
			return refuse("unable to load model '%s', sequence control '%s' in model has dims %s but dims [1] is expected", c.GetName(), control.Name, Shape(dims))
		}
		if in.DataType != control.DataType {
			return refuse("unable to load model '%s', sequence control '%s', the model expects data-type %s but the model configuration specifies data-type %s",
				c.GetName(), control.Name, WireName(in.DataType), control.DataType)
		}
	}
	return nil
}

// checkStates checks names and types of the states against the model. Triton does not: there, each
// request fails. Shapes are those that the model gives.
func checkStates(c *Config, io ModelIO) error {
	for _, state := range c.GetSequenceBatching().GetState() {
		for _, end := range []struct {
			side, name string
			declared   []Tensor
		}{{"input", state.GetInputName(), io.Inputs}, {"output", state.GetOutputName(), io.Outputs}} {
			i := slices.IndexFunc(end.declared, func(t Tensor) bool { return t.Name == end.name })
			switch {
			case i < 0:
				return refuse("unexpected %s state '%s' for model '%s', which has no such %s", end.side, end.name, c.GetName(), end.side)
			case end.declared[i].DataType != state.GetDataType():
				return refuse("unable to load model '%s', configuration expects datatype %s for %s state '%s', model provides %s%s",
					c.GetName(), state.GetDataType(), end.side, end.name, typePrefix, WireName(end.declared[i].DataType))
			}
		}
	}
	return nil
}
