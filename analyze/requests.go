package analyze

import (
	"maps"
	"slices"

	"tuner/model/modelconfig"
	"tuner/search"
	"tuner/spec"
)

// ShapeSource is the origin of an input's shape in the measured requests.
type ShapeSource string

// The sources of shapes.
const (
	ShapeGiven   ShapeSource = "given"   // set by the user
	ShapeExample ShapeSource = "example" // chosen by tuner, since the model leaves it open
	ShapeOfModel ShapeSource = "model"   // fixed by the model
	ShapeOfData  ShapeSource = "data"    // that of the user's rows
)

// RequestShape is the shape of an input in the measured requests.
type RequestShape struct {
	Input  string
	Dims   []int64 // without the batch dimension
	Source ShapeSource
	Reason string // of an example's sizes, for people; "" for other sources, and if it is not known
}

// requestShapes returns the shapes in a campaign's requests, in the order of the configuration's
// inputs.
func requestShapes(p spec.Profile, base *modelconfig.Config) []RequestShape {
	var list []RequestShape
	add := func(name string, dims []int64, own bool) {
		s := RequestShape{Input: name, Dims: dims, Source: ShapeOfModel}
		reason, isExample := p.Inputs.Examples[name]
		switch {
		case !own && reason != "" && p.Inputs.Data == "": // the values are examples
			s.Source, s.Reason = ShapeExample, reason
		case !own:
		case p.Inputs.Data != "":
			s.Source = ShapeOfData
		case isExample:
			s.Source, s.Reason = ShapeExample, reason
		default:
			s.Source = ShapeGiven
		}
		list = append(list, s)
	}
	for _, in := range base.GetInput() {
		dims, own := p.Inputs.Shape[in.GetName()]
		isOpen := slices.ContainsFunc(in.GetDims(), func(d int64) bool { return d < 0 })
		switch {
		case own:
			add(in.GetName(), dims, true)
		case !isOpen:
			add(in.GetName(), in.GetDims(), false)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Inputs.Shape)) {
		if !slices.ContainsFunc(list, func(s RequestShape) bool { return s.Input == name }) {
			add(name, p.Inputs.Shape[name], true)
		}
	}
	return list
}

// arrivalsText describes when the requests of a rate arrive; "" for Poisson and in a closed loop.
func arrivalsText(a search.LoadAxis) string {
	if !a.Rate || a.Arrivals.IsPoisson() {
		return ""
	}
	return a.Arrivals.String()
}
