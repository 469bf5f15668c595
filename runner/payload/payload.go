// Package payload makes the requests of a load. Their values come from a model file, from a
// server's metadata and hints, or from the user's own data with the expected outputs. It stands
// before package wire, which encodes requests, and knows neither connections nor time. It reports
// all data that does not fit the model at once. It supports no sequences and no shape tensors.
package payload

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"tuner/engine/api"
	"tuner/model/dataset"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// Model is the model that the requests are for, as far as it is known.
type Model struct {
	Name, Version string
	Metadata      api.ModelMetadata
	Config        *modelconfig.Config // nil: the server has no configuration
	Graph         *onnx.Model         // nil: the file is not available
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
	// Random (also if empty), Zero, perf_analyzer's JSON files in order, an .npz or .npy file, or a
	// folder: of NAME.npy files, or of perf_analyzer's raw files
	Data []string
	// shapes of inputs with open dimensions, without the batch dimension
	Shapes map[string][]int64
	Ranges map[string]inputs.Range // ranges of random whole numbers
	// bytes of random text elements; 0: digits if the graph is known, else 128
	StringLength int
	StringData   string // value of every generated text element; "": random text
	Batch        int    // batch size of the requests, at least 1
	Seed         uint64
}

// Request is one request, with the outputs to check.
type Request struct {
	Infer    api.InferRequest
	Expected []api.Tensor // outputs to compare; nil: no check
	Origin   string       // source of the data, for people: "data.json, step 3"
}

// Set holds all requests of a run. They are sent in turn.
type Set struct {
	Requests []Request
	// in the user's data: each row of NumPy's arrays is a step of one stream; 0: generated or raw data
	Streams, Steps int
	// describe the values of generated inputs: "input_ids: row of the table … (30522 rows)"
	Notes []string
}

// InputError lists problems that the user can fix.
type InputError struct{ Problems []string }

func (e *InputError) Error() string { return strings.Join(e.Problems, "\n") }

// mostProblems is the largest number of problems in an InputError.
const mostProblems = 10

// Make makes the requests. An *InputError lists problems that the user can fix.
func Make(m Model, s Source) (Set, error) {
	k := &maker{model: m, source: s}
	k.in, k.out = k.specs("input", m.Metadata.Inputs), k.specs("output", m.Metadata.Outputs)
	k.checkBatch()
	k.checkGraph()
	k.takeShapes()
	k.checkRanges()
	set := Set{}
	if len(k.problems) == 0 {
		switch kind := k.kind(); kind {
		case kindGenerated:
			set.Requests, set.Notes = k.generate()
		case kindFolder:
			set.Requests = k.join(k.readFolder(s.Data[0]))
		case kindRows:
			steps := k.readRows(s.Data[0])
			set.Requests, set.Streams, set.Steps = k.join(steps), 1, len(steps)
		case kindFiles:
			var steps []step
			steps, set.Streams = k.readFiles(s.Data)
			set.Requests, set.Steps = k.join(steps), len(steps)
		}
	}
	if n := len(k.problems); n > mostProblems {
		k.problems = append(k.problems[:mostProblems], fmt.Sprintf("… and %d more", n-mostProblems))
	}
	if len(k.problems) > 0 {
		return Set{}, &InputError{k.problems}
	}
	return set, nil
}

// maker makes one Set. It holds the source, the inputs of the model, and the problems.
type maker struct {
	model    Model
	source   Source
	in, out  []spec
	problems []string
}

func (k *maker) problem(format string, args ...any) {
	k.problems = append(k.problems, fmt.Sprintf(format, args...))
}

// kind is the way in which the values are made.
type kind int

const (
	kindNone kind = iota // unknown; problems has the reason
	kindGenerated
	kindFolder
	kindFiles
	kindRows
)

// kind decides between generated data, a folder, files, and rows in NumPy's files.
func (k *maker) kind() kind {
	data := k.source.Data
	isGenerated := func(d string) bool { return d == Random || d == Zero }
	if len(k.source.Ranges) > 0 && len(data) > 0 && !slices.Equal(data, []string{Random}) {
		k.problem("a range of values is given for %q, but ranges are only for random data", slices.Sorted(maps.Keys(k.source.Ranges)))
	}
	if len(data) == 0 || len(data) == 1 && isGenerated(data[0]) {
		return kindGenerated
	}
	found := kindFiles
	for _, d := range data {
		info, err := os.Stat(d)
		switch {
		case isGenerated(d):
			k.problem("the input data %q cannot be combined with %q", d, data)
		case err != nil:
			k.problem("cannot read the input data: %v", err)
		case info.IsDir() && len(data) > 1:
			k.problem("the input data %q is a folder, which cannot be combined with %q", d, data)
		case dataset.HasArrays(d) && len(data) > 1:
			k.problem("the input data %q has arrays, which cannot be combined with %q", d, data)
		case dataset.HasArrays(d):
			found = kindRows
		case info.IsDir():
			found = kindFolder
		}
	}
	if len(k.problems) > 0 {
		return kindNone
	}
	return found
}
