package profile

import (
	"tuner/modelconfig"
	"tuner/onnx/inputs"
	"tuner/spec"
)

// requestVariety is how many different requests a campaign sends in turn: enough that no cache of values helps.
const requestVariety = 32

// Requests makes valid random inputs for a subject: requestVariety requests of the profile's client batch. Shapes come from
// the profile, else from the configuration where it fixes them. An input whose shape is not settled is an InputError.
func Requests(p spec.Profile, s Subject) ([]map[string]inputs.Tensor, error) {
	derived, err := inputs.Derive(s.Model, inputs.Options{Shape: requestShapes(p, s.Config)})
	if err != nil {
		return nil, &InputError{err}
	}
	requests := make([]map[string]inputs.Tensor, requestVariety)
	for i := range requests {
		requests[i] = inputs.Generate(derived, p.Load.BatchSize, p.Search.Seed+uint64(i))
	}
	return requests, nil
}

// requestShapes merges the shapes of the profile with those that the configuration fixes.
func requestShapes(p spec.Profile, config *modelconfig.Config) map[string][]int64 {
	shapes := map[string][]int64{}
	for _, in := range config.GetInput() {
		if isFixed(in.GetDims()) && in.GetReshape() == nil {
			shapes[in.GetName()] = in.GetDims()
		}
	}
	for name, shape := range p.Inputs.Shape {
		shapes[name] = shape
	}
	return shapes
}

func isFixed(dims []int64) bool {
	for _, d := range dims {
		if d < 0 {
			return false
		}
	}
	return true
}
