// Package collectortest is an OpenTelemetry collector for tests: it keeps what it gets, as OTLP over
// HTTP.
package collectortest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// mostExports bounds the exports that a receiver keeps, and that no test has taken.
const mostExports = 64

// Receiver is a collector.
type Receiver struct {
	URL string
	Got chan *collector.ExportTraceServiceRequest

	status atomic.Int32
}

// New starts a collector that ends with the test.
func New(t *testing.T) *Receiver {
	t.Helper()
	r := &Receiver{Got: make(chan *collector.ExportTraceServiceRequest, mostExports)}
	r.Answer(http.StatusOK)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Answer sets the status of the answers.
func (r *Receiver) Answer(status int) { r.status.Store(int32(status)) }

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	export, err := read(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(int(r.status.Load()))
	r.Got <- export
}

func read(request *http.Request) (*collector.ExportTraceServiceRequest, error) {
	var body io.Reader = request.Body
	if request.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = unpacked
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var export collector.ExportTraceServiceRequest
	return &export, proto.Unmarshal(data, &export)
}
