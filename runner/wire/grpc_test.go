package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // decompresses requests and compresses answers to them
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
	"tuner/engine/enginetest"
)

// raw is a codec for messages that are serialised already.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// serveGRPC answers calls with the reference implementation of gRPC.
func serveGRPC(t *testing.T, protocol Protocol, handle func(grpc.ServerStream) error, options ...grpc.ServerOption) (Options, *grpc.Server) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(append(options, grpc.MaxRecvMsgSize(math.MaxInt32), grpc.ForceServerCodecV2(raw{}),
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error { return handle(s) }))...)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return Options{Address: listener.Addr().String(), Protocol: protocol}, server
}

// receiveRequest reads the next request of a call.
func receiveRequest(s grpc.ServerStream) (*pb.ModelInferRequest, error) {
	var message []byte
	if err := s.RecvMsg(&message); err != nil {
		return nil, err
	}
	r := &pb.ModelInferRequest{}
	return r, proto.Unmarshal(message, r)
}

// send sends a message.
func send(s grpc.ServerStream, m proto.Message) error {
	message, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return s.SendMsg(message)
}

// echoed returns the answer of a model whose outputs are its inputs.
func echoed(r *pb.ModelInferRequest) *pb.ModelInferResponse {
	out := &pb.ModelInferResponse{ModelName: r.GetModelName(), RawOutputContents: r.GetRawInputContents()}
	for _, in := range r.GetInputs() {
		out.Outputs = append(out.Outputs, &pb.ModelInferResponse_InferOutputTensor{Name: in.GetName(), Datatype: in.GetDatatype(), Shape: in.GetShape()})
	}
	return out
}

func echo(s grpc.ServerStream) error {
	r, err := receiveRequest(s)
	if err != nil {
		return err
	}
	return send(s, echoed(r))
}

// echoStream answers each request of a stream, until the client ends it.
func echoStream(s grpc.ServerStream) error {
	for {
		r, err := receiveRequest(s)
		if err != nil {
			return nil // the client left
		}
		if err := send(s, &pb.ModelStreamInferResponse{InferResponse: echoed(r)}); err != nil {
			return err
		}
	}
}

// bytesRequest returns a request with one input of size bytes.
func bytesRequest(model string, size int) api.InferRequest {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i % 251)
	}
	return api.InferRequest{Model: model, Inputs: []api.Tensor{{Name: "x", Datatype: "UINT8", Shape: []int64{int64(size)}, Data: data}}}
}

// all sends a request and receives until its end.
func all(c *Conn, p *Prepared) (answers, nulls int, err error) {
	c.Send(0, p)
	for {
		_, final, null, err := c.Receive()
		if null {
			nulls++
		} else {
			answers++
		}
		if final || err != nil {
			return answers, nulls, err
		}
	}
}

func TestGRPCAnswers(t *testing.T) {
	t.Parallel()
	narrow := []grpc.ServerOption{grpc.InitialWindowSize(1<<16 - 1), grpc.InitialConnWindowSize(1<<16 - 1)}
	for name, test := range map[string]struct {
		size        int
		compression string
		options     []grpc.ServerOption
	}{
		"small":           {8, "", nil},
		"several frames":  {300_000, "", nil},
		"narrow windows":  {4<<20 + 3, "", narrow},
		"gzip":            {8, "gzip", nil},
		"gzip and frames": {300_000, "gzip", narrow},
	} {
		for protocol, handle := range map[Protocol]func(grpc.ServerStream) error{GRPC: echo, GRPCStream: echoStream} {
			t.Run(fmt.Sprint(name, protocol), func(t *testing.T) {
				t.Parallel()
				o, _ := serveGRPC(t, protocol, handle, test.options...)
				o.Compression = test.compression
				c, r := dial(t, o), bytesRequest("m", test.size)
				for _, expected := range [][]api.Tensor{nil, r.Inputs, nil, r.Inputs} {
					answers, nulls, err := all(c, prepare(t, o, r, Format{}, expected...))
					if answers != 1 || nulls != 0 || err != nil || c.Broken() {
						t.Fatalf("%d answers, %d null ones, error %v, broken %v", answers, nulls, err, c.Broken())
					}
				}
			})
		}
	}
}

