package cli

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tuner/internal/exit"
	"tuner/internal/testserver"
)

// lawServer starts a server with known service times.
func lawServer(t *testing.T) testserver.Addresses {
	t.Helper()
	server, err := testserver.New(testserver.Options{Law: testserver.Deterministic(time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	at, err := server.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() }) // it may have ended
	return at
}

// runPerfProgram runs tuner perf on the model law in its own process.
func runPerfProgram(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	tuner, err := exec.LookPath("tuner")
	if err != nil {
		t.Fatal(err)
	}
	var out, messages bytes.Buffer
	cmd := exec.CommandContext(t.Context(), tuner, append([]string{"perf", "-m", "law"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &messages
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return code, out.String(), messages.String()
}

// authority signs certificates. All its files are in one folder.
type authority struct {
	t      *testing.T
	folder string
	cert   *x509.Certificate
	key    crypto.Signer
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t, folder: t.TempDir()}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.sign(name, a.cert)
	return a
}

// file returns the path of a certificate or a key.
func (a *authority) file(name string) string { return filepath.Join(a.folder, name) }

// sign makes NAME.pem and NAME.key. The authority's own certificate comes first.
func (a *authority) sign(name string, template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.key == nil {
		a.key = key
	}
	der, err1 := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	secret, err2 := x509.MarshalPKCS8PrivateKey(key)
	cert, secretText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	pair, err3 := tls.X509KeyPair(cert, secretText)
	if err := errors.Join(err1, err2, err3, os.WriteFile(a.file(name+".pem"), cert, 0o600), os.WriteFile(a.file(name+".key"), secretText, 0o600)); err != nil {
		a.t.Fatal(err)
	}
	if name == a.cert.Subject.CommonName {
		a.cert = pair.Leaf
	}
	return pair
}

// secure makes a TLS proxy in front of a server. It forwards all bytes.
func secure(t *testing.T, server string, config *tls.Config) (address string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			running.Go(func() {
				defer conn.Close()
				behind, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer behind.Close()
				go func() {
					_, _ = io.Copy(behind, conn)
					_ = behind.Close()
				}()
				_, _ = io.Copy(conn, behind) // ends with either
			})
		}
	})
	return listener.Addr().String()
}

// perf_analyzer's options of TLS work with a private authority and a client certificate, over HTTP
// and gRPC.
func TestPerfOverTLS(t *testing.T) {
	t.Parallel()
	at, ours, other := lawServer(t), newAuthority(t, "ours"), newAuthority(t, "other")
	server := ours.sign("server", &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	ours.sign("client", &x509.Certificate{SerialNumber: big.NewInt(3), NotAfter: time.Now().Add(time.Hour)})
	other.sign("client", &x509.Certificate{SerialNumber: big.NewInt(4), NotAfter: time.Now().Add(time.Hour)})
	clients := x509.NewCertPool()
	clients.AddCert(ours.cert)
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{server}, NextProtos: []string{"h2", "http/1.1"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	web, rpc := "https://"+secure(t, at.HTTP, config), secure(t, at.GRPC, config)

	http := func(ca, client *authority, more ...string) []string {
		args := append([]string{"-u", web, "--ssl-https-ca-certificates-file", ca.file(ca.cert.Subject.CommonName + ".pem")}, more...)
		if client != nil {
			args = append(args, "--ssl-https-client-certificate-file", client.file("client.pem"), "--ssl-https-private-key-file", client.file("client.key"))
		}
		return args
	}
	grpc := func(ca, client *authority, more ...string) []string {
		args := append([]string{"-i", "grpc", "-u", rpc, "--ssl-grpc-use-ssl", "--ssl-grpc-root-certifications-file", ca.file(ca.cert.Subject.CommonName + ".pem")}, more...)
		if client != nil {
			args = append(args, "--ssl-grpc-certificate-chain-file", client.file("client.pem"), "--ssl-grpc-private-key-file", client.file("client.key"))
		}
		return args
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string // on stderr; without an error, stdout has figures
	}{
		"HTTP":                        {http(ours, ours), exit.OK, ""},
		"gRPC":                        {grpc(ours, ours), exit.OK, ""},
		"gRPC, streaming":             {grpc(ours, ours, "--streaming"), exit.OK, ""},
		"HTTP, wrong authority":       {http(other, ours), exit.Failure, "certificate signed by unknown authority"},
		"gRPC, wrong authority":       {grpc(other, ours), exit.Failure, "certificate signed by unknown authority"},
		"HTTP, any authority":         {http(other, ours, "--ssl-https-verify-peer", "0"), exit.OK, ""},
		"HTTP, no client certificate": {http(ours, nil), exit.Failure, "certificate required"},
		"gRPC, no client certificate": {grpc(ours, nil), exit.Failure, "certificate required"},
		// the client does not send a certificate that the server would refuse
		"HTTP, wrong client certificate":   {http(ours, other), exit.Failure, "certificate required"},
		"gRPC, wrong client certificate":   {grpc(ours, other), exit.Failure, "certificate required"},
		"HTTP, key of another certificate": {http(ours, ours, "--ssl-https-private-key-type", "DER"), exit.Usage, "cannot use the client certificate"},
		"HTTP, clear text":                 {[]string{"-u", strings.TrimPrefix(web, "https://")}, exit.Failure, "cannot measure the server"},
		"gRPC, clear text":                 {[]string{"-i", "grpc", "-u", rpc}, exit.Failure, "cannot measure the server"},
		"gRPC, TLS where there is none":    {[]string{"-i", "grpc", "-u", at.GRPC, "--ssl-grpc-use-ssl"}, exit.Failure, "TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runPerfProgram(t, append(c.args, "--request-count", "20", "--timeout", "5s")...)
			if code != c.code || !strings.Contains(stderr, c.want) || code == exit.OK != strings.Contains(stdout, "    Request count: 20\n") {
				t.Errorf("exit code %d, want %d with %q; stderr:\n%s\nstdout:\n%s", code, c.code, c.want, stderr, stdout)
			}
		})
	}
}

// If a server closes idle connections, no request fails: one that meets a closed connection is sent
// again.
func TestPerfOnAServerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	front := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: lawServer(t).HTTP}))
	var mu sync.Mutex
	closed := 0
	front.Config.IdleTimeout = time.Millisecond
	front.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			mu.Lock()
			defer mu.Unlock()
			closed++
		}
	}
	front.Start()
	t.Cleanup(front.Close)
	intervals := filepath.Join(t.TempDir(), "intervals")
	if err := os.WriteFile(intervals, []byte("50000\n"), 0o600); err != nil { // µs
		t.Fatal(err)
	}
	code, stdout, stderr := runPerfProgram(t, "-u", front.Listener.Addr().String(), "--request-intervals", intervals, "--request-count", "20")
	told := regexp.MustCompile("which the server had closed, and were sent once more: [1-9]").MatchString(stderr)
	if code != exit.OK || !told || !regexp.MustCompile(`(?m)^    Request count: 20$`).MatchString(stdout) {
		t.Errorf("exit code %d; stderr:\n%s\nstdout:\n%s", code, stderr, stdout)
	}
	mu.Lock()
	defer mu.Unlock()
	if closed < 2 {
		t.Errorf("the server closed %d connections, so nothing was tested", closed)
	}
}
