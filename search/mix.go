package search

import (
	"cmp"
	"slices"

	"tuner/model/mix"
)

// Kind is the requests of one shape, of a load whose requests have several.
type Kind struct {
	Share    float64 // of all requests; the shares sum to 1
	Elements float64 // of a row, all inputs together
}

// SizeOf returns the client batch of a service trial's window; false if the trial has no such
// window. The windows of a size stand together, one for each of Kinds.
func (t Trial) SizeOf(window int) (size int, ok bool) {
	if i := window / max(len(t.Kinds), 1); i < len(t.Sizes) {
		return t.Sizes[i], true
	}
	return 0, false
}

// NoPadding is the value of KnobPadding for requests as they are.
const NoPadding = mix.None

// Padding returns the padding of a candidate's requests.
func (s Space) Padding(c Candidate) Value { return cmp.Or(s.Value(c, KnobPadding), NoPadding) }

// kinds returns the kinds of requests under a padding.
func (f Facts) kinds(padding Value) []Kind {
	if padded, known := f.Padded[padding]; known {
		return padded
	}
	return f.Mix
}

// idlePadding sets the padding to none where it changes no shape.
func idlePadding(f folding, values []Value) string {
	isIdle := slices.Equal(f.space.Facts.kinds(f.value(values, KnobPadding)), f.space.Facts.Mix)
	if isIdle && f.set(values, KnobPadding, NoPadding) {
		return "padding has no effect, since it changes no request"
	}
	return ""
}
