// Package request has a request for an inference, and checks it against what a model asks of it, as
// Triton does and in its words.
//
// Front ends make requests. Package engine has them checked before it queues them. This package
// neither reads a wire nor runs anything.
package request

import (
	"math"
	"slices"
	"time"

	"tuner/engine/budget"
	"tuner/engine/fault"
	"tuner/engine/sequence"
	"tuner/engine/trace"
	"tuner/model/modelconfig/configpb"
)

// DataType is the type of a tensor's elements.
type DataType = configpb.DataType

// Tensor is an input or output of a request, in wire form: elements are little-endian and
// row-major. Each element of TYPE_STRING is a 32-bit length and that many bytes.
type Tensor struct {
	Name     string
	DataType DataType
	Shape    []int64 // with the batch dimension, if the model batches
	Data     []byte
}

// Request is a request for one inference. The server reads its memory until Wait returns, and never
// writes to it.
type Request struct {
	Model    string
	Version  int64 // 0: the newest that is ready
	ID       string
	Priority uint64        // 1 is the highest; 0: the model's default
	Timeout  time.Duration // limit in the queue; 0: none
	Inputs   []Tensor
	Outputs  []string // names; empty: all
	// how many classes are wanted of each output in Outputs, 0: the output itself; empty: of none
	Classes []uint32
	Rooms   []Room // of outputs whose place is limited
	// the sequence that the request belongs to, and whether it is its first or last request
	Sequence   sequence.ID
	Start, End bool
	// account for the memory that the server needs for the request; nil: none
	Memory *budget.Account
	// record of what happens to the request; nil: it is not traced
	Trace *trace.Trace
}

// Room is the place for an output.
type Room struct {
	Output string
	Bytes  uint64
}

// CheckRooms refuses outputs that are larger than their place. The text is Triton's.
func (r *Request) CheckRooms(outputs []Tensor) error {
	for _, room := range r.Rooms {
		for i := range outputs {
			if t := &outputs[i]; t.Name == room.Output && uint64(len(t.Data)) > room.Bytes {
				return fault.Errorf(fault.Internal, "shared memory size specified with the request for output '%s' (%d bytes) should be at least %d bytes to hold the results",
					t.Name, room.Bytes, len(t.Data))
			}
		}
	}
	return nil
}

// AddInput appends an input. Only its name is set; other fields may have old values. A request that
// is used again keeps its memory. If the name is the same as before, as mostly for one client, it
// needs no allocation.
func (r *Request) AddInput(name []byte) *Tensor {
	r.Inputs = extend(r.Inputs)
	t := &r.Inputs[len(r.Inputs)-1]
	SetText(&t.Name, name)
	return t
}

// AddOutput appends the name of an output, as AddInput does.
func (r *Request) AddOutput(name []byte) {
	r.Outputs = extend(r.Outputs)
	SetText(&r.Outputs[len(r.Outputs)-1], name)
}

// Classify asks for classes of the last output that was added, and not for the output itself.
func (r *Request) Classify(count uint32) {
	for len(r.Classes) < len(r.Outputs) {
		r.Classes = append(r.Classes, 0)
	}
	r.Classes[len(r.Outputs)-1] = count
}

// ClassesOf returns how many classes of an output are wanted. 0: the output itself is.
func (r *Request) ClassesOf(output string) uint32 {
	if i := slices.Index(r.Outputs, output); i >= 0 && i < len(r.Classes) {
		return r.Classes[i]
	}
	return 0
}

// extend adds an element to a list. It has its old value if the list was longer once.
func extend[T any](list []T) []T { return slices.Grow(list, 1)[:len(list)+1] }

// SetText sets s to a text. It allocates only if the text has changed.
func SetText(s *string, text []byte) {
	if *s != string(text) {
		*s = string(text)
	}
}

// Microseconds converts a time in microseconds, as on the wire and in configurations. It is bounded
// by the range of Duration.
func Microseconds(n uint64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/uint64(time.Microsecond))) * time.Microsecond
}
