// Package classification makes classes of an output: for each row of a batch the highest values, with
// their positions and labels, as Triton's classification extension has them.
//
// It stands between package engine, which has the outputs and the labels, and the numbers. It knows
// no requests.
package classification

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"tuner/engine/budget"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// most is the largest number of elements of a row that are sorted, as in newer Tritons.
const most = 1_000_000

// firstBytes is the first size of an output of classes.
const firstBytes = 256

// Replace returns the outputs of a request with classes in place of those that are wanted so. Then the
// list is new, since that of a batch or of a cache is shared. The charge of each output that is replaced
// is given back. After an error some are replaced.
func Replace(outputs []request.Tensor, r *request.Request, isBatched bool, labels map[string][]string) ([]request.Tensor, error) {
	if len(r.Classes) == 0 {
		return outputs, nil
	}
	outputs = slices.Clone(outputs)
	for i := range outputs {
		count := r.ClassesOf(outputs[i].Name)
		if count == 0 {
			continue
		}
		classes, err := Of(&outputs[i], isBatched, count, labels[outputs[i].Name], r.Memory)
		if err != nil {
			return outputs, err
		}
		r.Memory.Give(len(outputs[i].Data))
		outputs[i] = classes
	}
	return outputs, nil
}

// Of returns an output of strings with the count highest elements of each row of an output: value,
// position, and the label if there is one. isBatched: the first dimension counts the rows. Its data
// is charged to the account. The caller gives it back.
func Of(t *request.Tensor, isBatched bool, count uint32, labels []string, account *budget.Account) (request.Tensor, error) {
	width := modelconfig.ByteSize(t.DataType)
	read, ok := readerOf(t.DataType)
	if !ok || width == 0 {
		return request.Tensor{}, fault.Errorf(fault.InvalidArgument, "class result not available for output due to unsupported type '%s'", request.WireName(t.DataType))
	}
	rows, elements := 1, t.Shape
	var shape []int64
	if isBatched && len(t.Shape) > 0 && t.Shape[0] > 0 {
		rows, elements = int(t.Shape[0]), t.Shape[1:]
		shape = append(shape, t.Shape[0])
	}
	perRow, fits := request.Product(elements)
	if !fits || perRow > most {
		return request.Tensor{}, fault.Errorf(fault.InvalidArgument, "classification output tensor too large")
	}
	n := int(perRow)
	if len(t.Data) < rows*n*width {
		return request.Tensor{}, fault.Errorf(fault.Internal, "output '%s' has fewer elements than its shape", t.Name)
	}
	order := 4 * n // bytes of the positions of a row
	if !account.Take(order) {
		return request.Tensor{}, fault.Full(account)
	}
	defer account.Give(order)
	k := min(n, int(count))
	out := output{account: account}
	positions := make([]int32, n)
	for row := range rows {
		data := t.Data[row*n*width:]
		sortPositions(positions, data, read)
		for _, at := range positions[:k] {
			if err := out.add(data, at, read, labels); err != nil {
				account.Give(out.charged)
				return request.Tensor{}, err
			}
		}
	}
	defer account.Give(out.charged)
	if !account.Take(len(out.data)) {
		return request.Tensor{}, fault.Full(account)
	}
	exact := append(make([]byte, 0, len(out.data)), out.data...)
	return request.Tensor{Name: t.Name, DataType: configpb.DataType_TYPE_STRING, Shape: append(shape, int64(k)), Data: exact}, nil
}

// output is the data of classes.
type output struct {
	account *budget.Account
	data    []byte
	charged int
	text    []byte // of one class
}

// add appends a class: VALUE:POSITION[:LABEL].
func (o *output) add(data []byte, at int32, read reader, labels []string) error {
	o.text = append(read.text(o.text[:0], data, int(at)), ':')
	o.text = strconv.AppendInt(o.text, int64(at), 10)
	label := ""
	if int(at) < len(labels) {
		label = labels[at]
	}
	length := len(o.text)
	if label != "" {
		length += 1 + len(label)
	}
	if need := len(o.data) + 4 + length; need > cap(o.data) {
		size := max(2*cap(o.data), need, firstBytes)
		if !o.account.Take(size) {
			return fault.Full(o.account)
		}
		o.data = append(make([]byte, 0, size), o.data...)
		o.account.Give(o.charged)
		o.charged = size
	}
	o.data = append(binary.LittleEndian.AppendUint32(o.data, uint32(length)), o.text...)
	if label != "" {
		o.data = append(append(o.data, ':'), label...)
	}
	return nil
}

// reader reads the elements of a type.
type reader struct {
	more func(data []byte, a, b int) bool              // whether element a is larger than element b
	text func(dst, data []byte, i int) (result []byte) // an element as C++'s std::to_string writes it
}

