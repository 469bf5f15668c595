// Package payload makes what the requests of a load carry: from a model file, from a server's metadata and hints, or from the
// user's own data, with the outputs that are expected of them. It stands before package wire, which makes bytes of requests,
// and knows neither connections nor time. It refuses what does not fit the model, all of it at once, and sends no sequences
// and no shape tensors.
package payload

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"tuner/engine/api"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
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
	Streams, Steps int      // in JSON files; 0: there are none
	Notes          []string // what the values of generated inputs are: "input_ids: row of the table … (30522 rows)"
}

// InputError is what the user can mend.
type InputError struct{ Problems []string }

func (e *InputError) Error() string { return strings.Join(e.Problems, "\n") }

// mostProblems is how many problems an InputError lists.
const mostProblems = 10

// Make makes the requests. An *InputError says what the user can mend.
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

// maker is the making of a set: what is asked, what the model takes, and what is wrong.
type maker struct {
	model    Model
	source   Source
	in, out  []spec
	problems []string
}

func (k *maker) problem(format string, args ...any) {
	k.problems = append(k.problems, fmt.Sprintf(format, args...))
}

// kind is how the values come about.
type kind int

const (
	kindNone kind = iota // it cannot be told; the problem is noted
	kindGenerated
	kindFolder
	kindFiles
)

// kind tells generated data, a folder and files apart.
func (k *maker) kind() kind {
	data := k.source.Data
	isGenerated := func(d string) bool { return d == Random || d == Zero }
	if len(k.source.Ranges) > 0 && len(data) > 0 && !slices.Equal(data, []string{Random}) {
		k.problem("a range of values is given for %q, but ranges are for random data alone", slices.Sorted(maps.Keys(k.source.Ranges)))
	}
	if len(data) == 0 || len(data) == 1 && isGenerated(data[0]) {
		return kindGenerated
	}
	found := kindFiles
	for _, d := range data {
		info, err := os.Stat(d)
		switch {
		case isGenerated(d):
			k.problem("the input data %q stands alone, not beside %q", d, data)
		case err != nil:
			k.problem("cannot read the input data: %v", err)
		case info.IsDir() && len(data) > 1:
			k.problem("the input data %q is a folder, which stands alone, not beside %q", d, data)
		case info.IsDir():
			found = kindFolder
		}
	}
	if len(k.problems) > 0 {
		return kindNone
	}
	return found
}
