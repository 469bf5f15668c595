package profile

import (
	"tuner/engine/api"
	"tuner/model/onnx/inputs"
	"tuner/profile/campaign"
	"tuner/runner"
	"tuner/runner/payload"
	"tuner/spec"
)

// requestVariety is the number of different requests that a campaign sends in turn. They are enough
// to make caches of values useless.
const requestVariety = 32

// Requests makes valid random requests for a subject, with the profile's client batch. Shapes come
// from the profile, or from the configuration if it fixes them. An input with an open shape is an
// InputError.
func Requests(p spec.Profile, s Subject) (runner.Requests, error) {
	return makeRequests(p, s, requestVariety, p.Load.BatchSize)
}

// batches makes the requests of a batch size for service trials, with about requestVariety rows in
// total.
func batches(p spec.Profile, s Subject, size int) (runner.Batches, error) {
	requests, err := makeRequests(p, s, max(1, requestVariety/size), size)
	return runner.Batches{Size: size, Requests: requests}, err
}

func makeRequests(p spec.Profile, s Subject, n, batch int) (runner.Requests, error) {
	derived, err := inputs.Derive(s.Model, inputOptions(p, s))
	if err != nil {
		return nil, &InputError{err}
	}
	requests := make(runner.Requests, n)
	for i := range requests {
		values := inputs.Generate(derived, batch, p.Search.Seed+uint64(i))
		requests[i] = api.InferRequest{Model: s.Name}
		for _, in := range derived {
			requests[i].Inputs = append(requests[i].Inputs, payload.Wire(in.Name, values[in.Name]))
		}
	}
	return requests, nil
}

// inputOptions determines the shapes of a subject's inputs.
func inputOptions(p spec.Profile, s Subject) inputs.Options {
	return inputs.Options{Shape: campaign.RequestShapes(p, s.Config)}
}
