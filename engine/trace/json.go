package trace

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// appendTrace appends a trace in the form of Triton's files: the elements of a list. Those of an
// ensemble's steps come first, the newest before the others. A trace of a request that failed early
// may have none.
func appendTrace(dst []byte, t *Trace, c clock) []byte {
	begin := len(dst)
	for _, step := range slices.Backward(t.steps) {
		before := len(dst)
		dst = separated(dst, begin)
		from := len(dst)
		if dst = appendTrace(dst, step, c); len(dst) == from {
			dst = dst[:before]
		}
	}
	for _, m := range order(!t.At(GRPCReadEnd).IsZero()) {
		if at := t.At(m); !at.IsZero() {
			if m == RequestStart {
				dst = appendHead(separated(dst, begin), t)
			}
			dst = appendMoment(separated(dst, begin), t.ID, m.String(), c.of(at))
		}
		if m == QueueStart {
			dst = appendTensors(dst, begin, t.inputs)
			dst = appendTensors(dst, begin, t.outputs)
			for _, a := range t.noted {
				dst = appendMoment(separated(dst, begin), t.ID, a.Name, c.of(a.At))
			}
		}
	}
	return dst
}

// order returns the order of moments in Triton's files. Over gRPC, those of the front end are last.
func order(overGRPC bool) []Moment {
	if overGRPC {
		return []Moment{
			RequestStart, QueueStart, ComputeStart, ComputeInputEnd, ComputeOutputStart, ComputeEnd, RequestEnd,
			GRPCReadStart, GRPCReadEnd, ResponseComplete, GRPCSendStart, GRPCSendEnd,
		}
	}
	return []Moment{
		HTTPReceiveStart, HTTPReceiveEnd, RequestStart, QueueStart, ResponseComplete,
		ComputeStart, ComputeInputEnd, ComputeOutputStart, ComputeEnd, RequestEnd, HTTPSendStart, HTTPSendEnd,
	}
}

// separated appends a comma if the list has an element.
func separated(dst []byte, begin int) []byte {
	if len(dst) > begin {
		return append(dst, ',')
	}
	return dst
}

func appendTensors(dst []byte, begin int, tensors []byte) []byte {
	if len(tensors) == 0 {
		return dst
	}
	return append(separated(dst, begin), tensors...)
}

func appendID(dst []byte, id uint64) []byte {
	return strconv.AppendUint(append(dst, `{"id":`...), id, 10)
}

// appendHead appends what the trace is of.
func appendHead(dst []byte, t *Trace) []byte {
	dst = append(appendID(dst, t.ID), `,"model_name":`...)
	dst = append(appendText(dst, t.Model), `,"model_version":`...)
	dst = strconv.AppendInt(dst, t.Version, 10)
	if t.RequestID != "" {
		dst = appendText(append(dst, `,"request_id":`...), t.RequestID)
	}
	if t.ParentID != 0 {
		dst = strconv.AppendUint(append(dst, `,"parent_id":`...), t.ParentID, 10)
	}
	return append(dst, '}')
}

func appendMoment(dst []byte, id uint64, name string, ns int64) []byte {
	dst = append(appendID(dst, id), `,"timestamps":[{"name":"`...)
	dst = append(append(dst, name...), `","ns":`...)
	return append(strconv.AppendInt(dst, ns, 10), `}]}`...)
}

// appendText appends a text in quotes.
func appendText(dst []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // a text has a form in JSON
	return append(dst, quoted...)
}

// Tensor is an input or output as on the wire: elements are little-endian and row-major. Each element
// of BYTES is a 32-bit length and that many bytes.
type Tensor struct {
	Name     string
	Datatype string // KServe's name
	Shape    []int64
	Data     []byte
}

// Tensors reports whether the trace has the inputs and outputs of its request.
func (t *Trace) Tensors() bool {
	return t != nil && t.setting.config.Level&LevelTensors != 0 && t.setting.config.Mode == ModeTriton
}

// Input notes an input of the request.
func (t *Trace) Input(in Tensor) { t.inputs = t.appendTensor(t.inputs, "TENSOR_QUEUE_INPUT", in) }

// Output notes an output.
func (t *Trace) Output(out Tensor) {
	t.outputs = t.appendTensor(t.outputs, "TENSOR_BACKEND_OUTPUT", out)
}

