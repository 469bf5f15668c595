//go:build !noengine

package cli

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	rpcstatus "google.golang.org/grpc/status"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
	"tuner/internal/exit"
	"tuner/internal/transcript"
	"tuner/model/onnx/build"
	"tuner/runner"
	"tuner/runner/target"
)

// child is a server that was started as profile starts it.
type child struct {
	cmd    *exec.Cmd
	parent *os.File // the server ends when this is closed
	at     api.Announcement
	log    transcript.Text // complete after cmd was waited for
}

func startChild(t *testing.T, options ...string) *child {
	t.Helper()
	if os.Getenv("TUNER_ORT_LIBRARY") == "" {
		t.Skip("needs ONNX Runtime: run 'make test', which sets TUNER_ORT_LIBRARY")
	}
	model := filepath.Join(t.TempDir(), "repo", "simple", "1", "model.onnx")
	if err := os.MkdirAll(filepath.Dir(model), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := build.Simple().Write(model, 0); err != nil {
		t.Fatal(err)
	}
	announceRead, announceWrite := pipe(t)
	parentRead, parentWrite := pipe(t)
	program, err := exec.LookPath("tuner") // this test binary, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"serve",
		"--model-repository", filepath.Dir(filepath.Dir(filepath.Dir(model))), "--model-control-mode=explicit", "--load-model=*",
		"--http-port=0", "--grpc-port=0", "--metrics-port=0", "--announce-fd=3", "--parent-fd=4"}, options...)
	c := &child{parent: parentWrite, cmd: exec.CommandContext(t.Context(), program, args...)}
	c.cmd.ExtraFiles = []*os.File{announceWrite, parentRead} // descriptors 3 and 4
	c.cmd.Stderr = io.MultiWriter(t.Output(), &c.log)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.cmd.ProcessState == nil { // the test has not waited; the end of its context has killed the server
			_ = c.cmd.Wait()
		}
	})
	if err := errors.Join(announceWrite.Close(), parentRead.Close()); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(announceRead).ReadBytes('\n')
	if err != nil {
		t.Fatalf("no announcement: %v", err)
	}
	if err := json.Unmarshal(line, &c.at); err != nil {
		t.Fatalf("announcement %q: %v", line, err)
	}
	return c
}

// end ends the server like a process manager.
func (c *child) end(t *testing.T) {
	t.Helper()
	if err := errors.Join(c.cmd.Process.Signal(syscall.SIGTERM), c.cmd.Wait()); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() }) // most are closed by then
	return read, write
}

