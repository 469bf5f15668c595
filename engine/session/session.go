// Package session describes an instance of a model that runs batches, for those who make one and those
// who run it. It runs nothing itself.
package session

import (
	"time"

	"tuner/engine/request"
	"tuner/engine/trace"
	"tuner/model/modelconfig"
)

// Session is one instance of a model.
type Session interface {
	// IO returns the model's own inputs and outputs.
	IO() modelconfig.ModelIO
	// Execute runs a batch. One goroutine at a time calls it. It keeps no part of the batch.
	Execute(*Batch) (Result, error)
	// Close frees the session. Results that have not been freed yet stay valid. It may be called
	// twice.
	Close() error
}

// ApartSession is a Session that runs the requests of a batch each by itself. So their shapes and
// sets of inputs may differ. Execute is called for warm-up alone.
type ApartSession interface {
	Session
	// ExecuteApart sets the outputs, or the error, of each request. One goroutine at a time calls it.
	// It keeps no part of the requests.
	ExecuteApart([]Apart) Result
}

// Apart is one request of a batch for an ApartSession.
type Apart struct {
	Inputs  []request.Tensor // in the configuration's order, with the shapes of the model
	Names   []string         // of the outputs to return
	Outputs []request.Tensor // set by ExecuteApart, in that order
	Err     error            // set by ExecuteApart

	Activities []trace.Activity // noted by ExecuteApart
}

// Note tells the request's trace of an activity of the backend, now.
func (a *Apart) Note(name string) {
	a.Activities = append(a.Activities, trace.Activity{Name: name, At: time.Now()})
}

// Sharing is a Session that further instances may use too.
type Sharing interface {
	// Share returns a further instance of the model on the session. Each is closed by itself. It
	// returns nil if the model's configuration gives each instance a session of its own.
	Share() Session
}

// Batch is the input of one execution.
type Batch struct {
	Inputs  []BatchInput
	Outputs []string // names of the outputs to return, in that order
}

// BatchInput is one input of a batch: the concatenated data of its requests.
type BatchInput struct {
	Name     string
	DataType request.DataType
	Shape    []int64  // shape of the whole batch
	Parts    [][]byte // in wire form, one per request
}

// Result is the outcome of a batch.
type Result struct {
	// of the whole batch, in wire form; Data is valid until Free, also when the batch's own memory has changed
	Outputs  []request.Tensor
	Gathered time.Time
	Computed time.Time
	Free     func() // called exactly once; nil: there is nothing to free
}
