package engine

import (
	"context"
	"time"

	"tuner/engine/hostpolicy"
	"tuner/model/modelconfig"
)

// Backend runs models. Its methods are safe for concurrent use.
type Backend interface {
	// NewSession makes one instance of a model ready to run. config may still lack inputs and outputs: the session's IO
	// completes it. An error that is not an *Error counts as Internal.
	NewSession(ctx context.Context, files ModelFiles, config *modelconfig.Config, in Instance) (Session, error)
}

// Instance says where an instance of a model runs.
type Instance struct {
	OnGPU bool
	GPU   int // its number, with OnGPU
	// Policy has been applied to the thread that calls NewSession, and will be to the one that calls Execute; the backend's
	// own threads are to stay within it.
	Policy hostpolicy.Policy
}

// ModelFiles says where the files of one version of a model are.
type ModelFiles struct {
	Name    string
	Version int64
	Path    string // the model file; external data lies beside it
}

// Session is one instance of a model.
type Session interface {
	// IO returns the model's own inputs and outputs.
	IO() modelconfig.ModelIO
	// Execute runs a batch. It is called by one goroutine at a time and keeps nothing of the batch.
	Execute(*Batch) (Result, error)
	// Close frees the session, but not results that have not been freed yet: they stay valid. Closing twice is safe.
	Close() error
}

// Batch is what a session runs at once.
type Batch struct {
	Inputs  []BatchInput
	Outputs []string // names of the outputs to return, in that order
}

// BatchInput is one input of a batch: the data of its requests one after the other.
type BatchInput struct {
	Name     string
	DataType DataType
	Shape    []int64  // of the whole
	Parts    [][]byte // in wire form, one per request
}

// Result is the outcome of a batch.
type Result struct {
	Outputs  []Tensor // of the whole batch, in wire form; Data is valid until Free
	Gathered time.Time
	Computed time.Time
	Free     func() // called exactly once; nil: nothing to free
}
