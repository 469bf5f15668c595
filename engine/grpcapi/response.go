package grpcapi

import (
	"math"
	"strconv"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"tuner/engine"
	"tuner/engine/fault"
)

// encode serialises a ModelInferResponse. It copies the outputs from the model's memory, so that
// the response may be released afterwards.
func encode(r *engine.Response, c *client) (mem.BufferSlice, error) {
	size := responseSize(r)
	if err := checkSize(size); err != nil {
		return nil, err
	}
	return serialise(c, size, func(b []byte) []byte { return appendResponse(b, r) })
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
	if err := checkSize(size); err != nil {
		return nil, err
	}
	return serialise(c, sizeBytes(2, size), func(b []byte) []byte {
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(size))
		return appendResponse(append(b, finalResponse...), r)
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
// numbers.
func appendResponse(b []byte, r *engine.Response) []byte {
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
		b = appendString(b, 2, nameOf(t.DataType))
		if len(t.Shape) > 0 {
			b = protowire.AppendTag(b, 3, protowire.BytesType)
			b = protowire.AppendVarint(b, uint64(shapeSize(t.Shape)))
			for _, d := range t.Shape {
				b = protowire.AppendVarint(b, uint64(d))
			}
		}
	}
	for i := range r.Outputs {
		b = protowire.AppendTag(b, 6, protowire.BytesType)
		b = protowire.AppendBytes(b, r.Outputs[i].Data)
	}
	return b
}

func outputSize(t *engine.Tensor) int {
	size := sizeString(1, t.Name) + sizeString(2, nameOf(t.DataType))
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
