package grpcapi

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"tuner/engine"
	"tuner/engine/budget"
	"tuner/engine/sharedmemory"
)

// message is a ModelInferRequest whose names and contents lie in the received buffer. Messages are
// pooled with the request made from them, so that a steady load allocates little.
type message struct {
	model, version, id []byte
	parameters         []parameter
	inputs             []input
	outputs            []output
	raw                [][]byte

	elements int        // in all lists
	contents int        // bytes of all typed contents
	err      error      // the bytes are not a ModelInferRequest
	buffer   mem.Buffer // memory of the slices above; nil: nothing was received
	request  engine.Request
	regions  *sharedmemory.Regions
	loan     sharedmemory.Loan // tensors in regions
	reading  reading

	size    int             // bytes of the received message
	copied  int             // part of size: bytes of a copy, charged to transit
	transit *budget.Account // nil: not charged, as for the client
	charged int             // bytes charged to the client's account, which is the request's
}

// input is an InferInputTensor.
type input struct {
	name, dataType []byte
	shape          []int64
	parameters     []parameter
	contents       *contents // nil: the field is missing
}

// output is an InferRequestedOutputTensor.
type output struct {
	name       []byte
	parameters []parameter
}

// parameter is an entry of a map of InferParameter.
type parameter struct {
	key  []byte
	kind protowire.Number // which field of the oneof is set; 0: none
	bits uint64           // bool, int64, uint64, or the bits of a double
	text []byte           // string
}

// rawContents is the field of ModelInferRequest with a tensor in wire form.
const rawContents protowire.Number = 7

// Fields of InferParameter's oneof.
const (
	boolParam   protowire.Number = 1
	int64Param  protowire.Number = 2
	stringParam protowire.Number = 3
	doubleParam protowire.Number = 4
	uint64Param protowire.Number = 5
)

const (
	// maxElements bounds the tensors, dimensions and parameters in a message. An element takes two
	// bytes on the wire and a hundred in memory.
	maxElements = 1 << 16
	// maxContents bounds the typed contents of a message, in bytes on the wire. The HTTP front end
	// has the same bound for its JSON.
	maxContents = 64 << 20
	// maxPooled bounds the elements of a message that is kept for the next request.
	maxPooled = 64
)

// pool has the messages that are not in use.
type pool struct{ messages sync.Pool }

func (p *pool) take() *message {
	if m, ok := p.messages.Get().(*message); ok {
		return m
	}
	return &message{}
}

// put frees the received buffer. No part of the message may be in use.
func (p *pool) put(m *message) {
	small := m.elements <= maxPooled
	m.reset()
	if small {
		p.messages.Put(m)
	}
}

// reset empties the message and frees the received buffer. Lists keep their memory.
func (m *message) reset() {
	m.request.Trace, m.reading = nil, reading{}
	if m.buffer != nil {
		m.buffer.Free()
		m.buffer = nil
	}
	m.loan.Return()
	m.transit.Give(m.copied)
	m.request.Memory.Give(m.charged)
	m.size, m.copied, m.transit, m.charged, m.request.Memory = 0, 0, nil, 0, nil
	m.model, m.version, m.id, m.err = nil, nil, nil, nil
	m.contents = 0
	for i := range m.inputs {
		in := &m.inputs[i]
		*in = input{shape: in.shape[:0], parameters: emptied(in.parameters)}
	}
	for i := range m.outputs {
		m.outputs[i] = output{parameters: emptied(m.outputs[i].parameters)}
	}
	for i := range m.request.Inputs {
		m.request.Inputs[i].Data = nil
	}
	m.inputs, m.outputs, m.elements = m.inputs[:0], m.outputs[:0], 0
	m.parameters, m.raw = emptied(m.parameters), emptied(m.raw)
}

// emptied returns the list without its elements, and without their references.
func emptied[T any](list []T) []T {
	clear(list)
	return list[:0]
}

// Errors of invalid messages.
var (
	errMalformed = errors.New("proto: cannot parse invalid wire-format data")
	errUTF8      = errors.New("proto: string field contains invalid UTF-8")
	errTooMany   = fmt.Errorf("the message lists more than %d tensors, dimensions and parameters", maxElements)
	errContents  = fmt.Errorf("the message has more than %d bytes of typed contents, use raw_input_contents", maxContents)
)

// field is one field of a message on the wire.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  []byte // of BytesType
	bits   uint64 // of VarintType, Fixed32Type and Fixed64Type
}

// is reports whether the field has that number and kind. A field of another kind than declared is
// ignored, as unknown fields are.
func (f *field) is(number protowire.Number, kind protowire.Type) bool {
	return f.number == number && f.kind == kind
}

// text stores a string field.
func (f *field) text(out *[]byte) error {
	if !utf8.Valid(f.value) {
		return errUTF8
	}
	*out = f.value
	return nil
}

// next reads the first field of a serialised message.
func next(b []byte) (f field, rest []byte, err error) {
	tag, n := protowire.ConsumeVarint(b)
	if n < 0 || tag>>3 < uint64(protowire.MinValidNumber) || tag>>3 > uint64(protowire.MaxValidNumber) {
		return f, nil, errMalformed
	}
	b = b[n:]
	f.number, f.kind = protowire.Number(tag>>3), protowire.Type(tag&7)
	switch f.kind {
	case protowire.BytesType:
		f.value, n = protowire.ConsumeBytes(b)
	case protowire.VarintType:
		f.bits, n = protowire.ConsumeVarint(b)
	case protowire.Fixed32Type:
		var short uint32
		short, n = protowire.ConsumeFixed32(b)
		f.bits = uint64(short)
	case protowire.Fixed64Type:
		f.bits, n = protowire.ConsumeFixed64(b)
	default:
		n = protowire.ConsumeFieldValue(f.number, f.kind, b)
	}
	if n < 0 {
		return f, nil, errMalformed
	}
	return f, b[n:], nil
}

