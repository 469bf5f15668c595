// Package modelconfig holds the configuration of one model in a Triton-compatible server. It reads
// and prints config.pbtxt and its JSON form, completes missing parts like Triton, and reports its
// mistakes.
//
// It stands at both ends of the data flow. The engine completes and checks the configuration of
// each model that it loads. The tuner reads the user's file, changes knobs in it and prints the
// configuration to deploy. Every field of the public schema is kept and printed, including unused
// ones.
//
// The package uses no files, no models and no ONNX Runtime. The caller passes the shapes of a model
// as a ModelIO, and the existence of a file as an option.
package modelconfig

import (
	"google.golang.org/protobuf/proto"

	"tuner/model/modelconfig/configpb"
)

// Config is one model's configuration. It is treated as a value: no function here changes its
// argument, and callers must not either; see Clone.
type Config = configpb.ModelConfig

// Names by which a configuration selects the backend for ONNX models.
const (
	Backend              = "onnxruntime"
	Platform             = "onnxruntime_onnx"
	DefaultModelFilename = "model.onnx"
)

// IdentityBackend is the name of the backend whose models return their inputs. It is Triton's backend
// for tests.
const IdentityBackend = "identity"

// HasFile reports whether the backend of a configuration reads a model file. Without one the
// configuration alone declares inputs and outputs.
func HasFile(c *Config) bool { return c.GetBackend() != IdentityBackend }

// IsForeign reports whether another backend than ONNX Runtime's serves a model, or whether it is an ensemble.
func IsForeign(c *Config) bool {
	if c.GetBackend() != "" {
		return c.GetBackend() != Backend
	}
	return c.GetPlatform() != "" && c.GetPlatform() != Platform || c.GetEnsembleScheduling() != nil
}

// Tensor is an input or output as the model declares it. Dims is the whole shape, including the
// batch dimension. -1 is a dimension of any size. Without dimensions it is a scalar.
type Tensor struct {
	Name     string
	DataType configpb.DataType
	Dims     []int64
}

// ModelIO is the signature of a model, in the model's order.
type ModelIO struct {
	Inputs, Outputs []Tensor
	// Constants are initializers that a request may replace: optional inputs of a configuration
	Constants []Tensor
	// Unbatched means that the first dimension is no batch, although it is open everywhere
	Unbatched bool
}

// CanBatch reports whether requests can be joined along the first dimension: every input and output
// has one of any size.
func (io ModelIO) CanBatch() bool {
	if io.Unbatched {
		return false
	}
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

// Equal reports whether a and b are equal.
func Equal(a, b *Config) bool {
	return proto.Equal(a, b)
}