// A wrong answer is reported, and the connection continues.
func TestGRPCMismatch(t *testing.T) {
	t.Parallel()
	o, _ := serveGRPC(t, GRPC, echo)
	c, r := dial(t, o), bytesRequest("m", 1000)
	other := r.Inputs[0]
	other.Data = slices.Clone(other.Data)
	other.Data[5]++
	for range 2 {
		var mismatch *MismatchError
		if err := ask(c, prepare(t, o, r, Format{}, other)); !errors.As(err, &mismatch) || mismatch.Element != 5 || c.Broken() {
			t.Errorf("error %v, broken %v: expected a mismatch at element 5", err, c.Broken())
		}
	}
}

func TestGRPCErrors(t *testing.T) {
	t.Parallel()
	detailed, err := status.New(codes.InvalidArgument, "wrong: 100 % ü\n").WithDetails(&pb.ServerReadyResponse{Ready: true})
	if err != nil {
		t.Fatal(err)
	}
	o, _ := serveGRPC(t, GRPC, func(s grpc.ServerStream) error {
		r, err := receiveRequest(s)
		if err != nil {
			return err
		}
		switch r.GetModelName() {
		case "refused":
			return detailed.Err()
		case "busy": // the status is in its own trailers
			if err := s.SendHeader(metadata.Pairs("x", "y")); err != nil {
				return err
			}
			return status.Error(codes.Unavailable, "busy")
		case "late": // after the answer
			_ = send(s, echoed(r))
			return status.Error(codes.Internal, "late")
		}
		return send(s, echoed(r))
	})
	c := dial(t, o)
	for model, want := range map[string]api.StatusError{
		"refused": {Status: 3, Text: "wrong: 100 % ü\n"}, "busy": {Status: 14, Text: "busy"}, "late": {Status: 13, Text: "late"},
	} {
		for range 2 { // the same block of trailers again
			var got *api.StatusError
			if err := ask(c, prepare(t, o, bytesRequest(model, 8), Format{})); !errors.As(err, &got) || *got != want || c.Broken() {
				t.Errorf("%s: error %v, broken %v, expected %v", model, err, c.Broken(), &want)
			}
		}
		if err := ask(c, prepare(t, o, bytesRequest("m", 8), Format{})); err != nil {
			t.Errorf("after %s: %v", model, err)
		}
	}
}

func TestGRPCRequest(t *testing.T) {
	t.Parallel()
	type seen struct {
		metadata metadata.MD
		request  *pb.ModelInferRequest
	}
	requests := make(chan seen, 1)
	o, _ := serveGRPC(t, GRPCStream, func(s grpc.ServerStream) error {
		r, err := receiveRequest(s)
		if err != nil {
			return err
		}
		md, _ := metadata.FromIncomingContext(s.Context())
		requests <- seen{md, r}
		return send(s, &pb.ModelStreamInferResponse{InferResponse: echoed(r)})
	})
	o.Headers = []Header{{"Authorization", "Bearer x"}, {"a-bin", "\x00\xff"}}
	o.Parameters = []Parameter{{"n", int64(-7)}, {"s", "text"}, {"b", true}}
	r := bytesRequest("m", 4)
	r.Version, r.ID, r.Outputs, r.Priority, r.Timeout = "2", "id", []string{"x"}, 3, 4000
	if err := ask(dial(t, o), prepare(t, o, r, Format{})); err != nil {
		t.Fatal(err)
	}
	got := <-requests
	want := &pb.ModelInferRequest{
		ModelName: "m", ModelVersion: "2", Id: "id",
		Inputs:           []*pb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "UINT8", Shape: []int64{4}}},
		Outputs:          []*pb.ModelInferRequest_InferRequestedOutputTensor{{Name: "x"}},
		RawInputContents: [][]byte{{0, 1, 2, 3}},
		Parameters: map[string]*pb.InferParameter{
			"n": {ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: -7}}, "s": {ParameterChoice: &pb.InferParameter_StringParam{StringParam: "text"}},
			"b":        {ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: true}},
			"priority": {ParameterChoice: &pb.InferParameter_Uint64Param{Uint64Param: 3}}, "timeout": {ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: 4000}},
			"triton_enable_empty_final_response": {ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: true}},
		},
	}
	if d := cmp.Diff(want, got.request, protocmp.Transform()); d != "" {
		t.Errorf("the request differs (-want +got):\n%s", d)
	}
	for name, value := range map[string]string{
		"authorization": "Bearer x", "a-bin": "\x00\xff", "content-type": "application/grpc", ":authority": o.Address, "user-agent": "tuner",
	} {
		if d := cmp.Diff([]string{value}, got.metadata.Get(name)); d != "" {
			t.Errorf("metadata %s (-want +got):\n%s", name, d)
		}
	}
}

