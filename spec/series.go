package spec

import (
	"fmt"
	"math"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// longestSeries is the largest number of values of one knob. More cannot be measured, and usually
// come from a range without its step.
const longestSeries = 1000

// scale describes how the numbers of a series are written. Durations are in nanoseconds here.
type scale struct {
	read func(value) (int64, bool)
	step int64 // default step of a range; 0: the range must have one
	// doubles means that a range without step and scale doubles, and ends with its max.
	doubles bool
}

// wholeScale returns the scale of whole numbers from low on.
func wholeScale(low int64) scale {
	return scale{
		read: func(v value) (int64, bool) { return v.whole(low, math.MaxInt32) },
		step: 1,
	}
}

// microScale returns the scale of durations in Triton's resolution, whole microseconds.
func microScale() scale {
	return scale{
		read: func(v value) (int64, bool) {
			d, ok := v.durationWithin(0, time.Minute)
			if ok && d%time.Microsecond != 0 {
				v.fail(Error{Problem: "is finer than a microsecond", Allowed: "whole microseconds"})
				return 0, false
			}
			return int64(d), ok
		},
	}
}

// series reads one number, a list of them, or a range. ranged means that it was a range. Values
// keep the user's order.
func (v value) series(s scale) (numbers []int64, ranged bool) {
	if v.node.Kind == yaml.MappingNode {
		return v.span(s), true
	}
	for _, e := range v.list() {
		if n, ok := s.read(e); ok {
			numbers = appendOnce(e, numbers, n)
		}
	}
	return numbers, false
}

// list returns the elements of a list, or the single value. It reports an empty list.
func (v value) list() []value {
	elements := v.elements()
	if len(elements) == 0 {
		v.fail(Error{Problem: "is an empty list", Hint: "name at least one value, or remove the line"})
	}
	return elements
}

// appendOnce appends x, or reports that the list has it already.
func appendOnce[T comparable](v value, list []T, x T) []T {
	if slices.Contains(list, x) {
		v.fail(Error{Problem: "appears twice in the list"})
		return list
	}
	return append(list, x)
}

// span is a range in the file. The ends are included.
type span struct {
	low, high, step int64
	doubling        bool
}

// span reads a range {min, max, step | scale: pow2} and returns its values.
func (v value) span(s scale) []int64 {
	var r span
	var lowOK, highOK, stepOK bool
	given := v.mapping([]field{
		{"min", func(v value) { r.low, lowOK = s.read(v) }},
		{"max", func(v value) { r.high, highOK = s.read(v) }},
		{"step", func(v value) { r.step, stepOK = s.read(v) }},
		{"scale", func(v value) { _, r.doubling = v.word([]string{"pow2"}) }},
	}, nil)
	step, hasStep := given["step"]
	pow2, hasScale := given["scale"]
	for _, name := range []string{"min", "max"} {
		if _, has := given[name]; !has {
			v.fail(Error{Problem: fmt.Sprintf("range without %q", name), Allowed: "{min, max, step} or {min, max, scale: pow2}"})
			return nil
		}
	}
	if !lowOK || !highOK || hasStep && !stepOK || hasScale && !r.doubling {
		return nil
	}
	switch {
	case hasStep && hasScale:
		pow2.fail(Error{Problem: "contradicts step", Hint: "keep one of the two"})
	case r.low > r.high:
		v.fail(Error{Problem: "is an empty range: min is greater than max", Hint: "swap the two"})
	case r.doubling && r.low == 0:
		v.fail(Error{Problem: "cannot double from 0", Hint: "begin at 1 or more, or write a list"})
	case hasStep && r.step == 0:
		step.fail(Error{Problem: "must be above 0"})
	case !hasScale && !hasStep && s.doubles:
		r.doubling = true
		return appendEnd(v.expand(r), r.high)
	case !hasScale && !hasStep && s.step == 0:
		v.fail(Error{Problem: "range without a step", Allowed: "{min, max, step} or {min, max, scale: pow2}"})
	default:
		if !hasStep {
			r.step = s.step
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
func (v value) expand(r span) []int64 {
	if !r.doubling && (r.high-r.low)/r.step >= longestSeries {
		v.fail(Error{Problem: fmt.Sprintf("is a range of %d values", (r.high-r.low)/r.step+1),
			Allowed: fmt.Sprintf("at most %d", longestSeries), Hint: "use scale: pow2 or a greater step"})
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
