// Package joint makes the space of several models on one server, and its candidates: the product of
// the candidates of each. It stands above package search, whose Space and Candidates ask it by an
// interface, and below package spec. It folds nothing itself, since no folding rule looks at two
// models.
package joint

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"tuner/measure"
	"tuner/search"
)

// several are the candidates of several models: every choice of one candidate for the server and for
// each model. No rule looks at two models, so counts multiply. A model without knobs has its default
// configuration.
//
// A joint pool is a choice of one pool of each. Its members are the choices of settings for all
// batchers.
type several struct{ parts []candidatesOf }

// candidatesOf are the candidates of a model, or of the server (no name).
type candidatesOf struct {
	model string
	own   *search.Candidates
	pools func() []search.Candidate // computed once; at least one
	// isFixed: there is nothing to choose
	isFixed bool
}

// Space returns the space of several models on one server, of whose machine facts has the cores. Its knobs are the
// server's own, and those of all models with their names. Its load axis has the scales at which the
// models' traffic is multiplied: levels are ascending, above 0. Of levels that are one load it has the highest. The load
// of a part has one level, at which the model's traffic has scale 1.
func Space(parts []search.Part, server []search.Knob, scales []float64, facts search.Facts) (search.Space, error) {
	s := newSpace(parts, server, facts)
	var loads []measure.Part
	for _, p := range parts {
		one := p.Space.Load.At(p.Space.Load.First())
		loads = append(loads, measure.Part{Model: p.Model, Concurrency: one.Concurrency, RequestRate: one.RequestRate, BatchSize: one.BatchSize})
	}
	mix, err := measure.NewMix(loads...)
	s.Load = search.LoadAxis{Rate: true, Levels: distinct(scales, loads), Mix: mix}
	s.Joint = newSeveral(s)
	return s, err
}

// distinct returns the scales without those that offer the same as the next higher one, as of few requests in flight.
func distinct(scales []float64, loads []measure.Part) []float64 {
	var list []float64
	for i, scale := range scales {
		isOwn := func(p measure.Part) bool { return p.At(scale) != p.At(scales[i+1]) }
		if i == len(scales)-1 || slices.ContainsFunc(loads, isOwn) {
			list = append(list, scale)
		}
	}
	return list
}

// Pipeline returns the space of the stages of a pipeline. Its load is that of the pipeline, which all its
// stages get. Without levels it is the longest of the stages': the largest of them decides how many requests
// keep all instances busy.
func Pipeline(stages []search.Part, load search.LoadAxis, facts search.Facts) search.Space {
	s := newSpace(stages, nil, facts)
	load.Any = load.Any || load.Levels == nil
	isOpen := load.Levels == nil
	for _, p := range stages {
		if levels := p.Space.Load.Levels; isOpen && len(levels) > len(load.Levels) {
			load.Levels = levels
		}
	}
	s.Load, s.Facts.Batching = load, facts.Batching
	s.Joint = newSeveral(s)
	return s
}

// newSpace returns a space of parts without its loads and candidates.
func newSpace(parts []search.Part, server []search.Knob, facts search.Facts) search.Space {
	s := search.Space{Parts: slices.Clone(parts), Facts: search.Facts{Cores: facts.Cores, Nodes: facts.Nodes}, Server: server, Knobs: slices.Clone(server)}
	for _, p := range parts {
		for _, k := range p.Space.Knobs {
			k.Name = search.JoinKnob(p.Model, k.Name)
			s.Knobs = append(s.Knobs, k)
		}
	}
	return s
}

func newSeveral(s search.Space) *several {
	joint := &several{}
	add := func(model string, space search.Space) {
		own := space.Candidates()
		p := candidatesOf{model: model, own: own, isFixed: len(space.Knobs) == 0}
		p.pools = sync.OnceValue(func() []search.Candidate {
			if p.isFixed {
				return []search.Candidate{{}}
			}
			return slices.Collect(own.Pools())
		})
		joint.parts = append(joint.parts, p)
	}
	add("", search.Space{Knobs: s.Server, Facts: search.Facts{Cores: s.Facts.Cores}})
	for _, p := range s.Parts {
		add(p.Model, p.Space)
	}
	return joint
}

// Batchers is the number of settings of all batchers together.
func (s *several) Batchers() int { return s.product(candidatesOf.batchers) }

// batchers returns the number of settings of the model's batcher, at least 1 for a model without
// knobs.
func (p candidatesOf) batchers() int {
	if p.isFixed {
		return 1
	}
	return p.own.Batchers()
}

// times returns the product of two non-negative numbers, limited to the range of int.
func times(a, b int) int {
	if b > 0 && a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}

// product multiplies the parts' numbers.
func (s *several) product(of func(candidatesOf) int) int {
	n := 1
	for _, p := range s.parts {
		n = times(n, of(p))
	}
	return n
}

func (s *several) PoolCount() (n int, exact bool) {
	exact = true
	n = s.product(func(p candidatesOf) int {
		if p.isFixed {
			return 1
		}
		own, isExact := p.own.PoolCount()
		exact = exact && isExact
		return own
	})
	return n, exact
}

// BatcherCombinations is Candidates.BatcherCombinations of the part that has most.
func (s *several) BatcherCombinations() (n int, ok bool) {
	ok = true
	for _, p := range s.parts {
		own, fits := p.own.BatcherCombinations()
		n, ok = max(n, own), ok && fits
	}
	return n, ok
}

// joined puts the parts' configurations together.
func (s *several) joined(own []search.Candidate) search.Candidate {
	var settings []search.Setting
	for i, p := range s.parts {
		for _, x := range own[i].Settings() {
			settings = append(settings, search.Setting{Knob: search.JoinKnob(p.model, x.Knob), Value: x.Value})
		}
	}
	return search.NewCandidate(settings...)
}

// PoolWalk is Candidates.poolWalk. The last model's pools change fastest.
func (s *several) PoolWalk() func() (search.Candidate, bool) {
	at, n := 0, s.product(func(p candidatesOf) int { return len(p.pools()) })
	return func() (search.Candidate, bool) {
		if at == n {
			return search.Candidate{}, false
		}
		own, rest := make([]search.Candidate, len(s.parts)), at
		for i, p := range slices.Backward(s.parts) {
			own[i] = p.pools()[rest%len(p.pools())]
			rest /= len(p.pools())
		}
		at++
		return s.joined(own), true
	}
}

// Member is Candidates.Member. The last model's batcher changes fastest.
func (s *several) Member(pool search.Candidate, i int) search.Candidate {
	own := make([]search.Candidate, len(s.parts))
	for k, p := range slices.Backward(s.parts) {
		own[k] = pool.Of(p.model)
		if !p.isFixed {
			own[k] = p.own.Member(own[k], i%p.batchers())
		}
		i /= p.batchers()
	}
	return s.joined(own)
}

// Draw is Candidates.Draw.
func (s *several) Draw(random *rand.Rand) (search.Candidate, bool) {
	own := make([]search.Candidate, len(s.parts))
	for i, p := range s.parts {
		if p.isFixed {
			continue
		}
		var ok bool
		if own[i], ok = p.own.Draw(random); !ok {
			return search.Candidate{}, false
		}
	}
	return s.joined(own), true
}

// Folds lists the folds of all parts, each with the name of its model. They count the combinations
// of that model alone.
func (s *several) Folds() []search.Fold {
	var list []search.Fold
	for _, p := range s.parts {
		for _, f := range p.own.Folds() {
			if p.model != "" {
				f.Reason = fmt.Sprintf("%s: %s", p.model, f.Reason)
			}
			list = append(list, f)
		}
	}
	return list
}
