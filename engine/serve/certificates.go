package serve

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"

	"tuner/engine/flags"
	"tuner/internal/exit"
)

// certificates are those of the server and of its clients. They can be read again while connections
// are accepted.
type certificates struct {
	files   flags.Certificates
	current atomic.Pointer[tls.Config]
}

// readCertificates reads the files. nil: clear text.
func readCertificates(files flags.Certificates) (*certificates, error) {
	if !files.IsOn && !files.IsMutual {
		return nil, nil
	}
	c := &certificates{files: files}
	return c, c.read()
}

// config is for the listener. Each connection gets the certificates that were read last.
func (c *certificates) config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load(), nil }}
}

// read reads the files. If one of them is invalid, the earlier certificates stay.
func (c *certificates) read() error {
	o := c.files
	pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return exit.Usagef("cannot use --grpc-server-cert=%q and --grpc-server-key=%q: %v", o.Cert, o.Key, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
	if o.IsMutual {
		if config.ClientCAs, err = readRoots(o.Root); err != nil {
			return err
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	c.current.Store(config)
	return nil
}

// readRoots reads the certificates that sign those of clients.
func readRoots(path string) (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	text, err := os.ReadFile(path)
	if err == nil && !roots.AppendCertsFromPEM(text) {
		err = errors.New("there is no certificate in it")
	}
	if err != nil {
		return nil, exit.Usagef("cannot use --grpc-root-cert=%q: %v", path, err)
	}
	return roots, nil
}

// readAgain reads the files again, after a SIGHUP.
func (c *certificates) readAgain(log *slog.Logger) {
	if c == nil {
		return
	}
	if err := c.read(); err != nil {
		log.Error("SIGHUP: cannot read the new certificates, so the old ones stay", "error", err)
		return
	}
	log.Info("SIGHUP: read the certificates again, for new connections")
}
