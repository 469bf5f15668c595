// Package precision makes the variants of a model in other numbers (fp16, int8, int8_static) and judges each by its outputs:
// on the user's data, against the original's, on every execution provider that is to serve it. A variant that misses the
// accuracy limit gets its most sensitive nodes back in fp32, as few as it takes; one that still misses it is rejected, with
// its figures. It stands between the model file and the campaign: package onnx/rewrite makes the models, engine processes run
// them, a cache folder keeps what was made. It never changes a source, and it does not look at speed: that is measured later.
package precision

import (
	"context"
	"errors"
	"fmt"

	"tuner/internal/exit"
	"tuner/model/dataset"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite"
	"tuner/model/precision/accuracy"
	"tuner/ort/provider"
)

// The precisions by name.
const (
	FP32       = "fp32"        // the source as it is
	FP16       = "fp16"        // half-precision weights and activations
	Int8       = "int8"        // 8-bit weights; activations are quantized in each run, by their own range
	Int8Static = "int8_static" // 8-bit weights and activations, by ranges that calibration found
)

// Names lists the precisions, the original first.
func Names() []string { return []string{FP32, FP16, Int8, Int8Static} }

// cpu is the execution provider that every ONNX Runtime has: the reference comes from it.
const cpu = provider.CPU

// The defaults that callers offer to their users.
const (
	DefaultMaxKept = 0.25 // share of the candidate nodes
	DefaultRows    = 64   // of synthetic data
)

// Session answers inferences with one model.
type Session interface {
	// Infer computes all outputs. It blocks until they are there or the context ends; in is not kept. A *RefusedError says
	// that the model does not run on these inputs.
	Infer(ctx context.Context, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error)
	// Close ends the session, at once when the context has ended.
	Close(ctx context.Context)
}

// Opener makes sessions.
type Opener interface {
	// Open makes a session of a model on an execution provider (cpu, openvino …). It blocks until the session is ready or the
	// context ends. A *RefusedError says that the provider does not take the model, which is a result; any other error is not
	// the model's fault.
	Open(ctx context.Context, m *onnx.Model, provider string) (Session, error)
}

// RefusedError says why a model does not run on an execution provider.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// SourceError says why a model cannot be the source of variants at all. The user can mend it.
type SourceError struct {
	Path string // "" for a model that was not read from a file
	Err  error
}

func (e *SourceError) Error() string {
	return fmt.Sprintf("cannot use %q as the source of variants: %v", e.Path, e.Err)
}

func (e *SourceError) Unwrap() error { return e.Err }

// ExitCode implements exit.Coded.
func (e *SourceError) ExitCode() int { return exit.Usage }

// ErrUnmakeable is what every *Unmakeable is.
var ErrUnmakeable = errors.New("the variant cannot be made")

// Unmakeable says why a source has no variant of a precision: nothing in it can be converted, its operator set is too old, a
// weight is not a number. It is a result; other precisions may well be made.
type Unmakeable struct {
	Precision string
	Err       error
}

func (e *Unmakeable) Error() string { return e.Err.Error() }

func (e *Unmakeable) Unwrap() []error { return []error{ErrUnmakeable, e.Err} }

// Options say how variants are made and judged.
type Options struct {
	// Data is what the outputs are compared on. All of its rows are held in memory at a time, with what the original and one variant
	// compute of them: dataset.Dataset.Head bounds that. More than half of the memory for that is a *SourceError.
	Data        dataset.Dataset
	Calibration dataset.Dataset // for int8_static; without rows, Data
	// CalibrationMethod is minmax, percentile or entropy; "" the default of package precision/calibrate.
	CalibrationMethod string
	Limit             *accuracy.Limit // nil: variants are measured, not judged
	MaxKept           float64         // share of the candidate nodes, 0 to 1, that may stay in fp32 to keep the limit
	Cache             string          // folder for what is made; it is made when it does not exist
	Tool              string          // program, ONNX Runtime builds and machine, as far as they change figures: those of others are not taken over
	KeepIO            bool            // fp16 keeps the types of inputs and outputs
	FreeBatch         bool            // a fixed batch dimension is made symbolic first, where the graph allows
	WeightBits        int             // of int8 and int8_static: 8 or 7; 0: 8 where the processor can, else 7
	Progress          func(text string)
}

// Variant is a model in one precision with what is known of its accuracy.
type Variant struct {
	Precision string
	Path      string // of the file, in the cache; its external data, if it has any, is beside it
	Digest    string // onnx.Model.Digest
	Bytes     int64  // of the file with its external data
	// Accuracy is by provider, for each that ran the variant. The original on cpu is the reference itself and has no entry.
	Accuracy map[string]accuracy.Report
	// Rejected says by provider why the variant is not to be served there. A provider without an entry is accepted.
	Rejected  map[string]string
	Converted int            // nodes
	Kept      []KeptNode     // in fp32 for accuracy's sake, the most sensitive first
	Left      []rewrite.Kept // candidates that could not be converted
	Notes     []string       // what people should know, in sentences
	FromCache bool           // nothing was converted and nothing was run
}

// KeptNode is a node that stays in fp32, with the relative squared error that its conversion brought to its own output.
type KeptNode struct {
	Node  string  `json:"node"`
	Error float64 `json:"error"`
}
