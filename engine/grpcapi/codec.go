package grpcapi

import (
	"errors"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of every other message
	"google.golang.org/grpc/mem"

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
	m.buffer = data.MaterializeToBuffer(c.buffers)
	switch err := m.parse(m.buffer.ReadOnlyData()); {
	case errors.Is(err, errTooMany), errors.Is(err, errContents):
		m.err = fault.Errorf(fault.InvalidArgument, "%v", err)
	case err != nil:
		m.err = errParse
	}
	return nil
}
