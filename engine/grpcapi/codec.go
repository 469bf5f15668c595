package grpcapi

import (
	"errors"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of every other message
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"tuner/engine/budget"
	"tuner/engine/buffers"
	"tuner/engine/fault"
)

// codec serialises inferences by hand, so that a tensor is copied at most once in each direction.
// It leaves every other message to protobuf.
type codec struct {
	encoding.CodecV2
	buffers *buffers.Pool
	transit *budget.Account // account of messages between their frames and their call
}

var _ mem.BufferPool = (*buffers.Pool)(nil)

func newCodec(b *buffers.Pool, transit *budget.Account) codec {
	return codec{encoding.GetCodecV2("proto"), b, transit}
}

// Marshal passes on a mem.BufferSlice, which is already serialised.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if serialised, ok := v.(mem.BufferSlice); ok {
		return serialised, nil
	}
	return c.CodecV2.Marshal(v)
}

// errParse is the answer of gRPC's C++ servers to invalid messages.
var errParse = fault.Errorf(fault.Internal, "Unable to parse request")

// Unmarshal reads a *message, which keeps the buffer until it is reset. An invalid message, or one
// without room, gets an error in the message, so that the handler answers it.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*message)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	m.reset()
	m.size = data.Len()
	if len(data) > 1 { // they must be assembled
		if !c.transit.Take(m.size) {
			m.err = fault.Full(c.transit)
			return nil
		}
		m.transit, m.copied = c.transit, m.size
	}
	var whole []byte
	m.buffer, whole = c.assemble(data)
	switch err := m.parse(whole); {
	case errors.Is(err, errTooMany), errors.Is(err, errContents):
		m.err = fault.Errorf(fault.InvalidArgument, "%v", err)
	case err != nil:
		m.err = errParse
	}
	return nil
}

// alignment of the first large tensor in a message that is put together, in bytes: a line of the caches,
// and a multiple of the size of all elements. So the model reads the tensor where it is.
const alignment = 64

// assemble puts a message together. It returns the memory to free, and the message in it.
func (c codec) assemble(data mem.BufferSlice) (memory mem.Buffer, whole []byte) {
	if len(data) < 2 {
		memory = data.MaterializeToBuffer(c.buffers)
		return memory, memory.ReadOnlyData()
	}
	size := data.Len()
	shift := -leading(data[0].ReadOnlyData()) & (alignment - 1)
	if c.buffers.Capacity(size+shift) > c.buffers.Capacity(size) {
		shift = 0 // it is not worth a buffer of twice the size
	}
	b := c.buffers.Get(size + shift)
	whole = (*b)[shift:]
	data.CopyTo(whole)
	return mem.NewBuffer(b, c.buffers), whole
}

// leading returns how many bytes of a ModelInferRequest stand before the first tensor that does not end
// in the first part of the message. 0: no such tensor is found.
func leading(first []byte) int {
	for at := 0; at < len(first); {
		number, kind, n := protowire.ConsumeTag(first[at:])
		if n < 0 || kind != protowire.BytesType {
			return 0
		}
		at += n
		length, n := protowire.ConsumeVarint(first[at:])
		if n < 0 {
			return 0
		}
		if at += n; length > uint64(len(first)-at) {
			if number == rawContents {
				return at
			}
			return 0
		}
		at += int(length)
	}
	return 0
}
