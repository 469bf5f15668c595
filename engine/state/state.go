// Package state makes the inputs that a server adds to the requests of a sequence, and keeps what a
// model remembers of it. Controls say where a request stands in its sequence. States are outputs of
// the model that are inputs of the next request of the same sequence (implicit state).
//
// The states lie in the slots of an instance, which package engine/sequence assigns. The package runs
// nothing, and knows no requests.
package state

import (
	"encoding/binary"
	"fmt"
	"slices"

	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/sequence"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Spec has the controls and states of a model, prepared at load.
type Spec struct {
	batched  bool // the model has a batch dimension
	controls modelconfig.Controls
	states   []spec
	most     int // largest size of a state in a slot, in bytes; see maxStateBytes
}

// spec is one state.
type spec struct {
	input, output string
	dataType      configpb.DataType
	initial       value // at the start of a sequence
}

// value is a state without the batch dimension.
type value struct {
	shape []int64
	data  []byte
}

// maxStateBytes bounds the states of a model whose sizes depend on the requests, in all slots and
// instances together. A fixed size is the operator's matter.
const maxStateBytes = 1 << 30

// New reads controls and states from a complete configuration. slots is the number of all slots of
// the model. readFile reads an initial state, with at most limit bytes.
func New(c *modelconfig.Config, slots int, readFile func(name string, limit int64) ([]byte, error)) (*Spec, error) {
	controls, err := modelconfig.SequenceControls(c)
	if err != nil {
		return nil, err
	}
	s := &Spec{batched: c.GetMaxBatchSize() > 0, controls: controls, most: maxStateBytes / max(slots, 1)}
	for _, state := range c.GetSequenceBatching().GetState() {
		one := spec{input: state.GetInputName(), output: state.GetOutputName(), dataType: state.GetDataType()}
		for _, other := range s.states {
			if other.input == one.input || other.output == one.output {
				return nil, fmt.Errorf("state '%s' of model '%s' has an input or output that another state has", one.input, c.GetName())
			}
		}
		if one.initial, err = initial(state, readFile); err != nil {
			return nil, err
		}
		s.states = append(s.states, one)
	}
	return s, nil
}

// maxInitialBytes bounds an initial state.
const maxInitialBytes = 1 << 30

// initial returns the value of a state at the start of a sequence: zeros, unless the configuration
// has another. Open dimensions are 1. The texts are Triton's.
func initial(state *configpb.ModelSequenceBatching_State, readFile func(string, int64) ([]byte, error)) (value, error) {
	name := state.GetInputName()
	if len(state.GetInitialState()) == 0 {
		var v value
		for _, d := range state.GetDims() {
			if d < 0 {
				d = 1
			}
			v.shape = append(v.shape, d)
		}
		var err error
		v.data, err = zeros(name, state.GetDataType(), v.shape)
		return v, err
	}
	first := state.GetInitialState()[0]
	switch {
	case len(state.GetInitialState()) > 1:
		//lint:ignore ST1005 Triton's wording
		return value{}, fmt.Errorf("initial_state field for state input '%s' must contain exactly one or zero element. Found '%d' elements.", name, len(state.GetInitialState()))
	case first.GetDataType() != state.GetDataType():
		//lint:ignore ST1005 Triton's wording
		return value{}, fmt.Errorf("The data type used for 'initial_state' field of state '%s' does not match the state data type.", name)
	case first.GetName() == "":
		//lint:ignore ST1005 Triton's wording
		return value{}, fmt.Errorf("Field 'name' must be set when using initial_state for state input '%s'.", name)
	case len(first.GetDims()) != len(state.GetDims()):
		//lint:ignore ST1005 Triton's wording
		return value{}, fmt.Errorf("Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input '%s'. %d != %d", name, len(first.GetDims()), len(state.GetDims()))
	}
	for i, d := range first.GetDims() {
		if d < 0 {
			//lint:ignore ST1005 Triton's wording
			return value{}, fmt.Errorf("'initial_state' field for state input name '%s' contains variable dimensions.", name)
		}
		if want := state.GetDims()[i]; want != -1 && want != d {
			return value{}, fmt.Errorf("'initial_state' dim for input name '%s' doesn't match 'state' dim description. %d != %d", name, d, want)
		}
	}
	v := value{shape: slices.Clone(first.GetDims())}
	var err error
	if v.data, err = zeros(name, state.GetDataType(), v.shape); err != nil {
		return value{}, err
	}
	switch from := first.GetStateData().(type) {
	case *configpb.ModelSequenceBatching_InitialState_ZeroData:
		return v, nil
	case *configpb.ModelSequenceBatching_InitialState_DataFile:
		file, err := readFile(from.DataFile, maxInitialBytes)
		switch {
		case err != nil:
			return value{}, err
		case state.GetDataType() == configpb.DataType_TYPE_STRING:
			v.data = file
		case len(file) < len(v.data):
			//lint:ignore ST1005 Triton's wording
			return value{}, fmt.Errorf("initial_state setting expects %d bytes, but the data provided from %sonly has %d bytes.", len(v.data), from.DataFile, len(file))
		default:
			v.data = file[:len(v.data)]
		}
		return v, nil
	}
	return value{}, fmt.Errorf("initial_state setting expects state'%s' to have state_data set", name)
}

// zeros returns the data of a tensor of zeros, or of empty strings.
func zeros(name string, t configpb.DataType, shape []int64) ([]byte, error) {
	width := modelconfig.ByteSize(t)
	if width == 0 {
		width = 4
	}
	size := int64(width)
	for _, d := range shape {
		if d < 0 || d > 0 && size > maxInitialBytes/d {
			return nil, fmt.Errorf("the initial value of state '%s' has more than %d bytes: shape %s", name, maxInitialBytes, modelconfig.Shape(shape))
		}
		size *= d
	}
	return make([]byte, size), nil
}

// CheckID refuses an identity that the model's control cannot have. The text is Triton's.
func (s *Spec) CheckID(model string, id sequence.ID) error {
	control := s.controls.ID
	if control == nil || id == (sequence.ID{}) {
		return nil
	}
	if isText := control.DataType == configpb.DataType_TYPE_STRING; isText == (id.Text != "") {
		return nil
	}
	got := "UINT64"
	if id.Text != "" {
		got = "BYTES"
	}
	return fmt.Errorf("sequence batching control '%s' data-type is '%s', but model '%s' expects '%s'", control.Name, got, model, modelconfig.WireName(control.DataType))
}

// Adds reports whether the server adds an input of this name.
func (s *Spec) Adds(input string) bool {
	return slices.ContainsFunc(s.controls.All(), func(c *modelconfig.Control) bool { return c.Name == input }) ||
		slices.ContainsFunc(s.states, func(one spec) bool { return one.input == input })
}

// Input is an input of a batch: the data of its rows, in wire form.
type Input struct {
	Name     string
	DataType configpb.DataType
	Shape    []int64 // of the whole batch
	Parts    [][]byte
}

// Row says what a row of a batch is.
type Row struct {
	Slot       int
	ID         sequence.ID
	Start, End bool
	Vacant     bool // the model must ignore the row
}

// Slots are the slots of one instance, with their states. One goroutine at a time uses them.
type Slots struct {
	spec    *Spec
	outputs []string
	held    [][]value // by slot, then by state; nil: no sequence has started in it
	// memory of the last inputs, used again
	inputs []Input
	ids    []byte
}

// NewSlots makes n slots.
func (s *Spec) NewSlots(n int) *Slots {
	out := &Slots{spec: s, held: make([][]value, n)}
	for i := range s.states {
		out.outputs = append(out.outputs, s.states[i].output)
	}
	return out
}

// Outputs lists the outputs that are states, in the order of Update.
func (s *Slots) Outputs() []string { return s.outputs }

// Inputs returns the inputs to add to a batch. They are valid until the next call. The rows that are
// vacant have the states of the first row that is not.
func (s *Slots) Inputs(rows []Row) []Input {
	n := 0
	add := func(name string, t configpb.DataType) *Input {
		if n == len(s.inputs) {
			s.inputs = append(s.inputs, Input{})
		}
		in := &s.inputs[n]
		n++
		*in = Input{name, t, in.Shape[:0], in.Parts[:0]}
		if s.spec.batched {
			in.Shape = append(in.Shape, int64(len(rows)))
		}
		return in
	}
	c := &s.spec.controls
	for _, control := range []struct {
		*modelconfig.Control
		isTrue func(*Row) bool
	}{
		{c.Start, func(r *Row) bool { return r.Start }},
		{c.End, func(r *Row) bool { return r.End }},
		{c.Ready, func(*Row) bool { return true }},
	} {
		if control.Control == nil {
			continue
		}
		in := add(control.Name, control.DataType)
		in.Shape = append(in.Shape, 1)
		for i := range rows {
			part := control.False
			if !rows[i].Vacant && control.isTrue(&rows[i]) {
				part = control.True
			}
			in.Parts = append(in.Parts, part)
		}
	}
	if c.ID != nil {
		s.identities(add(c.ID.Name, c.ID.DataType), rows)
	}
	s.begin(rows)
	first := slices.IndexFunc(rows, func(r Row) bool { return !r.Vacant })
	for k := range s.spec.states {
		in := add(s.spec.states[k].input, s.spec.states[k].dataType)
		in.Shape = append(in.Shape, s.held[rows[first].Slot][k].shape...)
		for i := range rows {
			from := rows[i].Slot
			if rows[i].Vacant {
				from = rows[first].Slot
			}
			in.Parts = append(in.Parts, s.held[from][k].data)
		}
	}
	return s.inputs[:n]
}

// identities fills the input for the identities. Vacant rows have none: zero, or an empty text.
func (s *Slots) identities(in *Input, rows []Row) {
	in.Shape = append(in.Shape, 1)
	s.ids = s.ids[:0]
	width := modelconfig.ByteSize(in.DataType)
	var ends []int
	for i := range rows {
		id := rows[i].ID
		if rows[i].Vacant {
			id = sequence.ID{}
		}
		if width == 0 {
			s.ids = append(binary.LittleEndian.AppendUint32(s.ids, uint32(len(id.Text))), id.Text...)
		} else {
			from := len(s.ids)
			s.ids = binary.LittleEndian.AppendUint64(s.ids, id.Number)[:from+width] // the low bytes, as in Triton
		}
		ends = append(ends, len(s.ids))
	}
	from := 0
	for _, to := range ends {
		in.Parts = append(in.Parts, s.ids[from:to:to])
		from = to
	}
}

// begin gives the slots in which a sequence starts its initial states.
func (s *Slots) begin(rows []Row) {
	if len(s.spec.states) == 0 {
		return
	}
	for i := range rows {
		r := &rows[i]
		if r.Vacant || !r.Start && s.held[r.Slot] != nil {
			continue
		}
		if s.held[r.Slot] == nil {
			s.held[r.Slot] = make([]value, len(s.spec.states))
		}
		for k := range s.spec.states {
			s.set(r.Slot, k, s.spec.states[k].initial.shape, s.spec.states[k].initial.data)
		}
	}
}

// set copies a state.
func (s *Slots) set(slot, k int, shape []int64, data []byte) {
	v := &s.held[slot][k]
	v.shape = append(v.shape[:0], shape...)
	if cap(v.data) > 2*len(data) {
		v.data = nil // a slot does not keep the memory of a sequence with large states
	}
	v.data = append(v.data[:0], data...)
}

// Update stores the states of a row, as the model has computed them: all, or none with an error. Shapes are
// without the batch dimension.
func (s *Slots) Update(r Row, states []request.Tensor) error {
	if r.Vacant {
		return nil
	}
	for k := range states {
		if n := len(states[k].Data); n > s.spec.most && n > len(s.spec.states[k].initial.data) {
			return fault.Errorf(fault.Unavailable, "state '%s' has grown to %d bytes, and the slots of this model have %d each", s.spec.states[k].output, n, s.spec.most)
		}
	}
	for k := range states {
		s.set(r.Slot, k, states[k].Shape, states[k].Data)
	}
	return nil
}
