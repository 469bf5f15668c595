package spec

import (
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"

	"tuner/search"
)

// load reads the range of loads and the content of requests.
func (r profileReader) load(v value) {
	axis := &r.p.Load
	given := v.mapping([]field{
		{"concurrency", func(v value) {
			// auto leaves the levels nil, and Space chooses them
			if v.node.Kind != yaml.ScalarNode || v.node.Value != Auto {
				readLevels(v, axis, wholeScale(1))
			}
		}},
		{"request_rate", func(v value) {
			axis.Rate = true
			readLevels(v, axis, rateScale())
		}},
		{"client_batch_size", func(v value) {
			if n, ok := v.whole(1, math.MaxInt32); ok {
				axis.BatchSize = int(n)
			}
		}},
		{"inputs", r.inputs},
	}, nil)
	_, closed := given["concurrency"]
	if rate, open := given["request_rate"]; open && closed {
		rate.fail(Error{Problem: "contradicts concurrency", Hint: "keep one of the two"})
	}
}

// highestRate is the highest request rate of the load generator, in requests/s.
const highestRate = 10_000_000

// rateScale returns the scale of request rates, whole numbers.
func rateScale() scale {
	return scale{read: func(v value) (int64, bool) { return v.whole(1, highestRate) }, step: 1, doubles: true}
}

// readLevels reads the levels of the load axis in ascending order.
func readLevels(v value, axis *search.LoadAxis, s scale) {
	numbers, ranged := v.series(s)
	slices.Sort(numbers)
	axis.Levels = mapped(numbers, func(n int64) float64 { return float64(n) })
	axis.Any = ranged
}

func (r profileReader) inputs(v value) {
	var examples []value
	v.mapping([]field{{"shape", func(v value) {
		shapes := map[string][]int64{}
		v.mapping(nil, func(key, v value) bool {
			if dims, ok := v.shape(); ok {
				shapes[key.node.Value] = dims
			}
			return true
		})
		r.p.Inputs.Shape = shapes
	}}, {"examples", func(v value) {
		for _, e := range v.list() {
			if name, ok := e.text(); ok {
				r.p.Inputs.Examples, examples = appendOnce(e, r.p.Inputs.Examples, name), append(examples, e)
			}
		}
	}}}, nil)
	for _, e := range examples {
		if _, has := r.p.Inputs.Shape[e.node.Value]; !has {
			e.fail(Error{Problem: "has no shape in load.inputs.shape, which could be an example"})
		}
	}
}

// shape reads a list of dimensions ≥ 1.
func (v value) shape() ([]int64, bool) {
	if v.node.Kind != yaml.SequenceNode {
		v.fail(Error{Problem: "must be a list of dimensions without the batch dimension", Allowed: "[32], [3, 224, 224]"})
		return nil, false
	}
	dims := []int64{}
	for _, e := range v.elements() {
		n, ok := e.whole(1, math.MaxInt32)
		if !ok {
			return nil, false
		}
		dims = append(dims, n)
	}
	return dims, true
}

// checkBatch reports requests that are larger than every batch of the server.
func (r profileReader) checkBatch(given map[string]value) {
	load, hasLoad := given["load"]
	knob, hasKnob := r.p.knob(search.KnobMaxBatchSize)
	if !hasLoad || !hasKnob {
		return
	}
	largest := largestInt(knob, 0)
	if r.p.Load.BatchSize > max(1, largest) {
		load.child("client_batch_size").fail(Error{
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
