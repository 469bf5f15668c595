// Package scale reads the factors by which a file multiplies the traffic of several models. It stands
// beside the other readers below package spec.
package scale

import (
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"

	"tuner/spec/document"
)

// The default range, and the number of levels in a doubling. Neighbouring levels differ by 1.1 %. The answer is a
// level, so it may be lower by a level than what its configuration carries. Finer levels would differ by less than the
// trials of a campaign can tell (lab/docs/search.md).
const (
	defaultLeast = 0.25
	defaultMost  = 8.0
	perOctave    = 64
)

// The limits of scales.
const (
	lowest  = 0.01
	highest = 10_000.0
)

// Default returns the levels of a file that names none.
func Default() []float64 { return within(defaultLeast, defaultMost) }

// within returns the levels from least to most, in steps of 2^(1/64). They have 1 if it is in between.
func within(least, most float64) []float64 {
	levels := []float64{least}
	for i := math.Floor(math.Log2(least)*perOctave) + 1; math.Exp2(i/perOctave) < most; i++ {
		levels = append(levels, math.Exp2(i/perOctave))
	}
	if most > least {
		levels = append(levels, most)
	}
	return levels
}

// Read reads {min, max}, or a list of numbers. The levels ascend; there are none after a mistake.
func Read(v document.Value) []float64 {
	before := v.Mistakes()
	levels := read(v)
	if v.Mistakes() > before {
		return nil
	}
	return levels
}

func read(v document.Value) []float64 {
	if v.Node.Kind != yaml.MappingNode {
		var levels []float64
		for _, e := range v.List() {
			if x, ok := number(e); ok {
				levels = document.AppendOnce(e, levels, x)
			}
		}
		slices.Sort(levels)
		return levels
	}
	least, most := defaultLeast, defaultMost
	into := func(target *float64) func(document.Value) {
		return func(v document.Value) { *target, _ = number(v) }
	}
	v.Mapping([]document.Field{{Name: "min", Read: into(&least)}, {Name: "max", Read: into(&most)}}, nil)
	if least > most {
		v.Fail(document.Error{Problem: "has a min above its max", Hint: "swap the two"})
	}
	return within(least, most)
}

func number(v document.Value) (float64, bool) {
	x, ok := v.Float()
	if !ok || x < lowest || x > highest {
		v.Fail(document.Error{Problem: "must be a factor of the traffic", Allowed: fmt.Sprintf("%v to %v", lowest, highest)})
		return 1, false
	}
	return x, true
}
