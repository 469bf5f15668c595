// Package payload makes what the requests of a load carry: from a model file, from a server's metadata and hints, or from the
// user's own data, with the outputs that are expected of them. It stands before package wire, which makes bytes of requests,
// and knows neither connections nor time. It refuses what does not fit the model, all of it at once, and sends no sequences
// and no shape tensors.
package payload

import (
	"strings"

	"tuner/engine/api"
	"tuner/modelconfig"
	"tuner/onnx"
	"tuner/onnx/inputs"
)

// Model is what is known of the model that the requests are for.
type Model struct {
	Name, Version string
	Metadata      api.ModelMetadata
	Config        *modelconfig.Config // nil: the server tells none
	Graph         *onnx.Model         // nil: no file at hand
}

// Batches reports whether requests have a batch dimension.
func (m Model) Batches() bool { return m.Config.GetMaxBatchSize() > 0 }

// The kinds of generated data. Other values of Source.Data are paths.
const (
	Random = "random"
	Zero   = "zero"
)

// Source says where the values come from.
type Source struct {
	Data         []string                // Random (also when empty), Zero, a folder, or perf_analyzer's JSON files in order
	Shapes       map[string][]int64      // of inputs whose size is open, without the batch dimension
	Ranges       map[string]inputs.Range // of random whole numbers
	StringLength int                     // bytes of random text elements; 0: digits where the graph is known, else 128
	StringData   string                  // every element of generated text; "": random text
	Batch        int                     // requests' batch size, at least 1
	Seed         uint64
}

// Request is one request.
type Request struct {
	Infer    api.InferRequest
	Expected []api.Tensor // outputs that are compared; nil: not checked
	Origin   string       // where it comes from, for people: "data.json: data[3]"
}

// Set is all requests of a run, sent in turn.
type Set struct {
	Requests       []Request
	Streams, Steps int      // of the user's data; 0: generated
	Notes          []string // what the values of generated inputs are: "input_ids: row of the table … (30522 rows)"
}

// InputError is what the user can mend.
type InputError struct{ Problems []string }

func (e *InputError) Error() string { return strings.Join(e.Problems, "\n") }
