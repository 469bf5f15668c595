// Package certificates has the certificates of a listener: read from files, and read again when the files
// change, without an end of any connection.
//
// It stands below package serve, which says which files there are, and above crypto/tls. It listens to
// nothing.
package certificates

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Every is the time between two looks at the files. Kubernetes renews mounted secrets about once a
// minute.
const Every = 10 * time.Second

// Files are those of a listener, in PEM.
type Files struct {
	Flags string // beginning of the flags that name them, for messages: "http", "grpc"
	Cert  string // the server's certificate, with its chain
	Key   string
	Root  string // certificates that sign those of clients; "": clients need none
}

// Certificates are those that were read last and were good. New connections get them. Its methods are
// safe for concurrent use, and do nothing on nil.
type Certificates struct {
	files     Files
	protocols []string
	now       func() time.Time
	current   atomic.Pointer[tls.Config]

	mu        sync.Mutex
	seen      string    // the files' content, or why they could not be read, at the last look
	until     time.Time // the end of the current certificate
	hasWarned bool      // that it has come
}

// Open reads the files. protocols are those that the listener speaks, for TLS's negotiation.
func Open(files Files, protocols ...string) (*Certificates, error) {
	c := &Certificates{files: files, protocols: protocols, now: time.Now}
	seen, read := c.content()
	c.seen = seen
	return c, c.use(read)
}

// Config is for the listener. nil: clear text.
func (c *Certificates) Config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: c.protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load(), nil },
	}
}

// Watch looks at the files until ctx ends.
func (c *Certificates) Watch(ctx context.Context, log *slog.Logger) {
	if c == nil {
		return
	}
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.Look(log)
		}
	}
}

// Look reads the files, and uses them if they have changed. If they cannot be used, the earlier
// certificates stay, and the log says so, once for each content.
func (c *Certificates) Look(log *slog.Logger) { c.look(log, false) }

// Reload is Look, but says again why files cannot be used that have not changed.
func (c *Certificates) Reload(log *slog.Logger) { c.look(log, true) }

func (c *Certificates) look(log *slog.Logger, isAsked bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, read := c.content()
	if seen != c.seen || isAsked {
		c.seen = seen
		if err := c.use(read); err != nil {
			log.Error("cannot use the new certificates, so the old ones stay", "error", err)
		} else {
			log.Info("certificates were read again, for new connections", "file", c.files.Cert, "until", c.until)
		}
	}
	if !c.hasWarned && c.now().After(c.until) {
		c.hasWarned = true
		log.Error("the server's certificate has expired, and clients refuse it: replace the file", "file", c.files.Cert, "until", c.until)
	}
}

// contents are those of the files.
type contents struct {
	cert, key, root []byte
	err             error // why a file cannot be read
}

// content reads the files. seen differs if they do.
func (c *Certificates) content() (seen string, read contents) {
	hash := sha256.New()
	for _, file := range []struct {
		path string
		to   *[]byte
	}{{c.files.Cert, &read.cert}, {c.files.Key, &read.key}, {c.files.Root, &read.root}} {
		if file.path == "" {
			continue
		}
		text, err := os.ReadFile(file.path)
		if err != nil {
			read.err = err
			return err.Error(), read
		}
		*file.to = text
		fmt.Fprintf(hash, "%d ", len(text)) // so that a shift between two files counts
		hash.Write(text)
	}
	return string(hash.Sum(nil)), read
}

// use makes the contents the current ones, if they are good.
func (c *Certificates) use(read contents) error {
	f := c.files
	wrong := func(err error) error {
		return fmt.Errorf("cannot use --%s-server-cert=%q and --%s-server-key=%q: %w", f.Flags, f.Cert, f.Flags, f.Key, err)
	}
	if read.err != nil {
		return wrong(read.err)
	}
	pair, err := tls.X509KeyPair(read.cert, read.key)
	if err != nil {
		return wrong(err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return wrong(err)
	}
	switch now := c.now(); {
	case now.After(leaf.NotAfter):
		return wrong(fmt.Errorf("the certificate has expired at %s", leaf.NotAfter.Format(time.RFC3339)))
	case now.Before(leaf.NotBefore):
		return wrong(fmt.Errorf("the certificate is valid from %s on, and the clock says %s", leaf.NotBefore.Format(time.RFC3339), now.Format(time.RFC3339)))
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: c.protocols, MinVersion: tls.VersionTLS12}
	if f.Root != "" {
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(read.root) {
			return fmt.Errorf("cannot use --%s-root-cert=%q: there is no certificate in it", f.Flags, f.Root)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
		// a client that is no longer admitted could resume an earlier session
		config.SessionTicketsDisabled = true
	}
	c.until, c.hasWarned = leaf.NotAfter, false
	c.current.Store(config)
	return nil
}
