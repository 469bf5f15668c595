// Package calibrate chooses the range of each activation in an int8_static model, from the values
// that the original computes on data. It stands between the inferences on calibration data and
// package rewrite: batches of tensors in, ranges out. It runs no models. It reports numbers that no
// range can hold, and does not skip them.
package calibrate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"tuner/model/dataset/elements"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite/quantization"
)

// The methods.
const (
	// MinMax uses all values. Nothing is cut off, so one outlier makes the resolution coarse.
	MinMax = "minmax"
	// Percentile cuts off the largest and the smallest 0.0005 %, so that 99.999 % remain.
	Percentile = "percentile"
	// Entropy cuts where the 8-bit numbers keep the most information about the original ones.
	Entropy = "entropy"
)

// Methods lists the methods, the default first.
func Methods() []string { return []string{MinMax, Percentile, Entropy} }

// Collector reads batches of values and keeps the data for the range of each value. It needs about
// 130 kB per value, for any number of batches. The order of the batches does not matter. It is not
// safe for concurrent use.
type Collector struct {
	method string
	values map[string]*histogram
}

// New returns a collector of a method; "" means the default.
func New(method string) (*Collector, error) {
	if method == "" {
		method = MinMax
	}
	if !slices.Contains(Methods(), method) {
		return nil, fmt.Errorf("cannot calibrate by the method %q: allowed are %q", method, Methods())
	}
	return &Collector{method: method, values: map[string]*histogram{}}, nil
}

// Add adds a batch, by name of value. It does not keep the tensors. The error names a value that
// has no floating-point numbers, or one that is not finite in 32 bits.
func (c *Collector) Add(batch map[string]inputs.Tensor) error {
	for _, name := range slices.Sorted(maps.Keys(batch)) {
		t := batch[name]
		if !t.Type.IsFloat() {
			return fmt.Errorf("cannot calibrate the value %q: it is %s, not of floating-point numbers", name, t.Type)
		}
		if c.values[name] == nil {
			c.values[name] = &histogram{}
		}
		for i, v := range elements.Floats(t) {
			if math.IsNaN(v) || math.Abs(v) > math.MaxFloat32 {
				return fmt.Errorf("cannot calibrate the value %q: it holds %v (element %d of shape %v), which is outside of every 8-bit range; "+
					"look for inputs that the model was not made for", name, v, i, t.Shape)
			}
			c.values[name].addNumber(v)
		}
	}
	return nil
}

// Ranges returns the range of each value with at least one number.
func (c *Collector) Ranges() map[string]quantization.Range {
	ranges := map[string]quantization.Range{}
	for name, h := range c.values {
		if h.count == 0 {
			continue
		}
		least, most := h.least, h.most
		switch c.method {
		case Percentile:
			least, most = h.percentile(tail)
		case Entropy:
			threshold := h.entropy()
			least, most = max(least, -threshold), min(most, threshold)
		}
		ranges[name] = quantization.Range{Min: float32(least), Max: float32(most)}
	}
	return ranges
}

// tail is the share of numbers that Percentile cuts off at each end.
const tail = (1 - 0.99999) / 2
