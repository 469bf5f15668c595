// Package inputs derives from a model's graph which inputs the model accepts, and generates random
// ones. Every run with them is valid. For example, an integer that indexes an embedding table is
// drawn from the table's rows, and a mask from {0, 1}.
//
// It stands between the model file and the load generator, for users who have no data of their own.
// It does not invent sizes: open dimensions must be given.
package inputs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tuner/internal/problems"
	"tuner/model/onnx"
	"tuner/model/onnx/shapes"
)

// Distribution is the distribution of an input's values.
type Distribution int

// The distributions.
const (
	Normal    Distribution = iota // floating-point numbers with mean 0 and standard deviation 1
	Uniform                       // integers of a range with equal probability
	Mask                          // along the last dimension: one or more ones, then zeros
	Text                          // decimal strings of integers of a range
	Sentences                     // texts of English sentences
)

// String returns the distribution's name in reports.
func (d Distribution) String() string {
	return [...]string{"normal", "uniform", "mask", "text", "sentences"}[d]
}

// Range has the integers from Lo to Hi, without Hi.
type Range struct{ Lo, Hi int64 }

// Input describes the accepted values of one model input.
type Input struct {
	Name         string
	Type         onnx.DataType
	Dims         []int64 // shape of one request, without the batch dimension
	Batched      bool    // the tensor has a leading batch dimension
	Distribution Distribution
	Range        Range // for Uniform and Text
	// Reason: reason for the range, for people: "row of the table \"words\" (30522 rows)"
	Reason string
}

// Value returns the only value of an input whose numbers are all the same; false for others.
func (in Input) Value() (int64, bool) {
	return in.Range.Lo, in.Distribution == Uniform && in.Range.Hi == in.Range.Lo+1
}

// Options set the sizes that the file leaves open.
type Options struct {
	// Shape has the dimensions of one request by input, without the batch dimension. A symbol with
	// a size in one input has that size in all.
	Shape map[string][]int64
	// Default is the size of all other open dimensions. If it is 0, such a dimension is an error.
	Default int64
}

// maxRequest is the size limit of one request's tensor in bytes. A larger shape is considered a
// mistake.
const maxRequest = 1 << 30

// Batches reports whether the model can batch: the first dimension of every input and output is
// open, and nothing says that one of them is no batch. Triton completes configurations by the
// same rule, except for what Unbatched finds.
func Batches(m *onnx.Model) bool {
	for _, v := range slices.Concat(m.Inputs(), m.Outputs()) {
		if len(v.Shape) == 0 || v.Shape[0].IsFixed() {
			return false
		}
	}
	return len(m.Inputs()) > 0 && !Unbatched(m)
}

// Unbatched reports whether the first dimension is no batch although it is open: names say so, or
// the model does not answer a single row.
func Unbatched(m *onnx.Model) bool { return mixes(m) || Groups(m).Size > 1 }

// mixes reports whether the first dimension of an output is not the inputs' first, as the file or
// inference names it. Either the name stands behind an input's first place, or the inputs' first
// dimension stands behind the output's. An output of [time, batch, 4] for an input of
// [batch, 100, time] cannot be split into the rows of a batch, and one of [images, texts] for
// inputs of [images, 3] and [texts, 77] compares the rows of one client with those of others.
func mixes(m *onnx.Model) bool {
	first, behind := map[string]bool{}, map[string]bool{}
	for _, v := range m.Inputs() {
		for i, d := range v.Shape {
			switch {
			case d.Symbol == "":
			case i == 0:
				first[d.Symbol] = true
			default:
				behind[d.Symbol] = true
			}
		}
	}
	isFirst := func(d onnx.Dim) bool { return first[d.Symbol] }
	isFirstAlone := func(d onnx.Dim) bool { return first[d.Symbol] && !behind[d.Symbol] }
	inferred, _ := shapes.Infer(m) // without inference, the declared names tell
	return slices.ContainsFunc(m.Outputs(), func(v onnx.Value) bool {
		return slices.ContainsFunc([][]onnx.Dim{v.Shape, inferred[v.Name].Shape}, func(shape []onnx.Dim) bool {
			switch {
			case len(shape) == 0:
				return false
			case isFirst(shape[0]):
				return slices.ContainsFunc(shape[1:], isFirstAlone)
			}
			return behind[shape[0].Symbol] || slices.ContainsFunc(shape[1:], isFirst)
		})
	})
}