// Responses of decoupled models, errors between them, and ends of the stream. Only the last breaks
// the connection.
func TestGRPCStream(t *testing.T) {
	t.Parallel()
	final := func(is bool) map[string]*pb.InferParameter {
		return map[string]*pb.InferParameter{
			"other":                 {ParameterChoice: &pb.InferParameter_StringParam{StringParam: "x"}},
			"triton_final_response": {ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: is}},
		}
	}
	end := &pb.ModelStreamInferResponse{InferResponse: &pb.ModelInferResponse{Parameters: final(true)}}
	o, _ := serveGRPC(t, GRPCStream, func(s grpc.ServerStream) error {
		for {
			r, err := receiveRequest(s)
			if err != nil {
				return nil // the client left
			}
			one := &pb.ModelStreamInferResponse{InferResponse: echoed(r)}
			more := &pb.ModelStreamInferResponse{InferResponse: echoed(r)}
			more.InferResponse.Parameters = final(false)
			failed := &pb.ModelStreamInferResponse{ErrorMessage: "no"}
			failedEarly := &pb.ModelStreamInferResponse{ErrorMessage: "no", InferResponse: &pb.ModelInferResponse{Parameters: final(false)}}
			for _, answer := range map[string][]*pb.ModelStreamInferResponse{
				"one": {one}, "three": {more, more, one}, "null": {more, more, end}, "none": {end}, "failed": {failed}, "failed early": {more, failedEarly, more, end},
			}[r.GetModelName()] {
				if err := send(s, answer); err != nil {
					return err
				}
			}
			switch r.GetModelName() {
			case "stopped":
				return status.Error(codes.Unavailable, "stopping")
			case "left":
				return nil
			}
		}
	})
	c := dial(t, o)
	check := func(model string, answers, nulls int, failure string, broken bool, expected ...api.Tensor) {
		t.Helper()
		gotAnswers, gotNulls, err := all(c, prepare(t, o, bytesRequest(model, 8), Format{}, expected...))
		if gotAnswers != answers || gotNulls != nulls || (err == nil) != (failure == "") || err != nil && !strings.Contains(err.Error(), failure) || c.Broken() != broken {
			t.Errorf("%s: %d answers, %d null ones, error %v, broken %v; expected %d, %d, %q, %v",
				model, gotAnswers, gotNulls, err, c.Broken(), answers, nulls, failure, broken)
		}
	}
	right, wrong := bytesRequest("", 8).Inputs[0], bytesRequest("", 8).Inputs[0]
	wrong.Data = make([]byte, 8)
	check("one", 1, 0, "", false)
	check("three", 3, 0, "", false)
	check("three", 3, 0, "", false, right)
	// returned with the last answer
	check("three", 3, 0, "differs at element 1: it is 1, want 0", false, wrong)
	check("null", 2, 1, "", false, right)
	check("none", 0, 1, "", false)
	check("failed", 1, 0, "server answered 2: no", false)
	check("failed early", 3, 1, "server answered 2: no", false)
	check("stopped", 1, 0, "server answered 14: stopping", false)
	check("one", 1, 0, "", false) // on a new stream
	check("left", 1, 0, "ended the stream before it answered", true)
}