// The announcement comes when the server accepts requests. SIGTERM ends the server with code 0.
func TestServeAnnouncesAndEnds(t *testing.T) {
	t.Parallel()
	c := startChild(t)
	if c.at.PID != c.cmd.Process.Pid || c.at.ORTVersion == "" || c.at.ORTLibrary != os.Getenv("TUNER_ORT_LIBRARY") {
		t.Errorf("announcement %+v of process %d", c.at, c.cmd.Process.Pid)
	}
	grpc, err := api.NewGRPC(c.at.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]api.Client{"http": api.NewHTTP(c.at.HTTP), "grpc": grpc} {
		if ready, err := client.ModelReady(t.Context(), "simple"); err != nil || !ready {
			t.Errorf("%s: ready %v, %v", name, ready, err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := api.Metrics(t.Context(), c.at.Metrics); err != nil {
		t.Error(err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// When the parent ends in any way, its end of the pipe is closed, and the server ends too.
func TestServeDiesWithItsParent(t *testing.T) {
	t.Parallel()
	c := startChild(t)
	if err := c.parent.Close(); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := c.cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != exit.Failure {
		t.Errorf("got %v, want exit code %d", err, exit.Failure)
	}
}

// Restricted calls need their header, on both protocols. The others are open.
func TestServeRestricts(t *testing.T) {
	t.Parallel()
	c := startChild(t, "--http-restricted-api=metadata,statistics:secret=s1", "--grpc-restricted-protocol=metadata:secret=s2")
	for path, want := range map[string]int{"/v2": http.StatusForbidden, "/v2/models/stats": http.StatusForbidden, "/v2/health/ready": http.StatusOK} {
		for _, header := range []string{"", "s1"} {
			if header != "" {
				want = http.StatusOK
			}
			if got := get(t, "http://"+c.at.HTTP+path, header); got != want {
				t.Errorf("%s with secret %q: status %d, want %d", path, header, got, want)
			}
		}
	}
	connection, err := grpc.NewClient(c.at.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	client := pb.NewGRPCInferenceServiceClient(connection)
	if _, err := client.ServerMetadata(t.Context(), &pb.ServerMetadataRequest{}); rpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("gRPC without the key: got %v, want UNAVAILABLE", err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "triton-grpc-protocol-secret", "s2")
	if _, err := client.ServerMetadata(ctx, &pb.ServerMetadataRequest{}); err != nil {
		t.Errorf("gRPC with the key: %v", err)
	}
}

func get(t *testing.T, url, secret string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if secret != "" {
		r.Header.Set("secret", secret)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// With --grpc-use-ssl-mutual, only clients with a certificate get answers.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	cert, key, pair := certificate(t)
	c := startChild(t, "--grpc-use-ssl-mutual=true", "--grpc-server-cert="+cert, "--grpc-server-key="+key, "--grpc-root-cert="+cert)
	roots := x509.NewCertPool()
	roots.AddCert(pair.Leaf)
	live := func(config *tls.Config) error {
		connection, err := grpc.NewClient(c.at.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		_, err = pb.NewGRPCInferenceServiceClient(connection).ServerLive(t.Context(), &pb.ServerLiveRequest{})
		return err
	}
	if err := live(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	if err := live(&tls.Config{RootCAs: roots}); err == nil {
		t.Error("a client without a certificate was answered")
	}
}

// After SIGHUP, new connections get the new certificate. With a bad file the old one stays, and the
// server keeps running.
func TestServeReadsCertificatesAgain(t *testing.T) {
	t.Parallel()
	cert, key, first := certificate(t)
	newCert, newKey, second := certificate(t)
	c := startChild(t, "--grpc-use-ssl=true", "--grpc-server-cert="+cert, "--grpc-server-key="+key)
	serial := func() []byte {
		connection, err := tls.Dial("tcp", c.at.GRPC, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].Raw
	}
	if got := serial(); !bytes.Equal(got, first.Leaf.Raw) {
		t.Error("the first certificate is another one")
	}
	hangUp := func(said string) {
		if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, said, func() bool { return strings.Contains(c.log.String(), said) })
	}
	rename := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	rename(newCert, cert) // does not match the old key
	hangUp("cannot use the new certificates, so the old ones stay")
	if got := serial(); !bytes.Equal(got, first.Leaf.Raw) {
		t.Error("a certificate that does not fit its key is used")
	}
	rename(newKey, key)
	hangUp("certificates were read again")
	if got := serial(); !bytes.Equal(got, second.Leaf.Raw) {
		t.Error("the new certificate is not used")
	}
	c.end(t)
}

// A server whose terminal is closed keeps running.
func TestServeOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	c := startChild(t)
	if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message", func() bool { return strings.Contains(c.log.String(), "SIGHUP: ") })
	if got := get(t, "http://"+c.at.HTTP+"/v2/health/ready", ""); got != http.StatusOK {
		t.Errorf("ready: status %d", got)
	}
	c.end(t)
}

// Log rotation renames the file and sends SIGHUP. Later messages go to a new file with the old
// name.
func TestServeOpensItsLogAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "server.log")
	c := startChild(t, "--log-file="+path)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new file", func() bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(text), "SIGHUP: ")
	})
	if text, err := os.ReadFile(path + ".1"); err != nil || len(text) == 0 || strings.Contains(string(text), "SIGHUP: ") {
		t.Errorf("the file from before: %q, %v", text, err)
	}
	c.end(t)
}

// In the delay before its end, a server is not ready but serves remaining requests. The second
// signal ends it at once.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	c := startChild(t, "--drain-delay=1h")
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an unready answer", func() bool {
		return get(t, "http://"+c.at.HTTP+"/v2/health/ready", "") == http.StatusServiceUnavailable
	})
	if got := get(t, "http://"+c.at.HTTP+"/v2/models/simple/ready", ""); got != http.StatusOK {
		t.Errorf("the model in the delay: status %d", got)
	}
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := c.cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != exit.Interrupted {
		t.Errorf("after a second signal: %v, want exit code %d", err, exit.Interrupted)
	}
}

// certificate makes a self-signed certificate of 127.0.0.1, with its files.
func certificate(t *testing.T) (certFile, keyFile string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile, pair
}

// An abort, with which ONNX Runtime may end a process, kills only the engine. The report about the
// engine names it.
func TestServeAborts(t *testing.T) {
	t.Parallel()
	library := os.Getenv("TUNER_ORT_LIBRARY")
	if library == "" {
		t.Skip("needs ONNX Runtime: run 'make test', which sets TUNER_ORT_LIBRARY")
	}
	program, err := exec.LookPath("tuner") // this test binary, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	e, err := target.Bundled{Binary: program}.Launch(t.Context(), runner.Server{Repository: t.TempDir(), Library: library})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(e.PID(), syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	<-e.Done()
	if text := e.Exit().Text; text == "exit status 0" || !strings.Contains(e.LastWords(), "SIGABRT: abort") {
		t.Errorf("%s; last words:\n%s", text, e.LastWords())
	}
}

// A client that never ends its request delays a server's end by --exit-timeout-secs at most.
func TestServeExitTimeout(t *testing.T) {
	t.Parallel()
	c := startChild(t, "--exit-timeout-secs=1")
	client, err := net.Dial("tcp", c.at.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("POST /v2/models/simple/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")); err != nil {
		t.Fatal(err)
	}
	// then the other one has been accepted
	if got := get(t, "http://"+c.at.HTTP+"/v2/health/ready", ""); got != http.StatusOK {
		t.Fatalf("ready: status %d", got)
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := c.cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != exit.Failure || !strings.Contains(c.log.String(), "Exit timeout expired. Exiting immediately.") {
		t.Errorf("got %v, want exit code %d; log:\n%s", err, exit.Failure, c.log.String())
	}
}
