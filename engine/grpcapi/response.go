package grpcapi

import (
	"math"
	"strconv"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/engine/grpcapi/datatype"
	"tuner/engine/grpcapi/lent"
)

// encode serialises a ModelInferResponse. The response may be released afterwards.
func encode(r *engine.Response, c *client) (mem.BufferSlice, error) {
	size := responseSize(r)
	return encodeSize(r, c, size, size, func(b []byte) []byte { return b })
}

// encodeSize serialises a message of some bytes in all: what begin appends, and the response, which has
// size bytes. Large outputs stay in the model's memory until they are sent, where they can. The others are
// copied.
func encodeSize(r *engine.Response, c *client, whole, size int, begin func([]byte) []byte) (mem.BufferSlice, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	least, large := math.MaxInt, 0
	for i := range r.Outputs {
		if n := len(r.Outputs[i].Data); n >= lent.Least {
			large += n
		}
	}
	var free func()
	if c != nil && large > 0 {
		if bytes, release, ok := r.Keep(); ok {
			least, whole, free = lent.Least, whole-large, c.lend(bytes, release)
		}
	}
	var at []int
	var outputs [][]byte
	text, err := serialise(c, whole, func(b []byte) []byte {
		b, at, outputs = appendResponse(begin(b), r, least)
		return b
	})
	switch {
	case free == nil:
		return text, err
	case err != nil:
		free()
		return nil, err
	}
	return lent.Join(text[0], at, outputs, free), nil
}

// finalResponse is the entry triton_final_response = true of ModelInferResponse.parameters. All
// answers on a stream have it, since models answer a request once.
var finalResponse = appendFinalResponse()

// ofSequence returns the parameters that Triton adds to the answer of an ensemble: the request's place
// in a sequence.
func ofSequence(r *engine.Response) []byte {
	id := protowire.AppendVarint(protowire.AppendTag(nil, int64Param, protowire.VarintType), r.Sequence.Number)
	if r.Sequence.Text != "" {
		id = protowire.AppendString(protowire.AppendTag(nil, stringParam, protowire.BytesType), r.Sequence.Text)
	}
	flag := func(is bool) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, boolParam, protowire.VarintType), protowire.EncodeBool(is))
	}
	var b []byte
	for _, one := range []struct {
		name  string
		value []byte
	}{{"sequence_id", id}, {"sequence_start", flag(r.Start)}, {"sequence_end", flag(r.End)}} {
		entry := appendString(nil, 1, one.name)
		entry = protowire.AppendBytes(protowire.AppendTag(entry, 2, protowire.BytesType), one.value)
		b = protowire.AppendBytes(protowire.AppendTag(b, 4, protowire.BytesType), entry)
	}
	return b
}

func appendFinalResponse() []byte {
	entry := appendString(nil, 1, "triton_final_response")
	entry = protowire.AppendTag(entry, 2, protowire.BytesType)
	entry = protowire.AppendBytes(entry, []byte{byte(boolParam) << 3, 1})
	return protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), entry)
}

// encodeStreamed serialises a ModelStreamInferResponse with a response.
func encodeStreamed(r *engine.Response, c *client) (mem.BufferSlice, error) {
	size := responseSize(r) + len(finalResponse)
	return encodeSize(r, c, sizeBytes(2, size), size, func(b []byte) []byte {
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(size))
		return append(b, finalResponse...)
	})
}

// encodeRefusal serialises a ModelStreamInferResponse to a request that was not accepted: the
// error, and a response that has only the request's id.
func encodeRefusal(text string, m *message) mem.BufferSlice {
	return encodeError(text, appendString(nil, 3, string(m.id)))
}

// encodeFailure serialises a ModelStreamInferResponse to a request that was accepted and failed.
func encodeFailure(text string, m *message) mem.BufferSlice {
	response := appendString(nil, 1, string(m.model))
	response = appendString(response, 2, string(m.version))
	response = appendString(response, 3, string(m.id))
	return encodeError(text, append(response, finalResponse...))
}