// count checks that the message does not list too many elements.
func (m *message) count() error {
	if m.elements++; m.elements > maxElements {
		return errTooMany
	}
	return nil
}

// eachField passes the fields of a serialised message to take, in their order, until one fails.
// They share its memory.
func eachField(b []byte, take func(f *field) error) error {
	var f field
	for len(b) > 0 {
		var err error
		if f, b, err = next(b); err == nil {
			err = take(&f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parse reads a serialised ModelInferRequest into an empty message, which then refers to b. It
// accepts the same messages as protobuf, except those that list too many elements.
func (m *message) parse(b []byte) error {
	err := eachField(b, func(f *field) error {
		if f.kind != protowire.BytesType {
			return nil
		}
		return m.set(f)
	})
	m.parameters = lastOfEach(m.parameters)
	return err
}

// set reads a field of the request.
func (m *message) set(f *field) error {
	switch f.number {
	case 1:
		return f.text(&m.model)
	case 2:
		return f.text(&m.version)
	case 3:
		return f.text(&m.id)
	case 4:
		return m.parseParameter(&m.parameters, f.value)
	case 5:
		// reuses the lists of an earlier element
		m.inputs = slices.Grow(m.inputs, 1)[:len(m.inputs)+1]
		return m.parseInput(&m.inputs[len(m.inputs)-1], f.value)
	case 6:
		m.outputs = slices.Grow(m.outputs, 1)[:len(m.outputs)+1]
		return m.parseOutput(&m.outputs[len(m.outputs)-1], f.value)
	case rawContents:
		m.raw = append(m.raw, f.value)
		return m.count()
	default:
		return nil
	}
}

func (m *message) parseInput(in *input, b []byte) error {
	if err := m.count(); err != nil {
		return err
	}
	err := eachField(b, func(f *field) error {
		switch {
		case f.is(3, protowire.VarintType):
			return m.addDimension(in, f.bits)
		case f.kind != protowire.BytesType:
		case f.number == 1:
			return f.text(&in.name)
		case f.number == 2:
			return f.text(&in.dataType)
		case f.number == 3:
			return m.parseShape(in, f.value)
		case f.number == 4:
			return m.parseParameter(&in.parameters, f.value)
		case f.number == 5:
			return m.parseContents(in, f.value)
		}
		return nil
	})
	in.parameters = lastOfEach(in.parameters)
	return err
}

// parseShape reads dimensions in packed form.
func (m *message) parseShape(in *input, b []byte) error {
	for len(b) > 0 {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return errMalformed
		}
		if err := m.addDimension(in, v); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (m *message) addDimension(in *input, bits uint64) error {
	in.shape = append(in.shape, int64(bits))
	return m.count()
}

// parseContents checks and counts typed contents. They are decoded when the type of their tensor is
// known. A second occurrence is merged.
func (m *message) parseContents(in *input, b []byte) error {
	if m.contents += len(b); m.contents > maxContents {
		return errContents
	}
	if in.contents == nil {
		in.contents = &contents{}
	}
	return in.contents.add(b)
}

func (m *message) parseOutput(out *output, b []byte) error {
	if err := m.count(); err != nil {
		return err
	}
	err := eachField(b, func(f *field) error {
		switch {
		case f.is(1, protowire.BytesType):
			return f.text(&out.name)
		case f.is(2, protowire.BytesType):
			return m.parseParameter(&out.parameters, f.value)
		}
		return nil
	})
	out.parameters = lastOfEach(out.parameters)
	return err
}

// parseParameter reads an entry of a map of InferParameter.
func (m *message) parseParameter(list *[]parameter, b []byte) error {
	if err := m.count(); err != nil {
		return err
	}
	var p parameter
	err := eachField(b, func(f *field) error {
		switch {
		case f.is(1, protowire.BytesType):
			return f.text(&p.key)
		case f.is(2, protowire.BytesType):
			return p.parse(f.value)
		}
		return nil
	})
	*list = append(*list, p)
	return err
}

// parse reads an InferParameter. The last field of its oneof counts.
func (p *parameter) parse(b []byte) error {
	return eachField(b, func(f *field) error {
		switch {
		case f.is(stringParam, protowire.BytesType):
			if err := f.text(&p.text); err != nil {
				return err
			}
			p.kind, p.bits = stringParam, 0
		case f.is(boolParam, protowire.VarintType), f.is(int64Param, protowire.VarintType), f.is(uint64Param, protowire.VarintType),
			f.is(doubleParam, protowire.Fixed64Type):
			p.kind, p.bits, p.text = f.number, f.bits, nil
		}
		return nil
	})
}

// lastOfEach keeps the last of the entries with the same key, as maps do.
func lastOfEach(list []parameter) []parameter {
	if len(list) < 2 {
		return list
	}
	last := make(map[string]int, len(list))
	for i := range list {
		last[string(list[i].key)] = i
	}
	if len(last) == len(list) {
		return list
	}
	kept := list[:0]
	for i := range list {
		if last[string(list[i].key)] == i {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// unsigned returns the parameter as a number from 0.
func (p *parameter) unsigned() (uint64, bool) {
	return p.bits, p.kind == uint64Param || p.kind == int64Param && p.bits <= math.MaxInt64
}
