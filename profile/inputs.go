package profile

import (
	"fmt"
	"math/rand/v2"

	"tuner/model/dataset"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/runner/payload"
	"tuner/spec"
)

// mostDrawn bounds the number of requests that are drawn from the user's rows.
const mostDrawn = 1024

// Requests makes the requests of a campaign, with the profile's client batch. Their values are rows
// that the user gave, or random ones that the model accepts. Shapes of random values come from the
// profile, or from the configuration if it fixes them. An input with an open shape is an InputError.
func Requests(p spec.Profile, s Subject) (runner.Requests, error) {
	n := payload.Variety
	if s.Rows != nil {
		n = max(payload.Variety, min(s.Rows.Rows, mostDrawn))
		n = max(1, min(n, payload.MostMemory/max(1, s.Rows.Bytes()/s.Rows.Rows*p.Load.BatchSize)))
	}
	return makeRequests(p, s, n, p.Load.BatchSize)
}

// batches makes the requests of a batch size for service trials, with about payload.Variety rows
// in total.
func batches(p spec.Profile, s Subject, size int) (runner.Batches, error) {
	requests, err := makeRequests(p, s, max(1, payload.Variety/size), size)
	return runner.Batches{Size: size, Requests: requests}, err
}

// makeRequests makes n requests. Random values differ between requests; rows are drawn with
// replacement.
func makeRequests(p spec.Profile, s Subject, n, batch int) (runner.Requests, error) {
	derived, err := inputs.Derive(s.Model, s.InputOptions(p))
	if err != nil {
		return nil, &InputError{err}
	}
	values := func(i int) map[string]inputs.Tensor { return inputs.Generate(derived, batch, p.Search.Seed+uint64(i)) }
	if s.Rows != nil {
		random := rand.New(rand.NewPCG(p.Search.Seed, 1))
		values = func(int) map[string]inputs.Tensor { return s.Rows.Draw(batch, random) }
	}
	requests := make(runner.Requests, n)
	for i := range requests {
		requests[i] = payload.Fill(s.Name, derived, values(i))
	}
	return requests, nil
}

// Rows are the user's rows from which requests are drawn.
type Rows struct {
	dataset.Dataset
	Record journal.RequestRows // what a journal has of them
}

// ReadRows reads the rows of a profile's requests: nil if the profile names none. The error is an
// InputError.
func ReadRows(p spec.Profile, m *onnx.Model) (*Rows, error) {
	if p.Inputs.Data == "" {
		return nil, nil
	}
	rows, err := dataset.Read(p.Inputs.Data, m)
	if err != nil {
		return nil, &InputError{fmt.Errorf("%s: load.inputs.data: %w", p.Path, err)}
	}
	return newRows(rows), nil
}

func newRows(d dataset.Dataset) *Rows {
	return &Rows{d, journal.RequestRows{Name: d.Name, SHA256: d.Digest(), Rows: d.Rows, Shapes: d.Shapes()}}
}

// record returns what a journal has of the rows; nil without rows.
func (r *Rows) record() *journal.RequestRows {
	if r == nil {
		return nil
	}
	return &r.Record
}

// InputOptions returns the shapes of a subject's inputs in a request.
func (s Subject) InputOptions(p spec.Profile) inputs.Options {
	p.Inputs.Shape = s.shapes(p)
	return inputs.Options{Shape: campaign.RequestShapes(p, s.Config)}
}

// shapes returns the shapes of inputs that the user's rows or else the profile set, without the
// batch dimension.
func (s Subject) shapes(p spec.Profile) map[string][]int64 {
	if s.Rows == nil {
		return p.Inputs.Shape
	}
	return s.Rows.Record.Shapes
}

// DataDigest identifies the user's rows: their sha256, in hexadecimal; "" without rows.
func (s Subject) DataDigest() string {
	if s.Rows == nil {
		return ""
	}
	return s.Rows.Record.SHA256
}
