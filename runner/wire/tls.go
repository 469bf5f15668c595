package wire

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
)

// TLSOptions are the values of perf_analyzer's flags for TLS, for HTTP and gRPC alike. Names of
// files may be empty.
type TLSOptions struct {
	SkipPeer bool   // accept a server certificate of any authority
	SkipHost bool   // accept a server certificate of any host
	CA       string // PEM file of the authorities to trust; "": the system's

	Certificate     string // the client's own certificate, with its chain
	CertificateType string // "PEM" or "DER"; "": PEM
	Key             string
	KeyType         string // "PEM" or "DER"; "": PEM
}

// Config reads the files, for connections to address (host:port). An *InputError names a file that
// cannot be read or used.
func (o TLSOptions) Config(address string) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &InputError{fmt.Sprintf("cannot read the host of %q: %v", address, err)}
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if o.CA != "" {
		text, err := readFile("the file of certificate authorities", o.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, &InputError{fmt.Sprintf("%s: there is no certificate in PEM form", o.CA)}
		}
	}
	if o.SkipPeer || o.SkipHost {
		config.InsecureSkipVerify = true // VerifyConnection makes the remaining checks
		config.VerifyConnection = func(s tls.ConnectionState) error { return o.verify(s, config.RootCAs, host) }
	}
	if o.Certificate == "" && o.Key == "" {
		return config, nil
	}
	pair, err := o.pair()
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// verify checks the server's certificate if one of the two checks is switched off, as libcurl does.
func (o TLSOptions) verify(s tls.ConnectionState, roots *x509.CertPool, host string) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the server shows no certificate")
	}
	leaf := s.PeerCertificates[0]
	if !o.SkipPeer {
		chain := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			chain.AddCert(c)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: chain}); err != nil {
			return fmt.Errorf("cannot trust the server's certificate: %w", err)
		}
	}
	if !o.SkipHost {
		if err := leaf.VerifyHostname(host); err != nil {
			return fmt.Errorf("cannot trust the server's certificate: %w", err)
		}
	}
	return nil
}

// pair reads the client's certificate and key.
func (o TLSOptions) pair() (tls.Certificate, error) {
	if o.Certificate == "" || o.Key == "" {
		return tls.Certificate{}, &InputError{"a client certificate needs its private key, and the key its certificate"}
	}
	certificate, err := readPEM(o.Certificate, o.CertificateType, "CERTIFICATE")
	if err != nil {
		return tls.Certificate{}, err
	}
	// the parser tries PKCS #8, PKCS #1 and SEC 1, whatever the name
	key, err := readPEM(o.Key, o.KeyType, "PRIVATE KEY")
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return pair, &InputError{fmt.Sprintf("cannot use the client certificate %s with the key %s: %v", o.Certificate, o.Key, err)}
	}
	return pair, nil
}

// readPEM reads a file in PEM, or in DER as one block of PEM.
func readPEM(path, form, block string) ([]byte, error) {
	text, err := readFile("the file", path)
	if err != nil {
		return nil, err
	}
	switch form {
	case "", "PEM":
		return text, nil
	case "DER":
		return pem.EncodeToMemory(&pem.Block{Type: block, Bytes: text}), nil
	default:
		return nil, &InputError{fmt.Sprintf("%s: unknown type %q: expected PEM or DER", path, form)}
	}
}

func readFile(what, path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &InputError{fmt.Sprintf("cannot read %s: %v", what, err)}
	}
	return text, nil
}
