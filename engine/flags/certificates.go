package flags

import (
	"github.com/spf13/pflag"

	"tuner/engine/certificates"
)

// tlsOptions are the flags of encrypted connections. tritonserver has those of gRPC alone.
type tlsOptions struct {
	grpc           certificates.Files
	isOn, isMutual bool // of gRPC
	http           certificates.Files
}

func (o *tlsOptions) flags(flags *pflag.FlagSet) {
	o.grpc.Flags, o.http.Flags = "grpc", "http"
	boolFlag(flags, &o.isOn, "grpc-use-ssl", false, "encrypt gRPC with TLS")
	boolFlag(flags, &o.isMutual, "grpc-use-ssl-mutual", false, "encrypt gRPC with TLS, and admit only clients with a certificate of --grpc-root-cert")
	flags.StringVar(&o.grpc.Cert, "grpc-server-cert", "", "file with the server's certificate, PEM; read again when it changes")
	flags.StringVar(&o.grpc.Key, "grpc-server-key", "", "file with the server's key, PEM")
	flags.StringVar(&o.grpc.Root, "grpc-root-cert", "", "file with the certificates that sign those of clients, PEM")
	flags.StringVar(&o.http.Cert, "http-server-cert", "", "encrypt HTTP with TLS: file with the server's certificate, PEM; read again when it changes")
	flags.StringVar(&o.http.Key, "http-server-key", "", "file with the server's key, PEM")
	flags.StringVar(&o.http.Root, "http-root-cert", "", "admit only HTTP clients with a certificate of this file, PEM")
}

// problems finds flags that lack others. Without these they would be without effect.
func (o *tlsOptions) problems() (problems []string) {
	if (o.http.Cert == "") != (o.http.Key == "") || o.http.Cert == "" && o.http.Root != "" {
		problems = append(problems, "HTTPS needs both --http-server-cert and --http-server-key")
	}
	if o.isMutual && o.grpc.Root == "" {
		problems = append(problems, "--grpc-use-ssl-mutual needs --grpc-root-cert")
	}
	return problems
}

// Certificates returns the files for HTTP and gRPC. nil: clear text.
func (o *Options) Certificates() (http, grpc *certificates.Files) {
	if o.tls.http.Cert != "" {
		http = &o.tls.http
	}
	if o.tls.isOn || o.tls.isMutual {
		files := o.tls.grpc
		if !o.tls.isMutual {
			files.Root = ""
		}
		grpc = &files
	}
	return http, grpc
}
