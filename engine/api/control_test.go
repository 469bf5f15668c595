package api_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

func TestHTTPClientHasAccess(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a failure shows in the answer
		switch {
		case r.Header.Get("Secret") != "s1":
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/v2":
			// a failure shows in the answer
			_, _ = w.Write([]byte(`{"name":"triton","extensions":["statistics"]}`))
		case r.URL.Path == "/v2/models/m/infer":
			_, _ = w.Write([]byte(`{"outputs":[]}`)) // a failure shows in the answer
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	access := api.Access{TLS: server.Client().Transport.(*http.Transport).TLSClientConfig, Headers: map[string][]string{"secret": {"s1"}}}
	c := api.OpenHTTP(server.Listener.Addr().String(), access)
	if m, err := c.ServerMetadata(t.Context()); err != nil || m.Name != "triton" {
		t.Errorf("%+v, %v", m, err)
	}
	request, err := c.Encode(api.InferRequest{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // over the same connection
		if answer, err := c.Infer(t.Context(), request); err != nil {
			t.Errorf("inference: %+v, %v", answer, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	access.TLS = &tls.Config{}
	c = api.OpenHTTP(server.Listener.Addr().String(), access)
	if m, err := c.ServerMetadata(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody knows: %+v, %v", m, err)
	}
	if _, err := c.Infer(t.Context(), request); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an inference to one whose certificate nobody knows: %v", err)
	}
}

// named is a server that returns its name only to clients with the secret.
type named struct {
	pb.UnimplementedGRPCInferenceServiceServer
}

func (named) ServerMetadata(ctx context.Context, _ *pb.ServerMetadataRequest) (*pb.ServerMetadataResponse, error) {
	m, _ := metadata.FromIncomingContext(ctx)
	return &pb.ServerMetadataResponse{Name: strings.Join(m.Get("secret"), ",")}, nil
}

// ModelInfer answers with the secret as an output's bytes.
func (named) ModelInfer(ctx context.Context, _ *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	m, _ := metadata.FromIncomingContext(ctx)
	return &pb.ModelInferResponse{Outputs: []*pb.ModelInferResponse_InferOutputTensor{{Name: "secret"}},
		RawOutputContents: [][]byte{[]byte(strings.Join(m.Get("secret"), ","))}}, nil
}

func TestGRPCClientHasAccess(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(server, named{})
	go func() { _ = server.Serve(listener) }() // Stop ends it
	defer server.Stop()
	c, err := api.OpenGRPC(listener.Addr().String(), api.Access{Headers: map[string][]string{"secret": {"s1", "s2"}}})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := c.ServerMetadata(t.Context()); err != nil || m.Name != "s1,s2" {
		t.Errorf("%+v, %v", m, err)
	}
	request, err := c.Encode(api.InferRequest{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Infer(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := answer.Outputs(); err != nil || len(out) != 1 || string(out[0].Data) != "s1,s2" {
		t.Errorf("an inference has the headers in %+v, %v", out, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
