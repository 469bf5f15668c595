// Package wire sends inference requests that were encoded once, over its own connections, and reads
// the answers. It speaks HTTP/1.1 and gRPC, unary and streaming. It is built to use little CPU time
// of the caller.
//
// It stands below packages perf and runner, which pass the connections of a Target to package load.
// It knows only the infer calls of the protocol; package engine/api has the rest. It neither tunes,
// measures time nor retries, but it reports which requests may be sent once more. It discards an
// answer without decoding it, unless its outputs are to be compared with expected ones.
package wire

import (
	"crypto/tls"
	"fmt"
	"time"
)

// Protocol is the protocol that carries requests.
type Protocol int

// The protocols.
const (
	HTTP       Protocol = iota
	GRPC                // one call per request
	GRPCStream          // one call per connection, whose messages are the requests
)

// Options describe connections.
type Options struct {
	Address     string // host:port
	Protocol    Protocol
	TLS         *tls.Config   // nil: clear text
	Headers     []Header      // added to every request; gRPC: metadata
	Parameters  []Parameter   // added to every request
	Compression string        // of requests over gRPC: "", "gzip" or "deflate"
	DialTimeout time.Duration // 0: DefaultDialTimeout
	// Share is the largest number of requests in flight on a connection over GRPC. A server may
	// allow fewer. 0: 1.
	Share int
}

// DefaultDialTimeout bounds connecting, including handshakes.
const DefaultDialTimeout = 10 * time.Second

// Header is a header field of HTTP or an entry of gRPC's metadata.
type Header struct{ Name, Value string }

// Parameter is a parameter of a request, which the protocol has beside the tensors.
type Parameter struct {
	Name  string
	Value any // int64, string or bool
}

// Format is the form of tensors over HTTP: JSON, or bytes behind it.
type Format struct{ JSONInputs, JSONOutputs bool }

// InputError names a part of a request or of the options that cannot be sent. The user can fix it.
type InputError struct{ Text string }

func (e *InputError) Error() string { return e.Text }

// MismatchError names the place where an output differs from the expected one.
type MismatchError struct {
	Output    string
	Element   int    // first element that differs; -1: the whole output
	Want, Got string // values
}

func (e *MismatchError) Error() string {
	if e.Element < 0 {
		return fmt.Sprintf("output %q is %s, want %s", e.Output, e.Got, e.Want)
	}
	return fmt.Sprintf("output %q differs at element %d: it is %s, want %s", e.Output, e.Element, e.Got, e.Want)
}
