// Package modelconfig holds the configuration of one model as a
// Triton-compatible server knows it: it reads and prints config.pbtxt and its
// JSON form, completes what the user left out the way Triton does, and says
// what is wrong with it.
//
// It stands at both ends of the data flow. The engine completes and checks the
// configuration of each model it loads; the tuner reads the user's file,
// changes knobs in it and prints what will be deployed. Every field of the
// public schema is kept and printed, also those that nothing here uses.
//
// It touches neither files nor models nor ONNX Runtime: the shapes of a model
// come in as a ModelIO, and whether a file exists as an option.
package modelconfig

import (
	"google.golang.org/protobuf/proto"

	"tuner/model/modelconfig/configpb"
)

// Config is one model's configuration. It is treated as a value: no function
// here changes its argument, and neither should callers; see Clone.
type Config = configpb.ModelConfig

// Names by which a configuration selects the only backend served here.
const (
	Backend              = "onnxruntime"
	Platform             = "onnxruntime_onnx"
	DefaultModelFilename = "model.onnx"
)

// Tensor is an input or output as the model itself declares it. Dims is the
// whole shape, the batch dimension included; -1 is a dimension of any size and
// no dimensions a scalar.
type Tensor struct {
	Name     string
	DataType configpb.DataType
	Dims     []int64
}

// ModelIO is the signature of a model, in the model's order.
type ModelIO struct {
	Inputs, Outputs []Tensor
}

// CanBatch reports whether requests can be joined along the first dimension:
// every input and output has one, and it may take any size.
func (io ModelIO) CanBatch() bool {
	for _, side := range [][]Tensor{io.Inputs, io.Outputs} {
		for _, t := range side {
			if len(t.Dims) == 0 || t.Dims[0] != -1 {
				return false
			}
		}
	}
	return true
}

// Clone returns a copy of c that may be changed.
func Clone(c *Config) *Config {
	return proto.CloneOf(c)
}

// Equal reports whether a and b say the same.
func Equal(a, b *Config) bool {
	return proto.Equal(a, b)
}
