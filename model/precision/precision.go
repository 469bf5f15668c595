// Package precision makes the variants of a model in other numbers (fp16, int8, int8_static). It
// judges each by its outputs: on the user's data, against the original's, on every execution
// provider that will serve it. If a variant misses the accuracy limit, its most sensitive nodes
// stay in fp32, as few as possible. If it still misses the limit, it is rejected with its figures.
//
// The package stands between the model file and the campaign. Package onnx/rewrite makes the
// models, engine processes run them, and a cache folder stores the results. It never changes a
// source. It does not measure speed, which comes later.
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
	"tuner/ort/addon"
	"tuner/ort/provider"
)

// cpu is the execution provider of every ONNX Runtime. It computes the reference.
const cpu = provider.CPU

// Defaults of callers' options.
const (
	DefaultMaxKept = 0.25 // share of the candidate nodes
	DefaultRows    = 64   // rows of synthetic data; SyntheticRows: fewer of large inputs
)

// Random rows of large inputs are fewer, since each takes long, and has enough numbers for the ranges
// of activations.
const (
	leastRows    = 8
	mostElements = 1 << 21 // of all inputs in all rows: 13 images of 224 × 224
)

// SyntheticRows returns the number of random rows on which variants of a model are compared, and
// calibrated.
func SyntheticRows(m *onnx.Model, o inputs.Options) int {
	list, err := inputs.Derive(m, o)
	if err != nil {
		return DefaultRows // whoever makes the rows gets the error
	}
	elements := int64(1)
	for _, in := range list {
		n, _ := onnx.Elements(in.Dims) // Derive limits the size
		elements += n
	}
	return int(min(DefaultRows, max(leastRows, mostElements/elements)))
}

// Session answers inferences with one model.
type Session interface {
	// Infer computes all outputs. It blocks until they are computed or the context ends. It does
	// not keep in. A *RefusedError means that the model does not run on these inputs.
	Infer(ctx context.Context, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error)
	// Close ends the session. If the context has ended, it does so at once.
	Close(ctx context.Context)
}

// Opener makes sessions.
type Opener interface {
	// Open makes a session of a model on an execution provider (cpu, openvino …). It blocks until
	// the session is ready or the context ends. A *RefusedError means that the provider does not
	// accept the model, which is a result. Other errors are not the model's fault.
	Open(ctx context.Context, m *onnx.Model, provider string) (Session, error)
}

// RefusedError has the reason why a model does not run on an execution provider.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// SourceError has the reason why a model cannot have variants. The user can fix it.
type SourceError struct {
	Path string // "" if the model was not read from a file
	Err  error
	// Random means that the model answers random rows without a single number, in some output. It may
	// serve the user's own rows well.
	Random bool
}

func (e *SourceError) Error() string {
	return fmt.Sprintf("cannot use %q as the source of variants: %v", e.Path, e.Err)
}

func (e *SourceError) Unwrap() error { return e.Err }

// ExitCode implements exit.Coded.
func (e *SourceError) ExitCode() int { return exit.Usage }

// ErrUnmakeable matches every *Unmakeable.
var ErrUnmakeable = errors.New("the variant cannot be made")

// Unmakeable has the reason why a source has no variant of a precision. Examples: nothing can be
// converted, its operator set is too old, or a weight is NaN. It is a result. Other precisions may
// still be possible.
type Unmakeable struct {
	Precision string
	Err       error
}

func (e *Unmakeable) Error() string { return e.Err.Error() }

func (e *Unmakeable) Unwrap() []error { return []error{ErrUnmakeable, e.Err} }

// Options configure how variants are made and judged.
type Options struct {
	// Data has the inputs of the comparison. All of its rows are in memory at once, with the
	// outputs of the original and of one variant. dataset.Dataset.Head limits them. Needing more
	// than half of the memory is a *SourceError.
	Data        dataset.Dataset
	Calibration dataset.Dataset // for int8_static; without rows, Data
	// CalibrationMethod is minmax, percentile or entropy; "" is the default of package
	// precision/calibrate.
	CalibrationMethod string
	Limit             *accuracy.Limit // nil: variants are measured, but not judged
	MaxKept           float64         // share of the candidate nodes, 0 to 1, that may stay in fp32 to keep the limit
	Cache             string          // cache folder; it is made if needed
	// Tool: program, ONNX Runtime builds and machine, as far as they affect figures; figures of
	// others are not reused
	Tool string
	// Libraries have the operators of the source that ONNX Runtime lacks. Without any, a source with
	// such operators has no variants.
	Libraries addon.Libraries
	KeepIO    bool // fp16 keeps the types of inputs and outputs
	FreeBatch bool // a fixed batch dimension is first made symbolic, if the graph allows it
	// WeightBits: bits of weights in int8 and int8_static: 8 or 7; 0: 8 if the processor supports
	// it, else 7
	WeightBits int
	Progress   func(text string)
}

// Variant is a model in one precision, with its known accuracy.
type Variant struct {
	Precision string
	Path      string // path of the file in the cache; its external data, if any, is beside it
	Digest    string // from onnx.Model.Digest
	Bytes     int64  // size of the file with its external data
	// Accuracy has the report of each provider that ran the variant. The original on cpu is the
	// reference and has no entry.
	Accuracy map[string]accuracy.Report
	// Rejected has by provider the reason why the variant must not be served there. A provider
	// without an entry is accepted.
	Rejected  map[string]string
	Converted int            // number of nodes
	Kept      []KeptNode     // nodes in fp32 for accuracy, the most sensitive first
	Left      []rewrite.Kept // candidates that could not be converted
	Notes     []string       // remarks for people, in sentences
	FromCache bool           // nothing was converted or run
}

// KeptNode is a node that stays in fp32, with the relative squared error that its conversion caused
// in its own output.
type KeptNode struct {
	Node  string  `json:"node"`  // name of the node
	Error float64 `json:"error"` // relative squared error that its conversion caused in its own output
}
