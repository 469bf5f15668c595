package grpcapi

import (
	"errors"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of every other message
	"google.golang.org/grpc/mem"

	"tuner/engine"
	"tuner/engine/budget"
)

// codec serialises inferences by hand, so that a tensor is copied at most once in each direction, and leaves every other
// message to protobuf.
type codec struct {
	encoding.CodecV2
	buffers *buffers
	transit *budget.Account // of messages between their frames and their call
}

func newCodec(b *buffers, transit *budget.Account) codec {
	return codec{encoding.GetCodecV2("proto"), b, transit}
}

// Marshal passes on a mem.BufferSlice, which is serialised already.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if serialised, ok := v.(mem.BufferSlice); ok {
		return serialised, nil
	}
	return c.CodecV2.Marshal(v)
}

// errParse is what gRPC's C++ servers answer to bytes that are no message.
var errParse = engine.Errorf(engine.Internal, "Unable to parse request")

// Unmarshal reads a *message, which keeps the buffer until it is reset. Bytes that are no message, or one that there is no
// room for, are the message's error, so that the handler words the answer.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*message)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	m.reset()
	m.size = data.Len()
	if len(data) > 1 { // they are put together
		if !c.transit.Take(m.size) {
			m.err = engine.Full(c.transit)
			return nil
		}
		m.transit, m.copied = c.transit, m.size
	}
	m.buffer = data.MaterializeToBuffer(c.buffers)
	switch err := m.parse(m.buffer.ReadOnlyData()); {
	case errors.Is(err, errTooMany), errors.Is(err, errContents):
		m.err = engine.Errorf(engine.InvalidArgument, "%v", err)
	case err != nil:
		m.err = errParse
	}
	return nil
}
