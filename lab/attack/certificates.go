package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"tuner/engine/api"
)

// certificates: those that have expired, or are half written.
func certificates() []attack {
	return []attack{
		{"C6", "a server with certificates that have expired, are not valid yet, or do not fit their key", "it does not start: exit code 2 and the reason", startsExpired},
		{"C6", "certificates that are replaced by bad ones, half ones, and good ones, while clients connect", "new connections get the last good one, none is refused, the log says why", renewed},
		{"C6", "clients with certificates that have expired, are another authority's, or are none", "refused over HTTP and gRPC, others are served", expiredClients},
	}
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	text        []byte // PEM
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

// issue makes a certificate for 127.0.0.1 and for clients, valid from and until so much from now, as PEM.
func (a *authority) issue(serial int64, from, until time.Duration) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "peer"}, NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalECPrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), err
}

// trusting is the configuration of a client that trusts the authority.
func (a *authority) trusting() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, ServerName: "127.0.0.1"}
}

// secured returns the flags of a server with TLS on one port or both.
func secured(http, grpc bool) (flags []string) {
	if http {
		flags = append(flags, "--http-server-cert=cert.pem", "--http-server-key=key.pem")
	}
	if grpc {
		flags = append(flags, "--grpc-use-ssl=true", "--grpc-server-cert=cert.pem", "--grpc-server-key=key.pem")
	}
	return flags
}

func startsExpired(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	a, err := newAuthority()
	if err != nil {
		return "", err
	}
	_, foreign, err := a.issue(9, -time.Hour, time.Hour)
	if err != nil {
		return "", err
	}
	tried := 0
	for want, life := range map[string][2]time.Duration{"has expired": {-2 * time.Hour, -time.Minute}, "is valid from": {time.Hour, 2 * time.Hour}, "does not match": {-time.Hour, time.Hour}} {
		cert, key, err := a.issue(2, life[0], life[1])
		if want == "does not match" {
			key = foreign
		}
		if err := errors.Join(err, s.write(cert, "cert.pem"), s.write(key, "key.pem")); err != nil {
			return "", err
		}
		for _, flags := range [][]string{secured(true, false), secured(false, true)} {
			o, err := s.tunes(ctx, append([]string{"serve", "--model-repository=repository", "--http-port=0", "--grpc-port=0", "--metrics-port=0"}, flags...)...)
			if err != nil {
				return "", err
			}
			if _, err := o.refused(2, want); err != nil {
				return "", err
			}
			tried++
		}
	}
	return fmt.Sprintf("%d starts refused", tried), nil
}

// handshake returns the serial number of a server's certificate.
func handshake(ctx context.Context, address string, client *tls.Config) (int64, error) {
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: client}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

// encrypted starts a server with TLS on both ports, and further flags. Its clients for health and inferences
// trust the authority, and have a certificate if there is one.
func (s *scene) encrypted(ctx context.Context, a *authority, mine *tls.Certificate, flags ...string) (*server, error) {
	cert, key, err := a.issue(2, -time.Hour, time.Hour)
	if err := errors.Join(err, s.add("simple", "simple", ""), s.write(cert, "cert.pem"), s.write(key, "key.pem")); err != nil {
		return nil, err
	}
	client := a.trusting()
	if mine != nil {
		client.Certificates = []tls.Certificate{*mine}
	}
	return s.serveTo(ctx, client, "", []string{"simple"}, append(secured(true, true), flags...)...)
}

