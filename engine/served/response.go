package served

import (
	"sync/atomic"

	"tuner/engine/budget"
	"tuner/engine/request"
	"tuner/engine/sequence"
)

// Response is the answer to a request: the requested outputs in the order of their names.
type Response struct {
	Model   string
	Version int64
	ID      string
	Outputs []request.Tensor // Data is valid until Release
	// it comes from the steps of an ensemble: Triton adds the request's place in a sequence to such
	// answers, also if it has none
	IsComposed bool
	Sequence   sequence.ID
	Start, End bool

	memory  *Shared
	account *budget.Account // charged for the outputs until Release
	lends   *atomic.Bool    // the instance lends memory, which has these outputs and nothing else; nil: it has more
}

// Release frees the memory of the outputs. Every Response must be released once.
func (r *Response) Release() {
	r.memory.Release()
	r.account.Give(request.DataBytes(r.Outputs))
}

// Keep lets the outputs outlive Release: they are valid until free is called, which must happen once. The
// caller takes over the charge for them, of some bytes. ok is false if they cannot be kept: more memory than
// is charged for them would be, or the instance's last outputs that were kept are not free yet. So what waits
// for slow clients does not make ONNX Runtime's arena grow, which never shrinks.
func (r *Response) Keep() (bytes int, free func(), ok bool) {
	if r.lends == nil || !r.lends.CompareAndSwap(false, true) {
		return 0, nil, false
	}
	memory, lends := r.memory, r.lends
	r.memory, r.lends = nil, nil
	if r.account != nil {
		bytes, r.account = request.DataBytes(r.Outputs), nil
	}
	return bytes, func() {
		memory.Release()
		lends.Store(false)
	}, true
}

// View returns the response with other outputs in place of its own. It owns no memory: it is valid until r is
// released, needs no release, and cannot be kept.
func (r *Response) View(outputs []request.Tensor) *Response {
	out := *r
	out.Outputs, out.memory, out.account, out.lends = outputs, nil, nil, nil
	return &out
}

// Shared is a resource with several users: the output memory of a batch, or the temporary folder of
// a model. The last user who releases it frees it. nil needs no release.
type Shared struct {
	users atomic.Int32
	free  func()
}

// NewShared makes a resource with one user, the caller. free may be nil.
func NewShared(free func()) *Shared {
	m := &Shared{free: free}
	m.users.Store(1)
	return m
}

// Release ends the use by one user.
func (m *Shared) Release() {
	if m == nil {
		return
	}
	if m.users.Add(-1) == 0 && m.free != nil {
		m.free()
	}
}
