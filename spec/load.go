package spec

import (
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"

	"tuner/search"
	"tuner/spec/document"
	"tuner/spec/mixture"
)

// autoLevel is the value of concurrency for loads that tuner chooses.
const autoLevel = "auto"

// load reads the range of loads and the content of requests.
func (r profileReader) load(v document.Value) {
	axis := &r.p.Load
	given := v.Mapping([]document.Field{
		{Name: "concurrency", Read: func(v document.Value) {
			// auto leaves the levels nil, and Space chooses them
			if v.Node.Kind != yaml.ScalarNode || v.Node.Value != autoLevel {
				readLevels(v, axis, document.WholeScale(1))
			}
		}},
		{Name: "request_rate", Read: func(v document.Value) {
			axis.Rate = true
			readLevels(v, axis, rateScale())
		}},
		{Name: "client_batch_size", Read: func(v document.Value) {
			if n, ok := v.Whole(1, math.MaxInt32); ok {
				axis.BatchSize = int(n)
			}
		}},
		r.arrivals(&axis.Arrivals),
		{Name: "inputs", Read: r.inputs},
	}, nil)
	axis.Rate = checkOpen(given, axis.Arrivals)
	checkSizes(given, axis.Arrivals, r.p.Inputs.Mix)
}

// highestRate is the highest request rate of the load generator, in requests/s.
const highestRate = 10_000_000

// rateScale returns the scale of request rates, whole numbers.
func rateScale() document.Scale {
	return document.Scale{Read: func(v document.Value) (int64, bool) { return v.Whole(1, highestRate) }, Step: 1, Doubles: true}
}

// readLevels reads the levels of the load axis in ascending order.
func readLevels(v document.Value, axis *search.LoadAxis, s document.Scale) {
	numbers, ranged := v.Series(s)
	slices.Sort(numbers)
	axis.Levels = mapped(numbers, func(n int64) float64 { return float64(n) })
	axis.Any = ranged
}

func (r profileReader) inputs(v document.Value) {
	var examples []document.Value
	given := v.Mapping([]document.Field{
		{Name: "data", Read: func(v document.Value) { r.file(v, &r.p.Inputs.Data) }},
		{Name: "shape", Read: func(v document.Value) { r.p.Inputs.Shape = mixture.Shapes(v) }},
		{Name: "mix", Read: func(v document.Value) { r.p.Inputs.Mix = mixture.Read(v, r.file) }},
		{Name: "pad", Read: func(v document.Value) { r.p.Inputs.Pad = mixture.Values(v) }},
		{Name: "examples", Read: func(v document.Value) { examples = r.examples(v) }},
	}, nil)
	for _, name := range []string{"shape", "mix"} {
		if field, has := given[name]; has && r.p.Inputs.Data != "" {
			field.Fail(document.Error{Problem: "contradicts data, whose rows have their own shapes", Hint: "keep one of the two"})
		}
	}
	for _, e := range examples {
		if _, has := r.p.Inputs.Shape[e.Node.Value]; !has && r.p.Inputs.Examples[e.Node.Value] == "" {
			e.Fail(document.Error{Problem: "has no shape in load.inputs.shape, which could be an example"})
		}
	}
}

// examples reads the inputs whose shape is an example, with reasons. Earlier versions wrote a list of
// names. It returns the values that name the inputs.
func (r profileReader) examples(v document.Value) []document.Value {
	var inputs []document.Value
	add := func(input document.Value, reason string) {
		if r.p.Inputs.Examples == nil {
			r.p.Inputs.Examples = map[string]string{}
		}
		r.p.Inputs.Examples[input.Node.Value] = reason
		inputs = append(inputs, input)
	}
	if v.Node.Kind == yaml.MappingNode {
		v.Mapping(nil, func(input, v document.Value) bool {
			if reason, ok := v.Text(); ok {
				add(input, reason)
			}
			return true
		})
		return inputs
	}
	var names []string
	for _, e := range v.List() {
		if name, ok := e.Text(); ok {
			names = document.AppendOnce(e, names, name)
			add(e, "")
		}
	}
	return inputs
}

// checkBatch reports requests that are larger than every batch of the server.
func (r profileReader) checkBatch(given map[string]document.Value) {
	load, hasLoad := given["load"]
	knob, hasKnob := r.p.knob(search.KnobMaxBatchSize)
	if !hasLoad || !hasKnob {
		return
	}
	largest := largestInt(knob, 0)
	if r.p.Load.BatchSize > max(1, largest) {
		load.Child("client_batch_size").Fail(document.Error{
			Problem: fmt.Sprintf("is larger than every max_batch_size of the space (at most %d)", largest),
			Hint:    "a request of batch n needs max_batch_size n or more"})
	}
}

// largestInt returns the largest integer value of the knob, at least floor.
func largestInt(k search.Knob, floor int) int {
	for _, v := range k.Values {
		if n, err := v.Int(); err == nil {
			floor = max(floor, n)
		}
	}
	return floor
}
