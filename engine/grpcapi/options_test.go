package grpcapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
	"tuner/engine/enginetest"
	"tuner/engine/grpcapi"
	"tuner/engine/grpcapi/compression"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// serve starts another front end of an engine, which ends with the test.
func serve(t *testing.T, e *enginetest.Engine, o grpcapi.Options, dial ...grpc.DialOption) (*grpcapi.Frontend, *grpc.ClientConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := grpcapi.New(e.Server, o)
	served := make(chan error, 1)
	go func() { served <- f.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := errors.Join(conn.Close(), f.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return f, conn
}

func TestRestricted(t *testing.T) {
	t.Parallel()
	const header = "triton-grpc-protocol-key"
	_, conn := serve(t, enginetest.Start(t, enginetest.Options{}), grpcapi.Options{Restricted: api.Restrictions{
		api.CategoryInference: {Header: header, Value: "secret"}, api.CategoryHealth: {Header: header, Value: "secret"},
	}})
	c := pb.NewGRPCInferenceServiceClient(conn)
	for value, want := range map[string]codes.Code{"": codes.Unavailable, "wrong": codes.Unavailable, "secret": codes.OK} {
		ctx := t.Context()
		if value != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, header, value)
		}
		_, inferErr := c.ModelInfer(ctx, request())
		_, healthErr := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		_, metadataErr := c.ServerMetadata(ctx, &pb.ServerMetadataRequest{})
		stream, err := c.ModelStreamInfer(ctx)
		if err == nil {
			err = errors.Join(stream.Send(request()), stream.CloseSend())
		}
		if err == nil || errors.Is(err, io.EOF) {
			_, err = stream.Recv()
		}
		if status.Code(inferErr) != want || status.Code(healthErr) != want || status.Code(err) != want || metadataErr != nil {
			t.Errorf("%q: infer %v, health %v, stream %v; want %v. Metadata, which is open: %v", value, inferErr, healthErr, err, want, metadataErr)
		}
		if text := "This protocol is restricted, expecting header 'triton-grpc-protocol-key'"; want != codes.OK && status.Convert(inferErr).Message() != text {
			t.Errorf("%q: %v, want %s", value, inferErr, text)
		}
	}
}

// encodings records the compression of answers to unary calls.
type encodings struct{ seen []string }

func (e *encodings) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (e *encodings) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (e *encodings) HandleConn(context.Context, stats.ConnStats)                       {}
func (e *encodings) HandleRPC(_ context.Context, s stats.RPCStats) {
	if header, ok := s.(*stats.InHeader); ok {
		e.seen = append(e.seen, header.Compression)
	}
}

// Requests may be compressed. Answers are compressed only if the server was told so, and with the
// method it was told.
func TestCompression(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	for level, want := range map[compression.Level][]string{
		compression.None: {"", "identity", "identity"}, compression.Low: {"gzip", "gzip", "gzip"},
		compression.Medium: {"deflate", "deflate", "deflate"}, compression.High: {"deflate", "deflate", "deflate"},
	} {
		seen := &encodings{}
		_, conn := serve(t, e, grpcapi.Options{Compression: level}, grpc.WithStatsHandler(seen))
		c := pb.NewGRPCInferenceServiceClient(conn)
		for _, with := range []string{"identity", gzip.Name, "deflate"} {
			answer, err := c.ModelInfer(t.Context(), request(), grpc.UseCompressor(with))
			if err != nil || len(answer.GetRawOutputContents()) != 2 {
				t.Errorf("level %d, request %s: %v, %v", level, with, answer, err)
			}
		}
		if !slices.Equal(seen.seen, want) {
			t.Errorf("level %d: answers %q, want %q", level, seen.seen, want)
		}
		stream, err := c.ModelStreamInfer(t.Context(), grpc.UseCompressor("deflate"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stream.Send(request()), stream.CloseSend()); err != nil {
			t.Fatal(err)
		}
		if answer, err := stream.Recv(); err != nil || len(answer.GetInferResponse().GetRawOutputContents()) != 2 {
			t.Errorf("level %d: stream: %v, %v", level, answer, err)
		}
	}
}

// Tensors that fill many frames arrive and leave unchanged.
func TestLargeTensors(t *testing.T) {
	t.Parallel()
	tensor := []modelconfig.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_UINT8, Dims: []int64{-1, -1}}}
	_, c := connect(t, enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{IO: modelconfig.ModelIO{Inputs: tensor, Outputs: tensor}}}))
	for _, size := range []int{1, 1 << 10, 16 << 10, 1<<20 + 1, 3 << 20} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * 7)
		}
		r := &pb.ModelInferRequest{ModelName: "fake", Inputs: []*pb.ModelInferRequest_InferInputTensor{input("X", "UINT8", 1, int64(size))}, RawInputContents: [][]byte{data}}
		answer, err := c.ModelInfer(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.GetRawOutputContents(); len(got) != 1 || !bytes.Equal(got[0], data) {
			t.Errorf("%d bytes: the answer differs", size)
		}
	}
}

