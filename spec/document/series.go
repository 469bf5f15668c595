package document

import (
	"fmt"
	"math"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// LongestSeries is the largest number of values of one knob. More cannot be measured, and usually
// come from a range without its step.
const LongestSeries = 1000

// Scale describes how the numbers of a series are written. Durations are in nanoseconds here.
type Scale struct {
	Read func(Value) (int64, bool)
	Step int64 // default step of a range; 0: the range must have one
	// Doubles means that a range without step and scale doubles, and ends with its max.
	Doubles bool
}

// WholeScale returns the scale of whole numbers from low on.
func WholeScale(low int64) Scale {
	return Scale{
		Read: func(v Value) (int64, bool) { return v.Whole(low, math.MaxInt32) },
		Step: 1,
	}
}

// MicroScale returns the scale of durations in Triton's resolution, whole microseconds.
func MicroScale() Scale {
	return Scale{
		Read: func(v Value) (int64, bool) {
			d, ok := v.DurationWithin(0, time.Minute)
			if ok && d%time.Microsecond != 0 {
				v.Fail(Error{Problem: "is finer than a microsecond", Allowed: "whole microseconds"})
				return 0, false
			}
			return int64(d), ok
		},
	}
}

// Series reads one number, a list of them, or a range. ranged means that it was a range. Values
// keep the user's order.
func (v Value) Series(s Scale) (numbers []int64, ranged bool) {
	if v.Node.Kind == yaml.MappingNode {
		return v.span(s), true
	}
	for _, e := range v.List() {
		if n, ok := s.Read(e); ok {
			numbers = AppendOnce(e, numbers, n)
		}
	}
	return numbers, false
}

// List returns the elements of a list, or the single value. It reports an empty list.
func (v Value) List() []Value {
	elements := v.Elements()
	if len(elements) == 0 {
		v.Fail(Error{Problem: "is an empty list", Hint: "name at least one value, or remove the line"})
	}
	return elements
}

// AppendOnce appends x, or reports that the list has it already.
func AppendOnce[T comparable](v Value, list []T, x T) []T {
	if slices.Contains(list, x) {
		v.Fail(Error{Problem: "appears twice in the list"})
		return list
	}
	return append(list, x)
}

// Files reads a list of file names, without the same one twice. path is the file's own: a name is
// relative to its folder.
func (v Value) Files(path string) []string {
	var files []string
	for _, e := range v.List() {
		if name, ok := e.Text(); ok {
			files = AppendOnce(e, files, RelativeTo(path, name))
		}
	}
	return files
}

// span is a range in the file. The ends are included.
type span struct {
	low, high, step int64
	doubling        bool
}

// span reads a range {min, max, step | scale: pow2} and returns its values.
func (v Value) span(s Scale) []int64 {
	var r span
	var lowOK, highOK, stepOK bool
	given := v.Mapping([]Field{
		{Name: "min", Read: func(v Value) { r.low, lowOK = s.Read(v) }},
		{Name: "max", Read: func(v Value) { r.high, highOK = s.Read(v) }},
		{Name: "step", Read: func(v Value) { r.step, stepOK = s.Read(v) }},
		{Name: "scale", Read: func(v Value) { _, r.doubling = v.Word([]string{"pow2"}) }},
	}, nil)
	step, hasStep := given["step"]
	pow2, hasScale := given["scale"]
	for _, name := range []string{"min", "max"} {
		if _, has := given[name]; !has {
			v.Fail(Error{Problem: fmt.Sprintf("range without %q", name), Allowed: "{min, max, step} or {min, max, scale: pow2}"})
			return nil
		}
	}
	if !lowOK || !highOK || hasStep && !stepOK || hasScale && !r.doubling {
		return nil
	}
	switch {
	case hasStep && hasScale:
		pow2.Fail(Error{Problem: "contradicts step", Hint: "keep one of the two"})
	case r.low > r.high:
		v.Fail(Error{Problem: "is an empty range: min is greater than max", Hint: "swap the two"})
	case r.doubling && r.low == 0:
		v.Fail(Error{Problem: "cannot double from 0", Hint: "begin at 1 or more, or write a list"})
	case hasStep && r.step == 0:
		step.Fail(Error{Problem: "must be above 0"})
	case !hasScale && !hasStep && s.Doubles:
		r.doubling = true
		return appendEnd(v.expand(r), r.high)
	case !hasScale && !hasStep && s.Step == 0:
		v.Fail(Error{Problem: "range without a step", Allowed: "{min, max, step} or {min, max, scale: pow2}"})
	default:
		if !hasStep {
			r.step = s.Step
		}
		return v.expand(r)
	}
	return nil
}

// appendEnd appends the end of a range if its values stop before it.
func appendEnd(numbers []int64, end int64) []int64 {
	if numbers[len(numbers)-1] < end {
		return append(numbers, end)
	}
	return numbers
}

// expand returns the values of a valid range: min, min+step … or min, 2·min, 4·min … up to max.
func (v Value) expand(r span) []int64 {
	if !r.doubling && (r.high-r.low)/r.step >= LongestSeries {
		v.Fail(Error{Problem: fmt.Sprintf("is a range of %d values", (r.high-r.low)/r.step+1),
			Allowed: fmt.Sprintf("at most %d", LongestSeries), Hint: "use scale: pow2 or a greater step"})
		return nil
	}
	var numbers []int64
	for n := r.low; n <= r.high; {
		numbers = append(numbers, n)
		if r.doubling {
			n *= 2
		} else {
			n += r.step
		}
	}
	return numbers
}

// Shape reads a list of dimensions ≥ 1.
func (v Value) Shape() ([]int64, bool) {
	if v.Node.Kind != yaml.SequenceNode {
		v.Fail(Error{Problem: "must be a list of dimensions without the batch dimension", Allowed: "[32], [3, 224, 224]"})
		return nil, false
	}
	dims := []int64{}
	for _, e := range v.Elements() {
		n, ok := e.Whole(1, math.MaxInt32)
		if !ok {
			return nil, false
		}
		dims = append(dims, n)
	}
	return dims, true
}
