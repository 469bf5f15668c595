// Package wire sends inference requests that were encoded once over connections of its own, and reads the answers, at as
// little cost to the caller's processor as it can: HTTP/1.1 and gRPC, unary and streaming.
//
// It stands below packages perf and runner, which give the connections of a Target to package load. It knows the infer calls
// of the protocol alone (package engine/api has the rest), and neither tunes nor times nor retries, though it tells which
// request may be sent once more: an answer is discarded undecoded unless its outputs are to be compared with expected ones.
package wire

import (
	"crypto/tls"
	"fmt"
	"time"
)

// Protocol says how requests travel.
type Protocol int

// The protocols.
const (
	HTTP       Protocol = iota
	GRPC                // a call per request
	GRPCStream          // a call per connection, whose messages are the requests
)

// Options of connections.
type Options struct {
	Address     string // host:port
	Protocol    Protocol
	TLS         *tls.Config   // nil: clear text
	Headers     []Header      // of every request; gRPC: metadata
	Parameters  []Parameter   // of every request
	Compression string        // of requests over gRPC: "", "gzip" or "deflate"
	DialTimeout time.Duration // 0: DefaultDialTimeout
	// Share is how many requests may be in flight on a connection over GRPC, or fewer if the server takes fewer calls at a
	// time; 0: 1.
	Share int
}

// DefaultDialTimeout bounds connecting, handshakes included.
const DefaultDialTimeout = 10 * time.Second

// Header is a header field of HTTP or an entry of gRPC's metadata.
type Header struct{ Name, Value string }

// Parameter is a parameter of a request, as the protocol has them beside the tensors.
type Parameter struct {
	Name  string
	Value any // int64, string or bool
}

// Format says in which form tensors travel over HTTP: as JSON, or as bytes behind it.
type Format struct{ JSONInputs, JSONOutputs bool }

// InputError says what of a request or of the options cannot be sent, and so is for the user to mend.
type InputError struct{ Text string }

func (e *InputError) Error() string { return e.Text }

// MismatchError says where an output differs from the expected one.
type MismatchError struct {
	Output    string
	Element   int    // the first that differs; -1: the output as a whole
	Want, Got string // values
}

func (e *MismatchError) Error() string {
	if e.Element < 0 {
		return fmt.Sprintf("output %q is %s, expected is %s", e.Output, e.Got, e.Want)
	}
	return fmt.Sprintf("output %q differs at element %d: it is %s, expected is %s", e.Output, e.Element, e.Got, e.Want)
}
