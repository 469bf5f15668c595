package pools

import (
	"math"
	"slices"

	"tuner/search"
)

// outcome counts the open engines with a value of a knob, and those that have failed for good.
type outcome struct{ Open, Failed int }

// Experience holds the outcomes of each value of each engine knob, in the space's order of knobs. A
// value without an outcome was not tried.
type Experience struct {
	byKnob   []map[search.Value]outcome
	hopeless int
}

// Experience collects the outcomes from all engines.
func (s *Pools) Experience() Experience {
	x := Experience{make([]map[search.Value]outcome, len(s.base.values)), s.tuning.Engines.Hopeless}
	for i := range x.byKnob {
		x.byKnob[i] = map[search.Value]outcome{}
	}
	for _, e := range s.engines {
		if !e.isTried() {
			continue
		}
		for i, v := range e.values {
			r := x.byKnob[i][v]
			switch {
			case e.IsOpen():
				r.Open++
			case e.EntryPool() == nil:
				r.Failed++
			}
			x.byKnob[i][v] = r
		}
	}
	return x
}

// IsHopeless reports whether an engine has a value with which several engines failed and none
// works.
func (x Experience) IsHopeless(e *Engine) bool {
	for i, v := range e.values {
		if r := x.byKnob[i][v]; r.Open == 0 && r.Failed >= x.hopeless {
			return true
		}
	}
	return false
}

// isTried reports whether a value of a knob was tried.
func (x Experience) isTried(knob int, v search.Value) bool {
	_, tried := x.byKnob[knob][v]
	return tried
}

// Unexplored returns the next engine to open so that each value of each engine knob is tried once.
// Among those with a new value it takes the one most similar to the default's, since that shows the
// value's effect. It is nil when all values were tried, except those that only occur with values
// that always fail. While none is open, one that failed once is tried again, with more instances.
func (s *Pools) Unexplored(x Experience) *Engine {
	if !s.base.isTried() {
		return s.base
	}
	var next *Engine
	least := math.MaxInt
	for _, e := range s.engines {
		if e.isTried() || x.IsHopeless(e) {
			continue
		}
		distance, isNew := 0, false
		for i, v := range e.values {
			if !x.isTried(i, v) {
				isNew = true
			}
			if v != s.base.values[i] {
				distance++
			}
		}
		if isNew && distance < least {
			next, least = e, distance
		}
	}
	if next == nil && !s.IsPriced() {
		again := slices.IndexFunc(s.engines, func(e *Engine) bool { return e.EntryPool() != nil && !x.IsHopeless(e) })
		if again >= 0 {
			return s.engines[again]
		}
	}
	return next
}

// Untried returns the number of pools to open until every value of an engine knob was tried, and
// the default's pool.
func (s *Pools) Untried() int {
	n := 0
	if !s.base.isTried() {
		n++
	}
	if p, ok := s.Default(); ok && p.instances > 1 && p.IsUnopened() {
		n++
	}
	x := s.Experience()
	for i, base := range s.base.values {
		var values []search.Value
		for _, e := range s.engines {
			v := e.values[i]
			if v != base && !x.isTried(i, v) && !slices.Contains(values, v) && !x.IsHopeless(e) {
				values = append(values, v)
			}
		}
		n += len(values)
	}
	return n
}

// IsPriced reports whether service times of any engine process are known.
func (s *Pools) IsPriced() bool { return slices.ContainsFunc(s.engines, (*Engine).IsOpen) }
