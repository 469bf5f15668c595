package engine

import (
	"sync/atomic"
	"time"

	"tuner/modelconfig/configpb"
)

// DataType is the type of a tensor's elements.
type DataType = configpb.DataType

// Tensor is an input or output of a request, in wire form: elements little-endian and row-major; each element of
// TYPE_STRING is a 32-bit length and that many bytes.
type Tensor struct {
	Name     string
	DataType DataType
	Shape    []int64 // with the batch dimension, if the model batches
	Data     []byte
}

// Request asks for one inference. The server reads its memory until Wait returns, and never writes to it.
type Request struct {
	Model    string
	Version  int64 // 0: the newest that is ready
	ID       string
	Priority uint64        // 1 is the highest; 0: the model's default
	Timeout  time.Duration // in the queue; 0: none
	Inputs   []Tensor
	Outputs  []string // names; empty: all
}

// Response is the answer to a Request: the requested outputs in the order of their names.
type Response struct {
	Model   string
	Version int64
	ID      string
	Outputs []Tensor // Data is valid until Release

	memory *shared
}

// Release gives back the memory of the outputs; every Response must be released, once.
func (r *Response) Release() { r.memory.release() }

// shared is something that several users hold: the output memory of a batch, the temporary folder of a model. The last one
// who releases it frees it.
type shared struct {
	users atomic.Int32
	free  func()
}

func (m *shared) release() {
	if m.users.Add(-1) == 0 && m.free != nil {
		m.free()
	}
}