// Derive returns the accepted values of each input, in the model's order. The error names the file. It
// lists every input with an open shape, and how to set it.
func Derive(m *onnx.Model, o Options) ([]Input, error) {
	if err := m.CheckServable(); err != nil {
		return nil, fmt.Errorf("cannot derive the inputs of %s: %w", nameOf(m), err)
	}
	dims, err := settleShapes(m, o)
	if err != nil {
		return nil, fmt.Errorf("cannot derive the inputs of %s: %w", nameOf(m), err)
	}
	rate := newGuesser(m).rate
	flow, known := newFlow(m.Graph()), facts{rate: rate, length: lengthOf(m, dims), bounds: boundsOf(m, dims, rate)}
	batched := Batches(m)
	list := make([]Input, 0, len(m.Inputs()))
	for _, v := range m.Inputs() {
		in := Input{Name: v.Name, Type: v.Type, Dims: dims[v.Name], Batched: batched}
		list = append(list, withValues(in, flow, known))
	}
	return list, nil
}

// nameOf returns the model's file for errors. A model that was not read from a file has no name.
func nameOf(m *onnx.Model) string {
	if m.Path() == "" {
		return "the model"
	}
	return strconv.Quote(m.Path())
}

// facts are values that an input may have to state about the others.
type facts struct {
	rate   int64 // sampling rate in Hz
	length int64 // of the sequences in a request
	bounds map[string]bound
}

// lengthOf returns the size of the shortest sequence in a request: the smallest open dimension above
// 1. A length of 1 is always valid, so it is the answer without one.
func lengthOf(m *onnx.Model, dims map[string][]int64) int64 {
	shortest := int64(math.MaxInt64)
	for _, v := range m.Inputs() {
		behind := len(v.Shape) - len(dims[v.Name])
		for i, size := range dims[v.Name] {
			if k := behind + i; k >= 0 && k < len(v.Shape) && !v.Shape[k].IsFixed() && size > 1 {
				shortest = min(shortest, size)
			}
		}
	}
	if shortest == math.MaxInt64 {
		return 1
	}
	return shortest
}

// isLength reports whether an input states the length of a sequence, by its name.
func isLength(in Input) bool {
	n, _ := onnx.Elements(in.Dims)
	return in.Type.IsInteger() && n == 1 && strings.Contains(strings.ToLower(in.Name), "len")
}

// withValues chooses an input's values by their uses in the graph, and by its name.
func withValues(in Input, flow *flow, known facts) Input {
	found := flow.trace(in)
	limits := typeRange(in.Type)
	bound, isBound := known.bounds[in.Name]
	switch {
	case in.Type == onnx.String && found.text != "":
		in.Distribution, in.Reason = Sentences, found.text
	case in.Type == onnx.String:
		in.Distribution, in.Range, in.Reason = Text, Range{0, 100}, "any text; digits also parse as numbers"
	case found.index != nil:
		in.Distribution, in.Range, in.Reason = Uniform, intersect(*found.index, limits), found.reason
	case isRate(in.Name) && (in.Type.IsInteger() || in.Type.IsFloat()):
		in.Distribution, in.Range, in.Reason = Uniform, intersect(Range{known.rate, known.rate + 1}, limits), "a sampling rate by its name"
	case isBound:
		in.Distribution, in.Range, in.Reason = Uniform, Range{bound.value, bound.value + 1}, bound.reason
	case isLength(in):
		in.Distribution, in.Range, in.Reason = Uniform, intersect(Range{known.length, known.length + 1}, limits), "the length of a sequence by its name"
	case found.mask:
		in.Distribution, in.Range, in.Reason = Mask, Range{0, 2}, "used as a mask"
	case strings.Contains(strings.ToLower(in.Name), "mask"):
		in.Distribution, in.Range, in.Reason = Mask, Range{0, 2}, "a mask by its name"
	case in.Type.IsFloat():
		in.Distribution, in.Reason = Normal, "any number"
	case found.parameter:
		in.Distribution, in.Range, in.Reason = Uniform, Range{1, 2}, "a size or a count: 1 is always valid"
	default:
		in.Distribution, in.Range, in.Reason = Uniform, intersect(Range{0, 256}, limits), "any whole number"
	}
	return in
}

// typeRange returns the values of a type that fit into int64. Floating-point types represent small
// integers exactly.
func typeRange(t onnx.DataType) Range {
	switch t {
	case onnx.Bool:
		return Range{0, 2}
	case onnx.Int8:
		return Range{math.MinInt8, math.MaxInt8 + 1}
	case onnx.Uint8:
		return Range{0, math.MaxUint8 + 1}
	case onnx.Int16:
		return Range{math.MinInt16, math.MaxInt16 + 1}
	case onnx.Uint16:
		return Range{0, math.MaxUint16 + 1}
	case onnx.Int32:
		return Range{math.MinInt32, math.MaxInt32 + 1}
	case onnx.Uint32, onnx.Uint64:
		return Range{0, math.MaxInt64}
	case onnx.Float16:
		return Range{-1 << 11, 1<<11 + 1}
	case onnx.BFloat16:
		return Range{-1 << 8, 1<<8 + 1}
	default:
		return Range{math.MinInt64, math.MaxInt64}
	}
}

