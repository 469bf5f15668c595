package api

import (
	"context"
	"fmt"

	"tuner/model/modelconfig"
)

// Tensor is an input or output of a request, in wire form: elements are little-endian and
// row-major. Each element of BYTES is a 32-bit length and that many bytes.
type Tensor struct {
	Name     string
	Datatype string // FP32, INT64, BYTES, …
	Shape    []int64
	Data     []byte
}

// InferRequest is a request for one inference.
type InferRequest struct {
	Model    string
	Version  string // "": the newest
	ID       string
	Inputs   []Tensor
	Outputs  []string // empty: all
	Priority uint64   // 0: the model's default
	Timeout  uint64   // limit in the queue, in microseconds; 0: none
}

// Encoded is an InferRequest in the form in which a client of the same protocol sends it. It may be
// sent any number of times, also concurrently.
type Encoded struct {
	path   string // HTTP only
	body   []byte
	header int // HTTP only: bytes of JSON in body
}

// InferResponse is an answer that has not been decoded, so that a load generator need not pay for
// it.
type InferResponse struct {
	body   []byte
	header int
	decode func(*InferResponse) ([]Tensor, error)
}

// Outputs decodes the outputs.
func (r *InferResponse) Outputs() ([]Tensor, error) { return r.decode(r) }

// File is a file of a model. A load request sends it in place of the files in the repository.
type File struct {
	Path string // relative to the model's folder, such as 1/model.onnx
	Data []byte
}

// Client talks to one server. Its methods are safe for concurrent use. They block until the answer
// arrives or ctx ends. An error that the server answered is a *StatusError.
type Client interface {
	// ServerReady reports whether the server says that it is ready. It fails if the server could
	// not be asked.
	ServerReady(ctx context.Context) (bool, error)
	ServerMetadata(ctx context.Context) (ServerMetadata, error)
	// ModelReady reports whether the newest version of a model is ready.
	ModelReady(ctx context.Context, model string) (bool, error)
	ModelMetadata(ctx context.Context, model string) (ModelMetadata, error)
	ModelConfig(ctx context.Context, model string) (*modelconfig.Config, error)
	// Statistics returns the counters of all versions of a model. An empty name returns those of
	// all models.
	Statistics(ctx context.Context, model string) (Statistics, error)
	Index(ctx context.Context) ([]IndexEntry, error)
	// LoadModel loads a model, or loads it again. configJSON, unless empty, replaces the whole
	// configuration of the repository. files replace all files of the model, and need a configJSON.
	LoadModel(ctx context.Context, model, configJSON string, files ...File) error
	UnloadModel(ctx context.Context, model string) error
	// Encode prepares a request for Infer of the same client.
	Encode(InferRequest) (*Encoded, error)
	Infer(ctx context.Context, r *Encoded) (*InferResponse, error)
	// Close closes the connections. Calls in progress fail. It may be called twice.
	Close() error
}

// StatusError is an error that the server answered.
type StatusError struct {
	Status int    // HTTP status, or gRPC code
	Text   string // message of the server
}

func (e *StatusError) Error() string { return fmt.Sprintf("server answered %d: %s", e.Status, e.Text) }
