package api

import (
	"context"
	"crypto/tls"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"tuner/model/modelconfig"
)

// Control is the part of a Client that asks about a server and its models, and sends no inferences.
type Control interface {
	ServerMetadata(ctx context.Context) (ServerMetadata, error)
	ModelMetadata(ctx context.Context, model string) (ModelMetadata, error)
	ModelConfig(ctx context.Context, model string) (*modelconfig.Config, error)
	Statistics(ctx context.Context, model string) (Statistics, error)
	Index(ctx context.Context) ([]IndexEntry, error)
	Close() error
}

// Access holds the requirements of a server besides its address.
type Access struct {
	TLS     *tls.Config         // nil: clear text
	Headers map[string][]string // added to every request; gRPC: metadata
}

// OpenHTTP returns a client of the server at address (host:port), with the given access. It
// connects when it is first used.
func OpenHTTP(address string, a Access) *HTTPClient {
	c := NewHTTP(address)
	transport := &http.Transport{DisableCompression: true}
	if a.TLS != nil {
		c.base, transport.TLSClientConfig = "https://"+address, a.TLS.Clone()
	}
	c.control.Transport = withHeaders{transport, a.Headers}
	c.lanes.access = a
	return c
}

// withHeaders adds header fields to every request.
type withHeaders struct {
	*http.Transport
	headers map[string][]string
}

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // the caller's request must not change
	for name, values := range h.headers {
		for _, value := range values {
			r.Header.Add(name, value)
		}
	}
	return h.Transport.RoundTrip(r)
}

// OpenGRPC is OpenHTTP for gRPC.
func OpenGRPC(address string, a Access) (*GRPCClient, error) {
	security := insecure.NewCredentials()
	if a.TLS != nil {
		security = credentials.NewTLS(a.TLS.Clone())
	}
	addHeaders := func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		for name, values := range a.Headers {
			for _, value := range values {
				ctx = metadata.AppendToOutgoingContext(ctx, name, value)
			}
		}
		return invoke(ctx, method, request, reply, conn, options...)
	}
	return newGRPC(address, security, grpc.WithUnaryInterceptor(addHeaders))
}
