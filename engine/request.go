package engine

import (
	"sync/atomic"

	"tuner/engine/budget"
	"tuner/engine/request"
)

// What front ends and backends need of a request, under one roof.
type (
	// DataType is the type of a tensor's elements.
	DataType = request.DataType
	// Tensor is an input or output of a request.
	Tensor = request.Tensor
	// Request is a request for one inference.
	Request = request.Request
)

// Response is the answer to a Request: the requested outputs in the order of their names.
type Response struct {
	Model   string
	Version int64
	ID      string
	Outputs []Tensor // Data is valid until Release
	// it comes from the steps of an ensemble: Triton adds the parameters of a sequence to such answers
	IsComposed bool

	memory  *shared
	account *budget.Account // charged for the outputs until Release
}

// Release frees the memory of the outputs. Every Response must be released once.
func (r *Response) Release() {
	r.memory.release()
	r.account.Give(request.DataBytes(r.Outputs))
}

// shared is a resource with several users: the output memory of a batch, or the temporary folder of
// a model. The last user who releases it frees it. nil needs no release.
type shared struct {
	users atomic.Int32
	free  func()
}

func (m *shared) release() {
	if m == nil {
		return
	}
	if m.users.Add(-1) == 0 && m.free != nil {
		m.free()
	}
}
