//go:build !noengine

package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// rpcOptions are the options of the gRPC front end.
type rpcOptions struct {
	restricted      []string
	ssl, mutual     bool
	cert, key, root string // files
}

func (o *rpcOptions) flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.restricted, "grpc-restricted-protocol", nil, "API[,API...]:KEY=VALUE: these need the metadata triton-grpc-protocol-KEY; "+categoryNames())
	boolFlag(flags, &o.ssl, "grpc-use-ssl", false, "encrypt gRPC with TLS")
	boolFlag(flags, &o.mutual, "grpc-use-ssl-mutual", false, "encrypt gRPC with TLS, and admit only clients with a certificate of --grpc-root-cert")
	flags.StringVar(&o.cert, "grpc-server-cert", "", "file with the server's certificate, PEM")
	flags.StringVar(&o.key, "grpc-server-key", "", "file with the server's key, PEM")
	flags.StringVar(&o.root, "grpc-root-cert", "", "file with the certificates that sign those of clients, PEM")
}

// tls reads the certificates; nil: clear text.
func (o *rpcOptions) tls() (*tls.Config, error) {
	if !o.ssl && !o.mutual {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, usageErrorf("cannot use --grpc-server-cert=%q and --grpc-server-key=%q: %v", o.cert, o.key, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
	if !o.mutual {
		return config, nil
	}
	text, err := os.ReadFile(o.root)
	if err == nil {
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			err = fmt.Errorf("no certificate in it")
		}
	}
	if err != nil {
		return nil, usageErrorf("cannot use --grpc-root-cert=%q: %v", o.root, err)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}
