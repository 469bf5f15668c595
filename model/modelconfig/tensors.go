package modelconfig

import (
	"math"

	"tuner/internal/problems"
	"tuner/model/modelconfig/configpb"
)

// tensorConfig is the common interface of inputs and outputs.
type tensorConfig interface {
	GetName() string
	GetDataType() configpb.DataType
	GetDims() []int64
	GetReshape() *configpb.ModelTensorReshape
	GetIsShapeTensor() bool
	GetIsNonLinearFormatIo() bool
}

// AnswerSize returns the size of the outputs of a request with a client batch, in bytes. It returns
// 0 if that is unknown: they are not in the configuration, a dimension is open, or elements are
// text.
func AnswerSize(c *Config, batch int) int64 {
	total := 0.0 // does not overflow
	for _, out := range c.GetOutput() {
		size := float64(batch * ByteSize(out.GetDataType()))
		for _, d := range out.GetDims() {
			size *= float64(max(d, 0))
		}
		if size == 0 {
			return 0
		}
		total += size
	}
	return int64(min(total, 1<<62))
}

// checkIO checks inputs and outputs without the model.
func checkIO(c *Config) error {
	var errs problems.List
	add := func(err error) {
		if err != nil {
			errs.Addf("%w for %s", err, c.GetName())
		}
	}
	inputs, outputs := make(map[string]bool), make(map[string]bool)
	for _, in := range c.GetInput() {
		add(checkTensor("model input", in, c.GetMaxBatchSize(), inputs))
		if in.GetFormat() != configpb.ModelInput_FORMAT_NONE && len(in.GetDims()) != 3 {
			add(refuse("model input NHWC/NCHW require 3 dims"))
		}
	}
	for _, out := range c.GetOutput() {
		add(checkTensor("model output", out, c.GetMaxBatchSize(), outputs))
	}
	add(checkBatchIO(c))
	return errs.Err()
}

// checkTensor checks one input or output. A repeated name is refused although Triton loads it,
// since the second tensor could never be served.
func checkTensor(side string, t tensorConfig, maxBatchSize int32, seen map[string]bool) error {
	name := t.GetName()
	switch {
	case name == "":
		return refuse("%s must specify 'name'", side)
	case seen[name]:
		return refuse("%s '%s' is specified twice", side, name)
	case t.GetDataType() == configpb.DataType_TYPE_INVALID:
		return refuse("%s '%s' must specify 'data_type'", side, name)
	case len(t.GetDims()) == 0:
		return refuse("%s '%s' must specify 'dims'", side, name)
	case t.GetIsShapeTensor():
		return refuse("shape tensors are only supported for TensorRT platform")
	case t.GetIsNonLinearFormatIo():
		return refuse("Non-linear IO format is only supported for the TensorRT platform")
	}
	seen[name] = true
	if !areDims(t.GetDims()) {
		return refuse("%s '%s' dimension must be integer >= 1, or -1 to indicate a variable-size dimension", side, name)
	}
	if t.GetReshape() == nil {
		return nil
	}
	if problem := checkReshape(t.GetDims(), t.GetReshape().GetShape(), maxBatchSize); problem != "" {
		return refuse("%s '%s' %s", side, name, problem)
	}
	return nil
}

func areDims(dims []int64) bool {
	for _, d := range dims {
		if d < 1 && d != -1 {
			return false
		}
	}
	return true
}

// checkReshape returns the reason why dims cannot be passed to the model as shape, "" if they can.
func checkReshape(dims, shape []int64, maxBatchSize int32) string {
	if len(shape) == 0 && maxBatchSize == 0 {
		return "cannot have empty reshape for non-batching model as scalar tensors are not supported"
	}
	if !areDims(shape) {
		return "reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension"
	}
	from, to := elementRuns(dims), elementRuns(shape)
	if len(from) != len(to) {
		if len(from) == 1 || len(to) == 1 {
			return "has different size for dims and reshape"
		}
		return "has different number of variable-size dimensions for dims and reshape"
	}
	for i := range from {
		if from[i] != to[i] || from[i] < 0 {
			return "has different size for dims and reshape"
		}
	}
	return ""
}

// Reshaped rewrites a shape that matches from so that it matches to. These are the dims and the reshape of a
// tensor, in either order. Dimensions of any size keep their order.
func Reshaped(shape, from, to []int64, batched bool) []int64 {
	var out []int64
	if batched {
		out, shape = append(out, shape[0]), shape[1:]
	}
	var sizes []int64 // sizes of the dimensions that may have any size
	for i, d := range from {
		if d == -1 && i < len(shape) {
			sizes = append(sizes, shape[i])
		}
	}
	for _, d := range to {
		if d == -1 && len(sizes) > 0 {
			d, sizes = sizes[0], sizes[1:]
		}
		out = append(out, d)
	}
	return out
}

// elementRuns multiplies the dimensions between the variable ones: [2,4,-1,6] gives 8 and 6. Two
// shapes can hold the same data only if these agree. A product that overflows is -1.
func elementRuns(dims []int64) []int64 {
	runs := []int64{1}
	for _, d := range dims {
		last := len(runs) - 1
		switch {
		case d == -1:
			runs = append(runs, 1)
		case runs[last] < 0 || d > math.MaxInt64/runs[last]:
			runs[last] = -1
		default:
			runs[last] *= d
		}
	}
	return runs
}
