package wire

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tuner/internal/alloctest"
)

func TestInterrupt(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	o := Options{Address: listener.Addr().String()}
	c := dial(t, o)
	c.Send(0, prepare(t, o, int32Request, Format{}))
	failed := make(chan error)
	go func() {
		_, _, _, err := c.Receive()
		failed <- err
	}()
	c.Interrupt()
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) || !c.Broken() {
		t.Errorf("error %v, broken %v", err, c.Broken())
	}
	if err := ask(c, prepare(t, o, int32Request, Format{})); err == nil {
		t.Error("an interrupted connection sent a request")
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
}

func TestRefusedConnection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	if _, err := Dial(t.Context(), Options{Address: address}); err == nil || !strings.Contains(err.Error(), "cannot connect to "+address) {
		t.Errorf("error %v", err)
	}
}

// A request and its answer need no allocation. Not parallel: testing.AllocsPerRun counts the
// allocations of the whole process.
func TestAllocations(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	o := Options{Address: listener.Addr().String()}
	p := prepare(t, o, int32Request, Format{})
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		request, answer := make([]byte, p.Size()), []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		for {
			if _, err := io.ReadFull(conn, request); err != nil {
				return
			}
			if _, err := conn.Write(answer); err != nil {
				return
			}
		}
	}()
	c := dial(t, o)
	n := testing.AllocsPerRun(200, func() {
		if err := ask(c, p); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations per request", n)
	}
}

// tlsServer serves TLS at a port of 127.0.0.1, and answers 202 to clients with a certificate. Its
// own certificate is self-signed, for example.com and 127.0.0.1. The certificate and its key are in
// files NAME.FORM.
func tlsServer(t *testing.T) (port string, file func(name string) string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if len(r.TLS.PeerCertificates) > 0 {
			w.WriteHeader(http.StatusAccepted)
		}
		_, _ = io.WriteString(w, "{}")
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the test causes refused handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file = func(name string) string { return filepath.Join(dir, name) }
	for name, block := range map[string]pem.Block{"cert": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "key": {Type: "PRIVATE KEY", Bytes: key}} {
		der, text := os.WriteFile(file(name+".der"), block.Bytes, 0o600), os.WriteFile(file(name+".pem"), pem.EncodeToMemory(&block), 0o600)
		if err := errors.Join(der, text); err != nil {
			t.Fatal(err)
		}
	}
	return port, file
}

func TestTLS(t *testing.T) {
	t.Parallel()
	port, file := tlsServer(t)
	ca, cert, keyFile, keyPEM := file("cert.pem"), file("cert.der"), file("key.der"), file("key.pem")
	check := func(o TLSOptions, host, want string) {
		t.Helper()
		options := Options{Address: net.JoinHostPort("127.0.0.1", port)}
		config, err := o.Config(net.JoinHostPort(host, port))
		if err == nil {
			options.TLS = config
			var c *Conn
			if c, err = Dial(t.Context(), options); err == nil {
				err = ask(c, prepare(t, options, int32Request, Format{}))
				_ = c.Close()
			}
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, host %s: error %v, expected %q", o, host, err, want)
		}
	}
	check(TLSOptions{CA: ca}, "127.0.0.1", "")
	check(TLSOptions{CA: ca}, "example.com", "")
	check(TLSOptions{CA: ca}, "other.host", "not other.host")
	check(TLSOptions{CA: ca, SkipHost: true}, "other.host", "")
	check(TLSOptions{}, "127.0.0.1", "unknown authority")
	check(TLSOptions{SkipHost: true}, "127.0.0.1", "unknown authority")
	check(TLSOptions{SkipPeer: true}, "127.0.0.1", "")
	check(TLSOptions{SkipPeer: true}, "other.host", "not other.host")
	check(TLSOptions{SkipPeer: true, SkipHost: true}, "other.host", "")
	check(TLSOptions{CA: ca, Certificate: cert, CertificateType: "DER", Key: keyFile, KeyType: "DER"}, "127.0.0.1", "server answered 202")
	check(TLSOptions{CA: ca, Certificate: ca, Key: keyPEM}, "127.0.0.1", "server answered 202")
	check(TLSOptions{CA: ca, Certificate: cert, CertificateType: "DER", Key: ca}, "127.0.0.1", "cannot use the client certificate")
	check(TLSOptions{CA: ca, Certificate: cert}, "127.0.0.1", "needs its private key")
	check(TLSOptions{CA: ca, Certificate: cert, CertificateType: "P12", Key: keyPEM}, "127.0.0.1", `unknown type "P12"`)
	check(TLSOptions{CA: keyPEM}, "127.0.0.1", "no certificate in PEM form")
	check(TLSOptions{CA: file("none")}, "127.0.0.1", "cannot read the file of certificate authorities")
}

func TestTLSToPlainServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, err := Dial(t.Context(), Options{Address: server.Listener.Addr().String(), TLS: &tls.Config{MinVersion: tls.VersionTLS12}})
	if err == nil || !strings.Contains(err.Error(), "does not seem to speak TLS") {
		t.Errorf("error %v", err)
	}
}

// Reading a head, writing its values as a head, and reading that again gives the same values.
func FuzzReadHead(f *testing.F) {
	for _, text := range []string{
		// First a real Triton's answers, then answers that it does not give.
		"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nInference-Header-Content-Length: 152\r\nContent-Length: 216\r\n\r\n",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 58\r\nContent-Type: text/plain\r\n\r\n",
		small, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 400 Bad\nconnection: close\nInference-Header-Content-Length: 12\n\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n0\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		first, err := readHead(bufio.NewReaderSize(strings.NewReader(string(text)), inputBuffer))
		if err != nil {
			return
		}
		again, err := readHead(bufio.NewReaderSize(strings.NewReader(rendered(first)), inputBuffer))
		if err != nil || again != first {
			t.Errorf("%+v became %+v, %v", first, again, err)
		}
	})
}

func rendered(h head) string {
	out := "HTTP/1.1 " + strconv.Itoa(h.status) + "\r\n"
	if h.length >= 0 {
		out += "Content-Length: " + strconv.FormatInt(h.length, 10) + "\r\n"
	}
	if h.json >= 0 {
		out += "Inference-Header-Content-Length: " + strconv.FormatInt(h.json, 10) + "\r\n"
	}
	if h.chunked {
		out += "Transfer-Encoding: chunked\r\n"
	}
	if h.closes {
		out += "Connection: close\r\n"
	}
	return out + "\r\n"
}

// A server that closes idle connections costs no later request: the error allows it to be sent once
// more. The end of a connection within an answer does not.
func TestConnectionsThatTheServerClosed(t *testing.T) {
	t.Parallel()
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	o := Options{}
	p := prepare(t, o, int32Request, Format{})
	for name, c := range map[string]struct {
		answers    []string // one answer per request, in turn; then the connection is closed
		unanswered bool
	}{
		"after an answer":     {[]string{answer}, true},
		"after two":           {[]string{answer, answer}, true},
		"before any answer":   {nil, true},
		"in the midst of one": {[]string{answer, answer[:30]}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				for _, answer := range c.answers {
					if _, err := io.ReadFull(conn, make([]byte, p.Size())); err != nil {
						return
					}
					_, _ = io.WriteString(conn, answer)
				}
			}()
			conn := dial(t, Options{Address: listener.Addr().String()})
			for err == nil {
				err = ask(conn, p)
			}
			var e *UnansweredError
			if errors.As(err, &e) != c.unanswered || !conn.Broken() {
				t.Errorf("error %v (%T), broken %v", err, err, conn.Broken())
			}
		})
	}
}