// The engine's answers are the same as those that its usual client reads.
func TestEngineOverGRPC(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	client, err := api.NewGRPC(e.Addresses.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	data := bytesRequest("", 64).Inputs[0].Data
	r := api.InferRequest{Model: e.Model, Inputs: []api.Tensor{
		{Name: "INPUT0", Datatype: "INT32", Shape: []int64{1, 16}, Data: data}, {Name: "INPUT1", Datatype: "INT32", Shape: []int64{1, 16}, Data: data},
	}}
	encoded, err := client.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Infer(t.Context(), encoded)
	if err != nil {
		t.Fatal(err)
	}
	expected, err := response.Outputs()
	if err != nil {
		t.Fatal(err)
	}
	for _, compression := range []string{"", "gzip", "deflate"} {
		for _, protocol := range []Protocol{GRPC, GRPCStream} {
			o := Options{Address: e.Addresses.GRPC, Protocol: protocol, Compression: compression}
			c, p := dial(t, o), prepare(t, o, r, Format{}, expected...)
			for range 10 {
				if _, nulls, err := all(c, p); err != nil || nulls > 0 {
					t.Fatalf("protocol %d, compression %q: %v", protocol, compression, err)
				}
			}
		}
	}
}

// Many connections send one prepared request at once.
func TestGRPCConcurrency(t *testing.T) {
	t.Parallel()
	o, _ := serveGRPC(t, GRPC, echo)
	r := bytesRequest("m", 40_000)
	p := prepare(t, o, r, Format{}, r.Inputs...)
	var senders sync.WaitGroup
	for range 8 {
		c := dial(t, o)
		senders.Go(func() {
			for range 20 {
				if err := ask(c, p); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
}

func TestGRPCInterrupt(t *testing.T) {
	t.Parallel()
	o, _ := serveGRPC(t, GRPC, func(s grpc.ServerStream) error {
		<-s.Context().Done()
		return nil
	})
	c, p := dial(t, o), prepare(t, o, bytesRequest("m", 8), Format{})
	c.Send(0, p)
	failed := make(chan error)
	go func() {
		_, _, _, err := c.Receive()
		failed <- err
	}()
	c.Interrupt()
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) || !c.Broken() {
		t.Errorf("error %v, broken %v", err, c.Broken())
	}
	if err := ask(c, p); err == nil {
		t.Error("an interrupted connection sent a request")
	}
}

// A server that stops gracefully announces it, and waits for the acknowledgement.
func TestGRPCGracefulStop(t *testing.T) {
	t.Parallel()
	o, server := serveGRPC(t, GRPC, echo)
	c, p := dial(t, o), prepare(t, o, bytesRequest("m", 8), Format{})
	if err := ask(c, p); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(stopped)
	}()
	for !c.Broken() { // requests in flight at the announcement are answered
		if err := ask(c, p); err != nil && !c.Broken() {
			t.Errorf("error %v of a connection that goes on", err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	<-stopped
}

// The stream ids of a connection end after 2^30 requests.
func TestGRPCLastStream(t *testing.T) {
	t.Parallel()
	o, _ := serveGRPC(t, GRPC, echo)
	c, p := dial(t, o), prepare(t, o, bytesRequest("m", 8), Format{})
	c.exchange.(*unaryExchange).id = math.MaxInt32 - 4
	for _, broken := range []bool{false, true} {
		if err := ask(c, p); err != nil || c.Broken() != broken {
			t.Errorf("error %v, broken %v, expected %v", err, c.Broken(), broken)
		}
	}
}

func TestGRPCOverTLS(t *testing.T) {
	t.Parallel()
	// speaks only HTTP/1.1, and has a certificate
	web := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	known := x509.NewCertPool()
	known.AddCert(web.Certificate())
	o, _ := serveGRPC(t, GRPC, echo, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12})))
	o.TLS = &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}
	c := dial(t, o)
	for range 2 {
		r := bytesRequest("m", 100_000)
		if err := ask(c, prepare(t, o, r, Format{}, r.Inputs...)); err != nil {
			t.Fatal(err)
		}
	}
	o.Address = web.Listener.Addr().String()
	if _, err := Dial(t.Context(), o); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("a server without HTTP/2: error %v", err)
	}
}

// A server that ends idle connections announces it. It does not take later requests, and says so.
func TestGRPCIdleConnections(t *testing.T) {
	t.Parallel()
	for _, protocol := range []Protocol{GRPC, GRPCStream} {
		o := speak(t, protocol, nil, func(p *peer) {
			for {
				f, ok := p.next().(*http2.DataFrame)
				if !ok {
					continue
				}
				p.head(f.StreamID)
				_ = p.WriteData(f.StreamID, false, emptyMessage)
				if protocol == GRPC {
					p.trailers(f.StreamID, "grpc-status", "0")
				}
				_ = p.WriteGoAway(f.StreamID, http2.ErrCodeNo, nil)
				return
			}
		})
		c, request := dial(t, o), prepare(t, o, bytesRequest("m", 8), Format{})
		if err := ask(c, request); err != nil {
			t.Fatal(err)
		}
		var e *UnansweredError
		if err := ask(c, request); !errors.As(err, &e) || !c.Broken() {
			t.Errorf("protocol %d: error %v, broken %v", protocol, err, c.Broken())
		}
	}
}
