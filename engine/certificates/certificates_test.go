package certificates_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/engine/certificates"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	text        []byte // PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate, a.text = sign(t, template, template, &a.key.PublicKey, a.key)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, template, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) (*x509.Certificate, []byte) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// issue makes a certificate for 127.0.0.1 and for clients, as PEM.
func (a *authority) issue(t *testing.T, serial int64, from, until time.Time) (cert, key []byte) {
	t.Helper()
	private := newKey(t)
	_, cert = sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "server"}, NotBefore: from, NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, &private.PublicKey, a.key)
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// good is issue with a certificate that is valid now.
func (a *authority) good(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	return a.issue(t, serial, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

// client returns the configuration of a client that trusts the authority.
func (a *authority) client() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, ServerName: "127.0.0.1"}
}

// folder is one with the files of a listener.
type folder struct{ certificates.Files }

func newFolder(t *testing.T) folder {
	at := t.TempDir()
	return folder{certificates.Files{Flags: "http", Cert: filepath.Join(at, "cert.pem"), Key: filepath.Join(at, "key.pem")}}
}

func (f folder) write(t *testing.T, cert, key []byte) {
	t.Helper()
	if err := errors.Join(os.WriteFile(f.Cert, cert, 0o600), os.WriteFile(f.Key, key, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// shake makes a handshake with a listener that has the certificates. It returns the serial number of the
// server's.
func shake(t *testing.T, c *certificates.Certificates, client *tls.Config) (serial int64, err error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			server := tls.Server(conn, c.Config())
			if err = server.Handshake(); err == nil {
				_, err = server.Write([]byte("x"))
			}
			err = errors.Join(err, conn.Close())
		}
		served <- err
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	conn := tls.Client(raw, client)
	if err = conn.Handshake(); err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1)) // the server judges a client's certificate after the client's part
	}
	raw.Close() // so that a server that waits for the rest sees the end
	<-served    // its error is that of the client, or follows from it
	if err != nil {
		return 0, err
	}
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert, key := a.good(t, 2)
	_, other := a.good(t, 3)
	now := time.Now()
	old, oldKey := a.issue(t, 4, now.Add(-2*time.Hour), now.Add(-time.Hour))
	early, earlyKey := a.issue(t, 5, now.Add(time.Hour), now.Add(2*time.Hour))
	for name, tc := range map[string]struct {
		cert, key []byte
		root      string // content of the file; "": no file
		want      string
	}{
		"another's key": {cert, other, "", "private key does not match public key"},
		"no PEM":        {[]byte("x"), key, "", "failed to find any PEM data"},
		"expired":       {old, oldKey, "", "the certificate has expired at "},
		"too early":     {early, earlyKey, "", "the certificate is valid from "},
		"bad root":      {cert, key, "x", "cannot use --http-root-cert="},
	} {
		f := newFolder(t)
		f.write(t, tc.cert, tc.key)
		if tc.root != "" {
			f.Root = filepath.Join(filepath.Dir(f.Cert), "root.pem")
			if err := os.WriteFile(f.Root, []byte(tc.root), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := certificates.Open(f.Files); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	if _, err := certificates.Open(newFolder(t).Files); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no files: %v", err)
	}
}

// New handshakes get a new certificate. One that cannot be used leaves the old one, and is reported once.
func TestLook(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	f := newFolder(t)
	cert, key := a.good(t, 2)
	f.write(t, cert, key)
	c, err := certificates.Open(f.Files)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	check := func(what string, serial int64, lines int, text string) {
		t.Helper()
		if got, err := shake(t, c, a.client()); err != nil || got != serial {
			t.Errorf("%s: serial %d, %v, want %d", what, got, err, serial)
		}
		if n := strings.Count(out.String(), "\n"); n != lines || !strings.Contains(out.String(), text) {
			t.Errorf("%s: the log is\n%swant %d lines and %q", what, out.String(), lines, text)
		}
		out.Reset()
	}
	c.Look(log)
	check("nothing new", 2, 0, "")
	newCert, newKey := a.good(t, 3)
	f.write(t, newCert, key) // the other file is not there yet
	c.Look(log)
	c.Look(log)
	check("half", 2, 1, "so the old ones stay")
	c.Reload(log)
	check("half, asked", 2, 1, "so the old ones stay")
	f.write(t, newCert, newKey)
	c.Look(log)
	check("whole", 3, 1, "read again")
	old, oldKey := a.issue(t, 4, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	f.write(t, old, oldKey)
	c.Look(log)
	check("expired", 3, 1, "has expired at ")
	if err := os.Remove(f.Key); err != nil {
		t.Fatal(err)
	}
	c.Look(log)
	c.Look(log)
	check("gone", 3, 1, "no such file")
	f.write(t, newCert, newKey)
	c.Look(log)
	check("back", 3, 1, "read again")
	c.SetNow(func() time.Time { return time.Now().Add(2 * time.Hour) })
	c.Look(log)
	c.Look(log)
	check("its end has come", 3, 1, "and clients refuse it")
}

// With a root, only clients that it signed are admitted, by the newest root.
func TestMutual(t *testing.T) {
	t.Parallel()
	a, b := newAuthority(t), newAuthority(t)
	f := newFolder(t)
	cert, key := a.good(t, 2)
	f.write(t, cert, key)
	f.Root = filepath.Join(filepath.Dir(f.Cert), "root.pem")
	setRoot := func(root *authority) {
		if err := os.WriteFile(f.Root, root.text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	setRoot(a)
	c, err := certificates.Open(f.Files)
	if err != nil {
		t.Fatal(err)
	}
	with := func(signer *authority) *tls.Config {
		cert, key := signer.good(t, 7)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		config := a.client()
		config.Certificates = []tls.Certificate{pair}
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		return config
	}
	ofA, ofB := with(a), with(b)
	for _, phase := range []struct {
		root     *authority
		aIn, bIn bool
	}{{a, true, false}, {b, false, true}} {
		setRoot(phase.root)
		c.Look(slog.New(slog.DiscardHandler))
		if _, err := shake(t, c, ofA); (err == nil) != phase.aIn {
			t.Errorf("a client of the first authority: %v", err)
		}
		if _, err := shake(t, c, ofB); (err == nil) != phase.bIn {
			t.Errorf("a client of the second authority: %v", err)
		}
		if _, err := shake(t, c, a.client()); err == nil {
			t.Error("a client without a certificate is admitted")
		}
	}
}

func TestNoCertificates(t *testing.T) {
	t.Parallel()
	var none *certificates.Certificates
	none.Look(slog.New(slog.DiscardHandler))
	if none.Config() != nil {
		t.Error("there is a configuration for TLS")
	}
}