const (
	// largestFactor is the most characters of a byte of a tensor in JSON: "\u0001" in a text.
	largestFactor = 6
	// tensorOverhead is the most characters of a tensor beside its name, shape and data.
	tensorOverhead = 160
	// dimensionLength is the most characters of a dimension, with its comma.
	dimensionLength = 21
)

// appendTensor appends a tensor. It is left out if the traces hold too much.
func (t *Trace) appendTensor(dst []byte, activity string, x Tensor) []byte {
	most := largestFactor*(len(x.Data)+len(x.Name)) + dimensionLength*len(x.Shape) + tensorOverhead
	if !t.take(int64(most)) {
		return dst
	}
	before := len(dst)
	dst = appendID(separated(dst, 0), t.ID)
	dst = append(append(append(dst, `,"activity":"`...), activity...), `","tensor":{"name":`...)
	dst = append(appendText(dst, x.Name), `,"data":"`...)
	dst = appendElements(dst, x)
	dst = append(dst, `","shape":"`...)
	for i, n := range x.Shape {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, n, 10)
	}
	dst = append(append(append(dst, `","dtype":"`...), x.Datatype...), `"}}`...)
	spare := int64(most - (len(dst) - before))
	t.tracer.memory.give(spare)
	t.held -= spare
	return dst
}

// appendElements appends the elements of a tensor with commas between them. As in Triton, those of
// FP16 and BF16 are left out, and reals have six digits. Triton writes an element of UINT8 and INT8
// as the character with that number, and here it is the number.
func appendElements(dst []byte, x Tensor) []byte {
	if x.Datatype == "BYTES" {
		return appendStrings(dst, x.Data)
	}
	size := map[string]int{
		"BOOL": 1, "UINT8": 1, "INT8": 1, "UINT16": 2, "INT16": 2, "UINT32": 4, "INT32": 4, "FP32": 4, "UINT64": 8, "INT64": 8, "FP64": 8,
	}[x.Datatype]
	if size == 0 {
		return dst
	}
	var wide [8]byte
	for data := x.Data; len(data) >= size; data = data[size:] {
		if len(data) < len(x.Data) {
			dst = append(dst, ',')
		}
		clear(wide[:])
		copy(wide[:], data[:size])
		dst = appendElement(dst, x.Datatype, binary.LittleEndian.Uint64(wide[:]))
	}
	return dst
}

// appendElement appends a number. bits are those of the element, and zeros before them.
func appendElement(dst []byte, datatype string, bits uint64) []byte {
	switch datatype {
	case "BOOL":
		if bits != 0 {
			return append(dst, '1')
		}
		return append(dst, '0')
	case "INT8":
		return strconv.AppendInt(dst, int64(int8(bits)), 10)
	case "INT16":
		return strconv.AppendInt(dst, int64(int16(bits)), 10)
	case "INT32":
		return strconv.AppendInt(dst, int64(int32(bits)), 10)
	case "INT64":
		return strconv.AppendInt(dst, int64(bits), 10)
	case "FP32":
		return appendReal(dst, float64(math.Float32frombits(uint32(bits))))
	case "FP64":
		return appendReal(dst, math.Float64frombits(bits))
	default:
		return strconv.AppendUint(dst, bits, 10)
	}
}

// digits of a real number in Triton's files: the default of C++'s streams.
const digits = 6

// appendReal appends a real number as C++'s streams write it.
func appendReal(dst []byte, x float64) []byte {
	switch {
	case math.IsNaN(x) && math.Signbit(x):
		return append(dst, "-nan"...)
	case math.IsNaN(x):
		return append(dst, "nan"...)
	case math.IsInf(x, 1):
		return append(dst, "inf"...)
	case math.IsInf(x, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, x, 'g', digits, 64)
}

// appendStrings appends texts, each in quotes, which stand within a text of JSON. It ends where the
// tensor does not have what a length says.
func appendStrings(dst, data []byte) []byte {
	const head = 4
	for first := true; len(data) >= head; first = false {
		n := uint64(binary.LittleEndian.Uint32(data))
		if n > uint64(len(data)-head) {
			return dst
		}
		if !first {
			dst = append(dst, ',')
		}
		quoted, _ := json.Marshal(string(data[head : head+n])) // a text has a form in JSON
		dst = append(dst, `\"`...)
		dst = append(dst, quoted[1:len(quoted)-1]...)
		dst = append(dst, `\"`...)
		data = data[head+n:]
	}
	return dst
}
