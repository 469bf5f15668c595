package profile

import (
	"math/rand/v2"

	"tuner/engine/api"
	"tuner/model/onnx/inputs"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/runner/payload"
	"tuner/spec"
)

const (
	// requestVariety is the number of different random requests that a campaign sends in turn. They
	// are enough to make caches of values useless.
	requestVariety = 32

	// mostDrawn and mostBytes bound the requests that are drawn from the user's rows. Each is encoded
	// once and kept.
	mostDrawn = 1024
	mostBytes = 256 << 20
)

// Requests makes the requests of a campaign, with the profile's client batch. Their values are rows
// that the user gave, or random ones that the model accepts. Shapes of random values come from the
// profile, or from the configuration if it fixes them. An input with an open shape is an InputError.
func Requests(p spec.Profile, s Subject) (runner.Requests, error) {
	n := requestVariety
	if s.Rows != nil {
		n = max(requestVariety, min(s.Rows.Rows, mostDrawn))
		n = max(1, min(n, mostBytes/max(1, s.Rows.Bytes()/s.Rows.Rows*p.Load.BatchSize)))
	}
	return makeRequests(p, s, n, p.Load.BatchSize)
}

// batches makes the requests of a batch size for service trials, with about requestVariety rows in
// total.
func batches(p spec.Profile, s Subject, size int) (runner.Batches, error) {
	requests, err := makeRequests(p, s, max(1, requestVariety/size), size)
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
		tensors := values(i)
		requests[i] = api.InferRequest{Model: s.Name}
		for _, in := range derived {
			requests[i].Inputs = append(requests[i].Inputs, payload.Wire(in.Name, tensors[in.Name]))
		}
	}
	return requests, nil
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
	return s.Rows.Shapes()
}

// DataDigest identifies the user's rows: their sha256, in hexadecimal; "" without rows.
func (s Subject) DataDigest() string {
	if s.Rows == nil {
		return ""
	}
	return s.Rows.Digest()
}

// rowsRecord returns the journal's record of the user's rows; nil without rows.
func (s Subject) rowsRecord() *journal.RequestRows {
	if s.Rows == nil {
		return nil
	}
	return &journal.RequestRows{Name: s.Rows.Name, SHA256: s.DataDigest(), Rows: s.Rows.Rows, Shapes: s.Rows.Shapes()}
}
