package grpcapi_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"tuner/engine/api"
	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/grpcapi"
)

// resetStream is the stream of a compressed call that has been reset. gRPC refuses to choose the
// compression of its answer.
type resetStream struct{}

func (resetStream) Method() string                        { return "/inference.GRPCInferenceService/ModelInfer" }
func (resetStream) SetHeader(metadata.MD) error           { return nil }
func (resetStream) SendHeader(metadata.MD) error          { return nil }
func (resetStream) SetTrailer(metadata.MD) error          { return nil }
func (resetStream) RecvCompress() string                  { return "gzip" }
func (resetStream) ClientAdvertisedCompressors() []string { return nil }

// A compressed call whose client resets it, once its message has been read, gives back all that it
// took. So its model can be unloaded.
func TestResetCallsLeaveNothing(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	b := budget.New(1 << 20)
	f, _ := serve(t, e, grpcapi.Options{Memory: b})
	text, err := proto.Marshal(request())
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := f.Infer(grpc.NewContextWithServerTransportStream(t.Context(), resetStream{}), text); err == nil {
			t.Fatal("it is answered")
		}
	}
	until(t, b, "after the calls", nothing)
	if err := e.Server.Unload(e.Model); err != nil {
		t.Fatal(err)
	}
	state := func() string {
		index, err := e.Server.Index(false)
		if err != nil || len(index) != 1 {
			t.Fatal(index, err)
		}
		return index[0].State
	}
	for end := time.Now().Add(patience); state() != api.StateUnavailable; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the model is %s", state())
		}
	}
}

// A server that is stopped before it serves was stopped as it should be.
func TestShutdownBeforeServe(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := grpcapi.New(enginetest.Start(t, enginetest.Options{}).Server, grpcapi.Options{})
	if err := errors.Join(f.Shutdown(t.Context()), f.Serve(l)); err != nil {
		t.Error(err)
	}
}
