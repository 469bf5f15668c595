package wire

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

// mostMetadata bounds the header fields of a request in bytes. It is the default bound of gRPC
// servers.
const mostMetadata = 8 << 10

// reserved are the header fields that gRPC sets itself, and those that HTTP/2 forbids or puts
// elsewhere (RFC 9113, §8.2.2).
var reserved = []string{
	"te", "content-type", "user-agent",
	"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade", "host", "content-length",
}

// requestFields returns the header fields of every call, the user's last. An *InputError names a
// field that cannot be sent. Source: gRPC's doc/PROTOCOL-HTTP2.md, Requests.
func requestFields(o Options) ([]hpack.HeaderField, error) {
	path, scheme := pb.GRPCInferenceService_ModelInfer_FullMethodName, "http"
	if o.Protocol == GRPCStream {
		path = pb.GRPCInferenceService_ModelStreamInfer_FullMethodName
	}
	if o.TLS != nil {
		scheme = "https"
	}
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: scheme}, {Name: ":path", Value: path},
		{Name: ":authority", Value: o.Address}, {Name: "te", Value: "trailers"}, {Name: "content-type", Value: "application/grpc"},
		{Name: "user-agent", Value: "tuner"}, {Name: "grpc-accept-encoding", Value: "identity, deflate, gzip"},
	}
	if o.Compression != "" {
		fields = append(fields, hpack.HeaderField{Name: "grpc-encoding", Value: o.Compression})
	}
	size := 0
	for _, h := range o.Headers {
		name, value := strings.ToLower(h.Name), h.Value
		if slices.Contains(reserved, name) || strings.HasPrefix(name, "grpc-") {
			return nil, &InputError{fmt.Sprintf("header %q cannot be set: gRPC sets it, or has no place for it", h.Name)}
		}
		if strings.HasSuffix(name, "-bin") {
			value = base64.RawStdEncoding.EncodeToString([]byte(value))
		}
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, &InputError{fmt.Sprintf("header %q with value %q is not allowed in gRPC", h.Name, h.Value)}
		}
		size += len(name) + len(value)
		fields = append(fields, hpack.HeaderField{Name: name, Value: value})
	}
	if size > mostMetadata {
		return nil, &InputError{fmt.Sprintf("the headers have %d bytes together: gRPC's servers take %d", size, mostMetadata)}
	}
	return fields, nil
}

// fieldWriter encodes the same header fields for each call of a connection. The server keeps the
// fields in its table of recent ones. So from the second call on they are a few indices.
type fieldWriter struct {
	fields  []hpack.HeaderField
	encoder *hpack.Encoder
	buffer  bytes.Buffer
	latest  []byte
	settled bool // all later blocks equal latest
}

func newFieldWriter(o Options) (*fieldWriter, error) {
	fields, err := requestFields(o)
	if err != nil {
		return nil, err
	}
	w := &fieldWriter{fields: fields}
	w.encoder = hpack.NewEncoder(&w.buffer)
	return w, nil
}

// limit sets the size of the server's table in bytes.
func (w *fieldWriter) limit(size uint32) {
	w.encoder.SetMaxDynamicTableSizeLimit(size)
	w.settled = false
}

// block returns the header block of the next call. It must be sent before the next call of block.
func (w *fieldWriter) block() []byte {
	if w.settled {
		return w.latest
	}
	w.buffer.Reset()
	for _, f := range w.fields {
		_ = w.encoder.WriteField(f) // a write to memory does not fail
	}
	// A block's effect on the table depends on its fields alone. So after two equal blocks in a
	// row, all are equal.
	w.settled = bytes.Equal(w.latest, w.buffer.Bytes())
	w.latest = bytes.Clone(w.buffer.Bytes())
	return w.latest
}

// fields holds the header fields of an answer that are used.
type fields struct {
	http     string // :status; "" in trailers
	encoding string // grpc-encoding, of the messages
	status   string // grpc-status; "": none
	message  string // grpc-message
}

// failure returns the error of a call, from trailers or from a head that is the whole answer. http
// is the answer's :status.
func (f fields) failure(http string) error {
	status, err := strconv.Atoi(f.status)
	switch {
	case f.status == "":
		return &api.StatusError{Status: int(codes.Unknown), Text: "the answer has no status of gRPC, and the HTTP status " + http}
	case err != nil:
		return &api.StatusError{Status: int(codes.Unknown), Text: fmt.Sprintf("the answer's status of gRPC is %q", excerpt([]byte(f.status)))}
	case status == int(codes.OK):
		return nil
	}
	text, err := url.PathUnescape(f.message)
	if err != nil {
		text = f.message
	}
	return &api.StatusError{Status: status, Text: text}
}

// blockKind is the place of a header block in an answer.
type blockKind int

const (
	headBlock blockKind = iota
	trailerBlock
)

// blockReader decodes the header blocks of answers. Our settings forbid servers a table of recent
// fields. So equal blocks have the same meaning, and each is decoded once.
type blockReader struct {
	decoder *hpack.Decoder
	latest  [2]struct { // by blockKind
		block  []byte
		fields fields
	}
}

func (r *blockReader) read(kind blockKind, block []byte) (fields, error) {
	known := &r.latest[kind]
	if known.block != nil && bytes.Equal(known.block, block) {
		return known.fields, nil
	}
	if r.decoder == nil {
		r.decoder = hpack.NewDecoder(0, nil)
	}
	list, err := r.decoder.DecodeFull(block)
	if err != nil {
		return fields{}, fmt.Errorf("cannot read the header fields of an answer: %w", err)
	}
	var out fields
	for _, f := range list {
		switch f.Name {
		case ":status":
			out.http = f.Value
		case "grpc-encoding":
			out.encoding = f.Value
		case "grpc-status":
			out.status = f.Value
		case "grpc-message":
			out.message = f.Value
		}
	}
	known.block, known.fields = append(known.block[:0], block...), out
	return out, nil
}
