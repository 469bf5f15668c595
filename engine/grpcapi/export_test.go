package grpcapi

import (
	"context"

	"google.golang.org/grpc/mem"
)

// Infer serves a message of ModelInfer as gRPC would, which calls with the context of a stream.
func (f *Frontend) Infer(ctx context.Context, text []byte) error {
	receive := func(m any) error {
		return newCodec(f.service.buffers, f.transit).Unmarshal(mem.BufferSlice{mem.SliceBuffer(text)}, m)
	}
	_, err := serveInfer(f.service, ctx, receive, nil)
	return err
}
