// Package calibrate chooses the range of each activation that an int8_static model represents, from the numbers that the
// original computes on data. It stands between the inferences on calibration data and package rewrite: batches of tensors in,
// ranges out. It refuses to run models, and to pass over numbers that no range can hold.
package calibrate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"tuner/model/dataset/elements"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite"
)

// The methods.
const (
	// MinMax takes all that was seen. Nothing is cut off, and one outlier makes everything else coarse.
	MinMax = "minmax"
	// Percentile cuts off the largest and the smallest 0.0005 %, so that 99.999 % remain.
	Percentile = "percentile"
	// Entropy cuts where the 8-bit numbers tell most about the original ones.
	Entropy = "entropy"
)

// Methods lists the methods, the default first.
func Methods() []string { return []string{MinMax, Percentile, Entropy} }

// Collector sees batches of values and remembers, of each value, what its range is computed from: some 130 kB, however much
// it sees. The order of the batches does not matter. It is not safe for concurrent use.
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
		return nil, fmt.Errorf("cannot calibrate by the method %q: there are %q", method, Methods())
	}
	return &Collector{method: method, values: map[string]*histogram{}}, nil
}

// Add takes a batch, by name of value. The tensors are not retained. The error names the value that is not of floating-point
// numbers, or holds one that is not finite in 32 bits.
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
				return fmt.Errorf("cannot calibrate the value %q: it holds %v (element %d of shape %v), which no 8-bit range contains; "+
					"look for inputs outside what the model was made for", name, v, i, t.Shape)
			}
			c.values[name].addNumber(v)
		}
	}
	return nil
}

// Ranges returns the range of each value of which at least one number was seen.
func (c *Collector) Ranges() map[string]rewrite.Range {
	ranges := map[string]rewrite.Range{}
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
		ranges[name] = rewrite.Range{Min: float32(least), Max: float32(most)}
	}
	return ranges
}

// tail is the share of numbers that Percentile cuts off at each end.
const tail = (1 - 0.99999) / 2