func encodeError(text string, response []byte) mem.BufferSlice {
	b := appendString(nil, 1, text)
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	return mem.BufferSlice{mem.SliceBuffer(protowire.AppendBytes(b, response))}
}

// checkSize refuses an answer that is larger than gRPC's messages may be.
func checkSize(size int) error {
	if size > math.MaxInt32 {
		return fault.Errorf(fault.InvalidArgument, "Response has byte size %d which exceeds gRPC's byte size limit %d.", size, math.MaxInt32)
	}
	return nil
}

// serialise passes a buffer of the given size to write, which must fill it. The charge of the call
// covers a small one.
func serialise(c *client, size int, write func([]byte) []byte) (mem.BufferSlice, error) {
	if c == nil || mem.IsBelowBufferPoolingThreshold(size) {
		return mem.BufferSlice{mem.SliceBuffer(write(make([]byte, 0, size)))}, nil
	}
	b := c.take(size)
	if b == nil {
		return nil, fault.Full(c.account)
	}
	write((*b)[:0])
	return mem.BufferSlice{mem.NewBuffer(b, sent{c})}, nil
}

func responseSize(r *engine.Response) int {
	size := sizeString(1, r.Model) + sizeString(2, strconv.FormatInt(r.Version, 10)) + sizeString(3, r.ID)
	if r.IsComposed {
		size += len(ofSequence(r))
	}
	for i := range r.Outputs {
		size += sizeBytes(5, outputSize(&r.Outputs[i])) + sizeBytes(6, len(r.Outputs[i].Data))
	}
	return size
}

// appendResponse writes a ModelInferResponse as protobuf does, fields in the order of their
// numbers. It leaves out the data of outputs of at least some bytes. It returns these, and how many bytes of
// b stand before each.
func appendResponse(b []byte, r *engine.Response, least int) (text []byte, at []int, outputs [][]byte) {
	b = appendString(b, 1, r.Model)
	b = appendString(b, 2, strconv.FormatInt(r.Version, 10))
	b = appendString(b, 3, r.ID)
	if r.IsComposed {
		b = append(b, ofSequence(r)...)
	}
	for i := range r.Outputs {
		t := &r.Outputs[i]
		b = protowire.AppendTag(b, 5, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(outputSize(t)))
		b = appendString(b, 1, t.Name)
		b = appendString(b, 2, datatype.Name(t.DataType))
		if len(t.Shape) > 0 {
			b = protowire.AppendTag(b, 3, protowire.BytesType)
			b = protowire.AppendVarint(b, uint64(shapeSize(t.Shape)))
			for _, d := range t.Shape {
				b = protowire.AppendVarint(b, uint64(d))
			}
		}
	}
	for i := range r.Outputs {
		data := r.Outputs[i].Data
		b = protowire.AppendTag(b, 6, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(len(data)))
		if len(data) < least {
			b = append(b, data...)
			continue
		}
		at, outputs = append(at, len(b)), append(outputs, data)
	}
	return b, at, outputs
}

func outputSize(t *engine.Tensor) int {
	size := sizeString(1, t.Name) + sizeString(2, datatype.Name(t.DataType))
	if len(t.Shape) > 0 {
		size += sizeBytes(3, shapeSize(t.Shape))
	}
	return size
}

func shapeSize(shape []int64) int {
	size := 0
	for _, d := range shape {
		size += protowire.SizeVarint(uint64(d))
	}
	return size
}

// sizeBytes returns the size of a field of n bytes.
func sizeBytes(number protowire.Number, n int) int {
	return protowire.SizeTag(number) + protowire.SizeBytes(n)
}

// sizeString returns the size of a string field, which is left out when it is empty.
func sizeString(number protowire.Number, s string) int {
	if s == "" {
		return 0
	}
	return sizeBytes(number, len(s))
}

func appendString(b []byte, number protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), s)
}
