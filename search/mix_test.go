package search

import "testing"

// spaceOfPaddings has a mix of 16 and 64 elements. Multiples of 64 make both alike, and those of 16
// change nothing.
func spaceOfPaddings() Space {
	kinds := []Kind{{0.75, 16}, {0.25, 64}}
	return Space{
		Knobs: []Knob{{KnobMaxBatchSize, ScopeBatcher, []Value{"8"}}, {KnobPadding, ScopeBatcher, []Value{NoPadding, "16", "64"}}},
		Load:  LoadAxis{Levels: []float64{1, 64}, Any: true, BatchSize: 1},
		Facts: Facts{Batching: true, BaseMaxBatchSize: 8, Mix: kinds, Padded: map[Value][]Kind{NoPadding: kinds, "16": kinds, "64": {{1, 64}}},
			Base: map[string]Value{KnobPadding: NoPadding, KnobMaxBatchSize: "8"}},
	}
}

// A padding that changes no shape is none. The others are servers of their own.
func TestPaddings(t *testing.T) {
	t.Parallel()
	s := spaceOfPaddings()
	of := func(v Value) Candidate { return NewCandidate(Setting{KnobMaxBatchSize, "8"}, Setting{KnobPadding, v}) }
	c, illegal := s.Canonical(of("16"))
	if illegal != "" || c.Key() != of(NoPadding).Key() {
		t.Errorf("multiples of 16 become %s (%s)", c, illegal)
	}
	if c, _ = s.Canonical(of("64")); c.Key() != of("64").Key() {
		t.Errorf("multiples of 64 become %s", c)
	}
	load := s.Load.At(4)
	if s.ClassKey(of("64"), load) == s.ClassKey(of(NoPadding), load) || s.ClassKey(of(NoPadding), load) != s.ClassKey(Candidate{}, load) {
		t.Error("classes of paddings are mixed up")
	}
	if got := of("64").Describe(); got != "batch 8, padded to multiples of 64" {
		t.Errorf("the candidate reads %q", got)
	}
	s.Facts.Mix, s.Facts.Padded = nil, nil
	if c, _ = s.Canonical(of("64")); c.Key() != of(NoPadding).Key() {
		t.Errorf("without a mix, multiples of 64 become %s", c)
	}
}