// intersect returns the intersection of two ranges. If it is empty, intersect returns zero, the
// best guess for a contradiction.
func intersect(a, b Range) Range {
	both := Range{max(a.Lo, b.Lo), min(a.Hi, b.Hi)}
	if both.Lo >= both.Hi {
		return Range{0, 1}
	}
	return both
}

// settleShapes determines the dimensions of one request for every input.
func settleShapes(m *onnx.Model, o Options) (map[string][]int64, error) {
	skip := 0
	if Batches(m) {
		skip = 1
	}
	s := settler{options: o, sizes: map[string]int64{}, unsettled: map[string]bool{}}
	s.checkNames(m.Inputs())
	for _, v := range m.Inputs() {
		s.bind(v, skip)
	}
	dims := map[string][]int64{}
	for _, v := range m.Inputs() {
		dims[v.Name] = s.settle(v, skip)
	}
	return dims, s.errs.Err()
}

// settler collects the sizes of symbols, and the errors.
type settler struct {
	options   Options
	sizes     map[string]int64 // by symbol
	unsettled map[string]bool  // symbols that were reported already
	errs      problems.List
}

func (s *settler) errorf(format string, args ...any) {
	s.errs.Addf(format, args...)
}

func (s *settler) checkNames(values []onnx.Value) {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.Name
	}
	given := make([]string, 0, len(s.options.Shape))
	for name := range s.options.Shape {
		given = append(given, name)
	}
	slices.Sort(given)
	for _, name := range given {
		if !slices.Contains(names, name) {
			s.errorf("a shape is given for %q, which is not an input; the inputs are %s", name, problems.Quote(names))
		}
	}
}

// bind sets the sizes of symbols from the given shape of an input, and checks the shape.
func (s *settler) bind(v onnx.Value, skip int) {
	given, ok := s.options.Shape[v.Name]
	if !ok {
		return
	}
	if !v.Ranked {
		if slices.ContainsFunc(given, func(d int64) bool { return d <= 0 }) {
			s.errorf("the shape %v given for %s is not positive", given, v)
		}
		return
	}
	own := v.Shape[min(skip, len(v.Shape)):]
	isOne := !slices.ContainsFunc(given, func(d int64) bool { return d != 1 })
	if len(v.Shape) == 0 && isOne {
		return // a configuration cannot write a scalar in another way
	}
	if len(given) != len(own) {
		s.errorf("the shape %v given for %s has %d dimensions instead of %d (the batch dimension is not given)", given, v, len(given), len(own))
		return
	}
	for i, d := range own {
		switch size, bound := s.sizes[d.Symbol]; {
		case given[i] <= 0:
			s.errorf("the shape %v given for %s is not positive", given, v)
		case d.IsFixed() && d.Size != given[i]:
			s.errorf("the shape %v given for %s differs from its fixed dimension %d", given, v, d.Size)
		case d.Symbol != "" && bound && size != given[i]:
			s.errorf("the shape %v given for %s gives %q the size %d, but another input gives it %d", given, v, d.Symbol, given[i], size)
		case d.Symbol != "":
			s.sizes[d.Symbol] = given[i]
		}
	}
}

// settle returns the dimensions of one request for an input.
func (s *settler) settle(v onnx.Value, skip int) []int64 {
	given, ok := s.options.Shape[v.Name]
	if !v.Ranked && !ok {
		s.errorf("the file has no shape for the input %s; give it as load: {inputs: {shape: {%s: […]}}}", v, v.Name)
		return nil
	}
	dims := given
	if v.Ranked {
		own := v.Shape[min(skip, len(v.Shape)):]
		dims = make([]int64, len(own))
		for i, d := range own {
			dims[i] = s.size(v, d, given, i)
		}
	}
	if n, fits := onnx.Elements(dims); !fits || n > maxRequest/max(v.Type.Size(), 1) {
		s.errorf("one request for the input %s of shape %v would exceed %d bytes", v, dims, maxRequest)
	}
	return dims
}

func (s *settler) size(v onnx.Value, d onnx.Dim, given []int64, i int) int64 {
	switch {
	case d.IsFixed():
		return d.Size
	case i < len(given):
		return given[i]
	case d.Symbol != "" && s.sizes[d.Symbol] > 0:
		return s.sizes[d.Symbol]
	case s.options.Default > 0:
		return s.options.Default
	}
	if d.Symbol == "" || !s.unsettled[d.Symbol] {
		s.errorf("the dimension %q of the input %s is not fixed; give its size in load: {inputs: {shape: {%s: […]}}}", d, v, v.Name)
	}
	s.unsettled[d.Symbol] = true
	return 1
}
