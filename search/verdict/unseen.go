package verdict

import (
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/standings"
)

// Span is a range of loads without its ends. It is open where an end is nil.
type Span struct{ After, Before *measure.Load }

// Has reports whether a level lies in the range.
func (s Span) Has(level float64) bool {
	return (s.After == nil || level > s.After.Level()) && (s.Before == nil || level < s.Before.Level())
}

// Levels lists the levels of an axis in the range: those of its sweep, and of a range of whole
// levels the ones next to the ends.
func (s Span) Levels(axis search.LoadAxis) []float64 {
	levels := slices.Clone(axis.Levels)
	if axis.Any && s.Before != nil {
		levels = append(levels, axis.AtMost(s.Before.Level()-1))
	}
	if axis.Any && s.After != nil {
		levels = append(levels, axis.AtLeast(s.After.Level()+1))
	}
	levels = slices.DeleteFunc(levels, func(level float64) bool { return !s.Has(level) })
	slices.Sort(levels)
	return slices.Compact(levels)
}

// text names the measured loads around the range, as the end of a sentence: " at the measured
// loads, from concurrency 9 on".
func (s Span) text() string {
	text := " at the measured loads"
	switch {
	case s.After != nil && s.Before != nil:
		return text + ", up to " + s.After.String() + " and from " + s.Before.String() + " on"
	case s.After != nil:
		return text + ", up to " + s.After.String()
	case s.Before != nil:
		return text + ", from " + s.Before.String() + " on"
	}
	return text
}

// unseen returns the loads at which the default may still keep the limits: beyond the measured ones
// in the direction that cures what they miss. It is nil if the default is likely to keep the limits
// at a measured load, and if it keeps them at none. The question at one load is about no other.
func (d *decider) unseen(base int) *Span {
	if base < 0 || d.At != nil || d.choices[base].Holds >= Likely {
		return nil
	}
	var s Span
	for i := range d.choices {
		if !d.choices[i].Candidate.IsDefault() {
			continue
		}
		switch l := d.choices[i].Load; standings.DirectionOf(d.choices[i].Misses) {
		case standings.Never:
			return nil
		case standings.Lower:
			if s.Before == nil || l.Level() < s.Before.Level() {
				s.Before = &l
			}
		case standings.Higher:
			if s.After == nil || l.Level() > s.After.Level() {
				s.After = &l
			}
		}
	}
	if len(s.Levels(d.Space.Load)) == 0 {
		return nil
	}
	return &s
}