func readerOf(t request.DataType) (reader, bool) {
	le := binary.LittleEndian
	switch t {
	case configpb.DataType_TYPE_UINT8:
		return unsigned(func(d []byte, i int) uint64 { return uint64(d[i]) }), true
	case configpb.DataType_TYPE_UINT16:
		return unsigned(func(d []byte, i int) uint64 { return uint64(le.Uint16(d[2*i:])) }), true
	case configpb.DataType_TYPE_UINT32:
		return unsigned(func(d []byte, i int) uint64 { return uint64(le.Uint32(d[4*i:])) }), true
	case configpb.DataType_TYPE_UINT64:
		return unsigned(func(d []byte, i int) uint64 { return le.Uint64(d[8*i:]) }), true
	case configpb.DataType_TYPE_INT8:
		return signed(func(d []byte, i int) int64 { return int64(int8(d[i])) }), true
	case configpb.DataType_TYPE_INT16:
		return signed(func(d []byte, i int) int64 { return int64(int16(le.Uint16(d[2*i:]))) }), true
	case configpb.DataType_TYPE_INT32:
		return signed(func(d []byte, i int) int64 { return int64(int32(le.Uint32(d[4*i:]))) }), true
	case configpb.DataType_TYPE_INT64:
		return signed(func(d []byte, i int) int64 { return int64(le.Uint64(d[8*i:])) }), true
	case configpb.DataType_TYPE_FP32:
		return real(func(d []byte, i int) float64 { return float64(math.Float32frombits(le.Uint32(d[4*i:]))) }), true
	case configpb.DataType_TYPE_FP64:
		return real(func(d []byte, i int) float64 { return math.Float64frombits(le.Uint64(d[8*i:])) }), true
	default:
		return reader{}, false
	}
}

func unsigned(at func([]byte, int) uint64) reader {
	return reader{
		more: func(d []byte, a, b int) bool { return at(d, a) > at(d, b) },
		text: func(dst, d []byte, i int) []byte { return strconv.AppendUint(dst, at(d, i), 10) },
	}
}

func signed(at func([]byte, int) int64) reader {
	return reader{
		more: func(d []byte, a, b int) bool { return at(d, a) > at(d, b) },
		text: func(dst, d []byte, i int) []byte { return strconv.AppendInt(dst, at(d, i), 10) },
	}
}

func real(at func([]byte, int) float64) reader {
	return reader{
		more: func(d []byte, a, b int) bool { return at(d, a) > at(d, b) },
		text: func(dst, d []byte, i int) []byte { return appendReal(dst, at(d, i)) },
	}
}

// appendReal writes a number with six decimals, as printf's %f.
func appendReal(dst []byte, f float64) []byte {
	if !math.IsNaN(f) && !math.IsInf(f, 0) {
		return strconv.AppendFloat(dst, f, 'f', 6, 64)
	}
	if math.Signbit(f) {
		dst = append(dst, '-')
	}
	if math.IsNaN(f) {
		return append(dst, "nan"...)
	}
	return append(dst, "inf"...)
}

// sortPositions lists the positions of a row's elements, the largest element first. Triton sorts them
// with C++'s std::sort, which is not stable. So equal elements, and NaN, which compares as equal to
// everything, have the order which the algorithm of GCC's library leaves them in: introsort.
func sortPositions(positions []int32, data []byte, read reader) {
	for i := range positions {
		positions[i] = int32(i)
	}
	s := sorter{positions, func(a, b int32) bool { return read.more(data, int(a), int(b)) }}
	n := len(positions)
	s.introsort(0, n, 2*(bits(n)-1))
	s.insertion(0, min(n, small))
	for i := small; i < n; i++ {
		s.sink(0, i)
	}
}

// small is the length of parts that are left to the insertion sort at the end.
const small = 16

// bits returns the number of binary digits of n.
func bits(n int) int {
	digits := 0
	for ; n > 0; n >>= 1 {
		digits++
	}
	return digits
}

type sorter struct {
	list []int32
	less func(a, b int32) bool // whether a stands before b
}

// introsort orders list[first:last] so far that only parts of small elements are left to order. Beyond
// the depth it sorts in another way, which bounds the time. There ties may have another order than
// in Triton.
func (s *sorter) introsort(first, last, depth int) {
	for last-first > small {
		if depth == 0 {
			slices.SortStableFunc(s.list[first:last], func(a, b int32) int {
				switch {
				case s.less(a, b):
					return -1
				case s.less(b, a):
					return 1
				}
				return 0
			})
			return
		}
		depth--
		s.medianToFirst(first, first+1, first+(last-first)/2, last-1)
		cut := s.partition(first+1, last, first)
		s.introsort(cut, last, depth)
		last = cut
	}
}

// medianToFirst swaps the median of three elements with the one at result.
func (s *sorter) medianToFirst(result, a, b, c int) {
	l := s.list
	if !s.less(l[a], l[b]) {
		a, b = b, a
	}
	// now a stands before b, or both are equal
	m := b
	switch {
	case s.less(l[b], l[c]):
	case s.less(l[a], l[c]):
		m = c
	default:
		m = a
	}
	l[result], l[m] = l[m], l[result]
}

// partition moves what stands before the element at pivot to the front, and returns where the rest
// begins.
func (s *sorter) partition(first, last, pivot int) int {
	l, end := s.list, last
	for {
		for first < end && s.less(l[first], l[pivot]) {
			first++
		}
		last--
		for last > pivot && s.less(l[pivot], l[last]) {
			last--
		}
		if first >= last {
			return first
		}
		l[first], l[last] = l[last], l[first]
		first++
	}
}

// insertion sorts list[first:last] and keeps the order of equal elements.
func (s *sorter) insertion(first, last int) {
	for i := first + 1; i < last; i++ {
		if v := s.list[i]; s.less(v, s.list[first]) {
			copy(s.list[first+1:i+1], s.list[first:i])
			s.list[first] = v
			continue
		}
		s.sink(first, i)
	}
}

// sink moves the element at i forward until the one before it stands before it or is equal.
func (s *sorter) sink(first, i int) {
	v := s.list[i]
	for ; i > first && s.less(v, s.list[i-1]); i-- {
		s.list[i] = s.list[i-1]
	}
	s.list[i] = v
}
