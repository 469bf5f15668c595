//go:build !noengine

package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"tuner/engine/grpcapi"
)

// rpcOptions are the options of the gRPC front end.
type rpcOptions struct {
	restricted      []string
	compression     string
	keepalive       keepaliveOptions
	ssl, mutual     bool
	cert, key, root string // files
}

// keepaliveOptions say how connections are watched and ended, in milliseconds.
type keepaliveOptions struct {
	time, timeout, pingInterval uint32
	permitWithoutCalls          bool
	age, grace                  uint32 // 0: none
}

func (o *rpcOptions) flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.restricted, "grpc-restricted-protocol", nil, "API[,API...]:KEY=VALUE: these need the metadata triton-grpc-protocol-KEY")
	flags.StringVar(&o.compression, "grpc-infer-response-compression-level", "none", "none, low, medium or high: of answers to inferences")
	k := &o.keepalive
	flags.Uint32Var(&k.time, "grpc-keepalive-time", 7200000, "milliseconds without a sign of life after which a client is pinged")
	flags.Uint32Var(&k.timeout, "grpc-keepalive-timeout", 20000, "milliseconds to wait for the answer to a ping")
	boolFlag(flags, &k.permitWithoutCalls, "grpc-keepalive-permit-without-calls", false, "clients may ping while they have no call")
	flags.Uint32Var(&k.pingInterval, "grpc-http2-min-recv-ping-interval-without-data", 300000, "milliseconds that must lie between the pings of a client")
	flags.Uint32Var(&k.age, "grpc-max-connection-age", 0, "milliseconds that a connection may last (default: any)")
	flags.Uint32Var(&k.grace, "grpc-max-connection-age-grace", 0, "milliseconds that the calls of such a connection have to end (default: any)")
	boolFlag(flags, &o.ssl, "grpc-use-ssl", false, "encrypt gRPC with TLS")
	boolFlag(flags, &o.mutual, "grpc-use-ssl-mutual", false, "encrypt gRPC with TLS, and admit only clients with a certificate of --grpc-root-cert")
	flags.StringVar(&o.cert, "grpc-server-cert", "", "file with the server's certificate, PEM")
	flags.StringVar(&o.key, "grpc-server-key", "", "file with the server's key, PEM")
	flags.StringVar(&o.root, "grpc-root-cert", "", "file with the certificates that sign those of clients, PEM")
}

// options translates the options for the front end.
func (o *rpcOptions) options() (grpcapi.Options, error) {
	levels := map[string]grpcapi.Compression{
		"none": grpcapi.CompressionNone, "low": grpcapi.CompressionLow, "medium": grpcapi.CompressionMedium, "high": grpcapi.CompressionHigh,
	}
	level, known := levels[o.compression]
	if !known {
		return grpcapi.Options{}, usageErrorf("--grpc-infer-response-compression-level=%q: use none, low, medium or high", o.compression)
	}
	restricted, err := parseRestrictions("grpc-restricted-protocol", o.restricted, "triton-grpc-protocol-")
	k := o.keepalive
	return grpcapi.Options{Restricted: restricted, Compression: level, Keepalive: grpcapi.Keepalive{
		Time: milliseconds(k.time), Timeout: milliseconds(k.timeout), PermitWithoutCalls: k.permitWithoutCalls,
		MinPingInterval: milliseconds(k.pingInterval), MaxAge: milliseconds(k.age), MaxAgeGrace: milliseconds(k.grace),
	}}, err
}

func milliseconds(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }

// certificates are those of a server, and of its clients. They can be read again while connections are accepted.
type certificates struct {
	options *rpcOptions
	current atomic.Pointer[tls.Config]
}

// certificates reads the files; nil: clear text.
func (o *rpcOptions) certificates() (*certificates, error) {
	if !o.ssl && !o.mutual {
		return nil, nil
	}
	c := &certificates{options: o}
	return c, c.read()
}

// config is for the listener: each connection gets what was read last.
func (c *certificates) config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load(), nil }}
}

// read reads the files. If one of them is bad, those that were read before stay.
func (c *certificates) read() error {
	o := c.options
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return usageErrorf("cannot use --grpc-server-cert=%q and --grpc-server-key=%q: %v", o.cert, o.key, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
	if o.mutual {
		if config.ClientCAs, err = readRoots(o.root); err != nil {
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
		return nil, usageErrorf("cannot use --grpc-root-cert=%q: %v", path, err)
	}
	return roots, nil
}

// readAgain reads the files again, after a SIGHUP.
func (c *certificates) readAgain(log *slog.Logger) {
	if c == nil {
		return
	}
	if err := c.read(); err != nil {
		log.Error("SIGHUP: the certificates from before stay", "error", err)
		return
	}
	log.Info("SIGHUP: read the certificates again, for new connections")
}
