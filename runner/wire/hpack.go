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

// mostMetadata bounds the header fields of a request, in bytes: what servers of gRPC take unless they are told otherwise.
const mostMetadata = 8 << 10

// reserved are the header fields that are gRPC's own, and those that HTTP/2 forbids or has elsewhere (RFC 9113, §8.2.2).
var reserved = []string{
	"te", "content-type", "user-agent",
	"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade", "host", "content-length",
}

// requestFields are the header fields of every call. The user's come last. An *InputError says which cannot be sent.
// Source: gRPC's doc/PROTOCOL-HTTP2.md, Requests.
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

// fieldWriter encodes the same header fields for each call of a connection. The server keeps the fields in its table of
// recent ones, so that from the second call on they are a few indices.
type fieldWriter struct {
	fields  []hpack.HeaderField
	encoder *hpack.Encoder
	buffer  bytes.Buffer
	latest  []byte
	settled bool // the latest block is good for all calls to come
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

// limit heeds the size of the server's table, in bytes.
func (w *fieldWriter) limit(size uint32) {
	w.encoder.SetMaxDynamicTableSizeLimit(size)
	w.settled = false
}

// block is the header block of the next call, which has to be sent before the one after it is made.
func (w *fieldWriter) block() []byte {
	if w.settled {
		return w.latest
	}
	w.buffer.Reset()
	for _, f := range w.fields {
		_ = w.encoder.WriteField(f) // into memory
	}
	// What a block leaves in the table depends on its fields alone, so two equal ones in turn mean that all are.
	w.settled = bytes.Equal(w.latest, w.buffer.Bytes())
	w.latest = bytes.Clone(w.buffer.Bytes())
	return w.latest
}

// fields are what matters of the header fields of an answer.
type fields struct {
	http     string // :status; empty in trailers
	encoding string // of the messages: grpc-encoding
	status   string // grpc-status; empty: there is none
	message  string // grpc-message
}

// failure is what trailers, or a head that is the whole answer, say of the call; http is the answer's :status.
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

// blockKind says where in an answer a header block stands.
type blockKind int

const (
	headBlock blockKind = iota
	trailerBlock
)

// blockReader decodes the header blocks of answers. Servers were told to use no table of recent fields, so a block means
// the same each time, and is decoded once.
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
