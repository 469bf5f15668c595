package certificates_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"

	"tuner/engine"
	"tuner/engine/certificates"
	"tuner/engine/enginetest"
	"tuner/engine/frontends"
	"tuner/engine/rest"
	"tuner/engine/statistics"
)

const inference = `{"inputs":[{"name":"INPUT0","shape":[1,16],"datatype":"INT32","data":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]},` +
	`{"name":"INPUT1","shape":[1,16],"datatype":"INT32","data":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}]}`

// serve starts HTTP and gRPC with certificates.
func serve(t *testing.T, b *enginetest.Backend, http, grpc *certificates.Certificates) (*engine.Server, frontends.Addresses) {
	t.Helper()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "fake", "instance_group [ { count: 1 kind: KIND_CPU } ]")
	log := slog.New(slog.DiscardHandler)
	s, err := engine.Open(t.Context(), engine.Options{Repositories: []string{root}, Backend: b, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	at := frontends.Listen{Enabled: true, Address: "127.0.0.1", TLS: http.Config()}
	rpc := at
	rpc.TLS = grpc.Config()
	f, err := frontends.Open(s, frontends.Options{HTTP: at, GRPC: rpc, REST: rest.Options{Log: log}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx, time.Minute) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		s.Close()
	})
	return s, f.Addresses()
}

// opened has certificates of an authority, in a folder.
func opened(t *testing.T, a *authority, protocol string) (*certificates.Certificates, folder) {
	t.Helper()
	f := newFolder(t)
	cert, key := a.good(t, 2)
	f.write(t, cert, key)
	c, err := certificates.Open(f.Files, protocol)
	if err != nil {
		t.Fatal(err)
	}
	return c, f
}

// Certificates are replaced while clients infer over HTTPS, over connections that stay and over new ones.
// No request is lost, and connections that are open stay open.
func TestChangeUnderLoad(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	c, f := opened(t, a, "http/1.1")
	_, at := serve(t, &enginetest.Backend{}, c, nil)
	var dials, newest atomic.Int64
	newest.Store(2)
	client := func(isKept bool) *http.Client {
		return &http.Client{Transport: &http.Transport{
			TLSClientConfig: a.client(), DisableKeepAlives: !isKept,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if isKept {
					dials.Add(1)
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			},
		}}
	}
	post := func(h *http.Client) error {
		since := newest.Load()
		response, err := h.Post("https://"+at.HTTP+"/v2/models/fake/infer", "application/json", strings.NewReader(inference))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		serial := response.TLS.PeerCertificates[0].SerialNumber.Int64()
		if err != nil || response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d, %s, %w", response.StatusCode, text, err)
		}
		if h.Transport.(*http.Transport).DisableKeepAlives && serial < since {
			return fmt.Errorf("a new connection has certificate %d after number %d was in place", serial, since)
		}
		return nil
	}
	const changes, kept = 20, 3
	done := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 2 * kept {
		h := client(i < kept)
		clients.Go(func() {
			defer h.CloseIdleConnections()
			for sent := 0; ; sent++ {
				if err := post(h); err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for n := range int64(changes) {
		cert, key := a.good(t, 3+n)
		f.write(t, cert, key)
		c.Look(slog.New(slog.DiscardHandler))
		newest.Store(3 + n)
	}
	close(done)
	clients.Wait()
	if n := dials.Load(); n != kept {
		t.Errorf("%d clients needed %d connections", kept, n)
	}
	if serial, err := shake(t, c, a.client()); err != nil || serial != 2+changes {
		t.Errorf("at the end: certificate %d, %v", serial, err)
	}
}

// gRPC has TLS too, and a client without TLS is refused on both ports.
func TestBothListeners(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	web, _ := opened(t, a, "http/1.1")
	rpc, _ := opened(t, a, "h2")
	_, at := serve(t, &enginetest.Backend{}, web, rpc)
	conn, err := grpc.NewClient(at.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(a.client())))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	for _, address := range []string{at.HTTP, at.GRPC} {
		if response, err := http.Get("http://" + address + "/v2/health/live"); err == nil {
			response.Body.Close()
			t.Errorf("%s answers clear text with %d", address, response.StatusCode)
		}
	}
}

// A client that goes away over TLS while its request is queued is noticed.
func TestHangUpOverTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	c, _ := opened(t, a, "http/1.1")
	running, release := make(chan struct{}, 1), make(chan struct{})
	s, at := serve(t, &enginetest.Backend{ServiceTime: func(int, int) time.Duration {
		running <- struct{}{}
		<-release
		return 0
	}}, c, nil)
	request := fmt.Sprintf("POST /v2/models/fake/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s", len(inference), inference)
	send := func() *tls.Conn {
		conn, err := tls.Dial("tcp", at.HTTP, a.client())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first := send()
	defer first.Close()
	<-running
	send().Close()
	for s.Metrics()[0].Failures[statistics.FailureCanceled] == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the request is still queued")
		}
		time.Sleep(time.Millisecond)
	}
	close(release)
}
