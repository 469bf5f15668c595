package api_test

import (
	"context"
	"crypto/tls"
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

func TestHTTPControlHasAccess(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2" || r.Header.Get("Secret") != "s1" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{"name":"triton","extensions":["statistics"]}`)) // a failure shows in the answer
	}))
	defer server.Close()
	access := api.Access{TLS: server.Client().Transport.(*http.Transport).TLSClientConfig, Headers: map[string][]string{"secret": {"s1"}}}
	c := api.NewHTTPControl(server.Listener.Addr().String(), access)
	if m, err := c.ServerMetadata(t.Context()); err != nil || m.Name != "triton" {
		t.Errorf("%+v, %v", m, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	access.TLS = &tls.Config{}
	c = api.NewHTTPControl(server.Listener.Addr().String(), access)
	if m, err := c.ServerMetadata(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody knows: %+v, %v", m, err)
	}
}

// named is a server that gives its name to those who know the secret.
type named struct {
	pb.UnimplementedGRPCInferenceServiceServer
}

func (named) ServerMetadata(ctx context.Context, _ *pb.ServerMetadataRequest) (*pb.ServerMetadataResponse, error) {
	m, _ := metadata.FromIncomingContext(ctx)
	return &pb.ServerMetadataResponse{Name: strings.Join(m.Get("secret"), ",")}, nil
}

func TestGRPCControlHasAccess(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(server, named{})
	go func() { _ = server.Serve(listener) }() // ends by Stop
	defer server.Stop()
	c, err := api.NewGRPCControl(listener.Addr().String(), api.Access{Headers: map[string][]string{"secret": {"s1", "s2"}}})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := c.ServerMetadata(t.Context()); err != nil || m.Name != "s1,s2" {
		t.Errorf("%+v, %v", m, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