// A strict stream ends with the first failed execution. A request that is refused before that is
// answered as on any stream.
func TestStrictStream(t *testing.T) {
	t.Parallel()
	_, c := connect(t, enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{Fail: func(int) error { return errors.New("it broke") }}}))
	answers := func(ctx context.Context, requests ...*pb.ModelInferRequest) ([]*pb.ModelStreamInferResponse, error) {
		stream, err := c.ModelStreamInfer(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range requests {
			if err := stream.Send(r); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		var all []*pb.ModelStreamInferResponse
		for {
			answer, err := stream.Recv()
			if err != nil {
				return all, err
			}
			all = append(all, answer)
		}
	}
	refused := request()
	refused.ModelName = "x"
	strict := metadata.AppendToOutgoingContext(t.Context(), "triton_grpc_error", "true")
	all, err := answers(strict, refused, request(), request())
	if len(all) != 1 || all[0].GetErrorMessage() == "" || status.Code(err) != codes.Internal || status.Convert(err).Message() != "it broke" {
		t.Errorf("strict: %v, %v", all, err)
	}
	all, err = answers(t.Context(), request(), request())
	if len(all) != 2 || !errors.Is(err, io.EOF) {
		t.Fatalf("lenient: %v, %v", all, err)
	}
	r := all[0].GetInferResponse()
	if all[0].GetErrorMessage() != "it broke" || r.GetId() != "1" || r.GetModelName() != "fake" || !r.GetParameters()["triton_final_response"].GetBoolParam() {
		t.Errorf("lenient: %v", all[0])
	}
}

// An idle stream does not prevent the server's end.
func TestShutdownEndsStreams(t *testing.T) {
	t.Parallel()
	f, conn := serve(t, enginetest.Start(t, enginetest.Options{}), grpcapi.Options{})
	stream, err := pb.NewGRPCInferenceServiceClient(conn).ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(request()); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := f.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = stream.Recv()
	if want := "GRPC server is shutting down and has stopped accepting new requests."; status.Code(err) != codes.Unavailable || status.Convert(err).Message() != want {
		t.Errorf("after the end: %v, want %s", err, want)
	}
}

// A stream whose client always has requests in flight ends too. The queued requests are answered,
// and no more are started.
func TestShutdownEndsBusyStreams(t *testing.T) {
	t.Parallel()
	const more = 100 // requests that the client sends after the end was announced
	running, proceed := make(chan struct{}, 2+more), make(chan struct{})
	backend := &enginetest.Backend{Fail: func(int) error { running <- struct{}{}; <-proceed; return nil }}
	e := enginetest.Start(t, enginetest.Options{Backend: backend, Config: "max_batch_size: 1 dynamic_batching {} instance_group { count: 1 kind: KIND_CPU }"})
	f, conn := serve(t, e, grpcapi.Options{})
	stream, err := pb.NewGRPCInferenceServiceClient(conn).ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send := func(n int) {
		for range n {
			// the client may know the end of the stream already
			if err := stream.Send(request()); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
	}
	send(2)
	<-running
	for e.Server.Metrics()[0].Pending != 1 {
		pause()
	}
	ended := make(chan error, 1)
	go func() { ended <- f.Shutdown(t.Context()) }()
	conn.WaitForStateChange(t.Context(), connectivity.Ready) // the server has announced its end
	send(more)
	close(proceed)
	answers := -1 // the error that ends the loop is not an answer
	for ; err == nil; answers++ {
		_, err = stream.Recv()
	}
	const farewell = "GRPC server is shutting down and has stopped accepting new requests."
	if answers != 2 || status.Convert(err).Message() != farewell {
		t.Errorf("%d answers, then %v; want those to the 2 requests in flight, then %s", answers, err, farewell)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := 1 + len(running); n != 2 {
		t.Errorf("%d requests were executed, want the 2 in flight", n)
	}
}

// If a client goes, its queued request is not executed.
func TestUnaryIsCancelled(t *testing.T) {
	t.Parallel()
	running, proceed := make(chan struct{}, 1), make(chan struct{})
	backend := &enginetest.Backend{Fail: func(int) error { running <- struct{}{}; <-proceed; return nil }}
	e := enginetest.Start(t, enginetest.Options{Backend: backend, Config: "max_batch_size: 1 dynamic_batching {} instance_group { count: 1 kind: KIND_CPU }"})
	_, c := connect(t, e)
	results := make(chan error, 1)
	infer := func(ctx context.Context) {
		_, err := c.ModelInfer(ctx, request())
		results <- err
	}
	go infer(t.Context())
	<-running
	ctx, cancel := context.WithCancel(t.Context())
	go infer(ctx)
	pending := func(want int) {
		for e.Server.Metrics()[0].Pending != want {
			pause()
		}
	}
	pending(1)
	cancel()
	if err := <-results; status.Code(err) != codes.Canceled {
		t.Errorf("queued: %v, want cancelled", err)
	}
	pending(0)
	close(proceed)
	if err := <-results; err != nil {
		t.Errorf("running: %v", err)
	}
	stats, err := e.Server.Statistics(e.Model, 0)
	if err != nil || stats.ModelStats[0].InferenceStats.Success.Count != 1 {
		t.Errorf("statistics: %v, %v; want one success", stats, err)
	}
}

// An invalid message gets the answer of gRPC's C++ servers. A second message of a unary call is
// refused.
func TestMalformedMessages(t *testing.T) {
	t.Parallel()
	conn, c := connect(t, enginetest.Start(t, enginetest.Options{}))
	var answer pb.ModelInferResponse
	err := conn.Invoke(t.Context(), pb.GRPCInferenceService_ModelInfer_FullMethodName, &pb.ModelInferResponse{ModelName: "fake", ModelVersion: "1",
		// in a request, its field 6 is a list of outputs
		Parameters: map[string]*pb.InferParameter{"": {}}, RawOutputContents: [][]byte{{0xff}}}, &answer)
	if status.Code(err) != codes.Internal || status.Convert(err).Message() != "Unable to parse request" {
		t.Errorf("malformed: %v", err)
	}
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, pb.GRPCInferenceService_ModelInfer_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := stream.SendMsg(request()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.RecvMsg(&answer); status.Code(err) != codes.Internal {
		t.Errorf("two messages: %v, want an error", err)
	}
	if _, err := c.ModelInfer(t.Context(), request()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestLoadParameters(t *testing.T) {
	t.Parallel()
	_, c := connect(t, enginetest.Start(t, enginetest.Options{}))
	text := &pb.ModelRepositoryParameter{ParameterChoice: &pb.ModelRepositoryParameter_StringParam{StringParam: "{}"}}
	bytes := &pb.ModelRepositoryParameter{ParameterChoice: &pb.ModelRepositoryParameter_BytesParam{BytesParam: []byte("{}")}}
	for key, tc := range map[string]struct {
		value *pb.ModelRepositoryParameter
		want  string
	}{
		"config":            {bytes, "invalid value type for load parameter 'config', expected string_param."},
		"file:1/model.onnx": {text, "invalid value type for load parameter 'file:1/model.onnx', expected bytes_param."},
		"x":                 {text, "unrecognized load parameter 'x'."},
	} {
		_, err := c.RepositoryModelLoad(t.Context(), &pb.RepositoryModelLoadRequest{ModelName: "fake", Parameters: map[string]*pb.ModelRepositoryParameter{key: tc.value}})
		if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != tc.want {
			t.Errorf("%s: %v, want %s", key, err, tc.want)
		}
	}
	_, err := c.RepositoryModelUnload(t.Context(), &pb.RepositoryModelUnloadRequest{ModelName: "fake", Parameters: map[string]*pb.ModelRepositoryParameter{"unload_dependents": text}})
	if want := "invalid value type for 'unload_dependents' parameter, expected bool_param."; status.Convert(err).Message() != want {
		t.Errorf("unload: %v, want %s", err, want)
	}
}