func renewed(ctx context.Context, s *scene) (string, error) {
	a, err := newAuthority()
	if err != nil {
		return "", err
	}
	v, err := s.encrypted(ctx, a, nil)
	if err != nil {
		return "", err
	}
	good, goodKey, err := a.issue(3, -time.Hour, time.Hour)
	if err != nil {
		return "", err
	}
	old, oldKey, err := a.issue(4, -2*time.Hour, -time.Hour)
	if err != nil {
		return "", err
	}
	serves := func(what string, serial int64, said string) error {
		if err := v.signal(syscall.SIGHUP); err != nil {
			return err
		}
		for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			for _, address := range []string{v.at.HTTP, v.at.GRPC} {
				got, err := handshake(ctx, address, a.trusting())
				if err != nil || got != serial && (serial != 3 || time.Since(begin) > 5*time.Second) {
					return errors.Join(fmt.Errorf("%s: a handshake got certificate %d, want %d", what, got, serial), err)
				}
			}
			if strings.Contains(v.log.String(), said) {
				return v.adds(ctx, 5*time.Second)
			}
			if time.Since(begin) > 5*time.Second {
				return fmt.Errorf("%s: the log does not say %q: %s", what, said, last(v.log.String()))
			}
		}
	}
	for _, step := range []struct {
		what      string
		cert, key []byte
		serial    int64 // of new connections
		said      string
	}{
		{"one that has expired", old, oldKey, 2, "the certificate has expired at"},
		{"half of one", good[:len(good)/2], goodKey, 2, "failed to find any PEM data"},
		{"one without its key", good, oldKey, 2, "private key does not match public key"},
		{"nothing", nil, nil, 2, "failed to find any"},
		{"a good one", good, goodKey, 3, "certificates were read again"},
	} {
		if err := errors.Join(s.write(step.cert, "cert.pem"), s.write(step.key, "key.pem"), serves(step.what, step.serial, step.said)); err != nil {
			return "", err
		}
	}
	if err := os.Remove(s.path("cert.pem")); err != nil {
		return "", err
	}
	if err := serves("none", 3, "no such file"); err != nil {
		return "", err
	}
	return "5 bad ones were left out, and the good one was taken", v.adds(ctx, 5*time.Second)
}

func expiredClients(ctx context.Context, s *scene) (string, error) {
	a, err := newAuthority()
	if err != nil {
		return "", err
	}
	stranger, err := newAuthority()
	if err != nil {
		return "", err
	}
	pair := func(by *authority, from, until time.Duration) tls.Certificate {
		cert, key, errIssue := by.issue(7, from, until)
		pair, errPair := tls.X509KeyPair(cert, key)
		err = errors.Join(err, errIssue, errPair)
		return pair
	}
	mine, late, early, foreign := pair(a, -time.Hour, time.Hour), pair(a, -2*time.Hour, -time.Minute), pair(a, time.Hour, 2*time.Hour), pair(stranger, -time.Hour, time.Hour)
	if err := errors.Join(err, s.write(a.text, "root.pem")); err != nil {
		return "", err
	}
	v, err := s.encrypted(ctx, a, &mine, "--http-root-cert=root.pem", "--grpc-use-ssl-mutual=true", "--grpc-root-cert=root.pem")
	if err != nil {
		return "", err
	}
	refused := 0
	for range 25 {
		for what, certificates := range map[string][]tls.Certificate{"expired": {late}, "not valid yet": {early}, "another authority's": {foreign}, "none": nil} {
			client := a.trusting()
			client.Certificates = certificates
			access := api.Access{TLS: client}
			http := api.OpenHTTP(v.at.HTTP, access)
			grpc, err := api.OpenGRPC(v.at.GRPC, access)
			if err != nil {
				return "", err
			}
			_, errHTTP := http.ServerMetadata(ctx)
			_, errGRPC := grpc.ServerMetadata(ctx)
			if errHTTP == nil || errGRPC == nil {
				return "", fmt.Errorf("a client's certificate that is %s was admitted: %w, %w", what, errHTTP, errGRPC)
			}
			refused += 2
			if err := errors.Join(http.Close(), grpc.Close()); err != nil {
				return "", err
			}
		}
		if err := v.serves(ctx); err != nil {
			return "", err
		}
	}
	seen, err := v.bounded(512 << 20)
	return fmt.Sprintf("%d refused, %s", refused, seen), err
}
