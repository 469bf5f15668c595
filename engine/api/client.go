package api

import (
	"context"
	"fmt"

	"tuner/model/modelconfig"
)

// Tensor is an input or output of a request, in wire form: elements little-endian and row-major; each element of BYTES is
// a 32-bit length and that many bytes.
type Tensor struct {
	Name     string
	Datatype string // FP32, INT64, BYTES, …
	Shape    []int64
	Data     []byte
}

// InferRequest asks for one inference.
type InferRequest struct {
	Model    string
	Version  string // empty: the newest
	ID       string
	Inputs   []Tensor
	Outputs  []string // empty: all
	Priority uint64   // 0: the model's default
	Timeout  uint64   // in the queue, microseconds; 0: none
}

// Encoded is an InferRequest in the form that a client of the same protocol sends. It may be sent any number of times,
// also concurrently.
type Encoded struct {
	path   string // HTTP
	body   []byte
	header int // bytes of JSON in body; HTTP
}

// InferResponse is an answer that has not been decoded, which costs a load generator nothing.
type InferResponse struct {
	body   []byte
	header int
	decode func(*InferResponse) ([]Tensor, error)
}

// Outputs decodes the outputs.
func (r *InferResponse) Outputs() ([]Tensor, error) { return r.decode(r) }

// File is a file of a model, sent with a load request in place of those in the repository.
type File struct {
	Path string // below the model's folder, such as 1/model.onnx
	Data []byte
}

// Client talks to one server. Its methods are safe for concurrent use, and block until the answer is there or ctx ends.
// An error that the server answered is a *StatusError.
type Client interface {
	// ServerReady reports whether the server says that it is ready. An error means that it could not be asked.
	ServerReady(ctx context.Context) (bool, error)
	ServerMetadata(ctx context.Context) (ServerMetadata, error)
	// ModelReady reports whether the newest version of a model is ready.
	ModelReady(ctx context.Context, model string) (bool, error)
	ModelMetadata(ctx context.Context, model string) (ModelMetadata, error)
	ModelConfig(ctx context.Context, model string) (*modelconfig.Config, error)
	// Statistics returns the counters of all versions of a model; of all models with an empty name.
	Statistics(ctx context.Context, model string) (Statistics, error)
	Index(ctx context.Context) ([]IndexEntry, error)
	// LoadModel loads a model, or loads it again. configJSON, the whole configuration, replaces the one in the repository
	// unless it is empty; files, which need it, replace all files of the model.
	LoadModel(ctx context.Context, model, configJSON string, files ...File) error
	UnloadModel(ctx context.Context, model string) error
	// Encode prepares a request for Infer of the same client.
	Encode(InferRequest) (*Encoded, error)
	Infer(ctx context.Context, r *Encoded) (*InferResponse, error)
	// Close closes the connections; calls in progress fail. Closing twice is safe.
	Close() error
}

// StatusError is an error that the server answered.
type StatusError struct {
	Status int    // HTTP status, or gRPC code
	Text   string // the server's words
}

func (e *StatusError) Error() string { return fmt.Sprintf("server answered %d: %s", e.Status, e.Text) }
