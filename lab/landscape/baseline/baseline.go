// Package baseline holds search strategies for comparison, which are not in the product. They are
// every point in random order, the tree-structured Parzen estimator, and Gaussian-process
// optimization with constraints.
//
// They choose points of the space: a configuration at a load. The product's own strategies seek a
// configuration's best load instead. Package plan frames both alike. All of them know the time only
// from the events, and are deterministic.
package baseline

import (
	"fmt"
	"math/rand/v2"

	"tuner/search"
	"tuner/search/plan"
	"tuner/search/standings"
)

// Names lists the strategies.
func Names() []string { return []string{"exhaustive", "tpe", "gp-bo"} }

// New returns a campaign with the named strategy inside.
func New(name string, s search.Settings) (*plan.Plan, error) {
	var problem error
	p, err := plan.Around(s, func(l *standings.Ledger, candidates *search.Candidates) plan.Explorer {
		points := newPoints(s, l, candidates.All())
		switch name {
		case "exhaustive":
			return newExhaustive(points)
		case "gp-bo":
			return newBayes(points)
		case "tpe":
			var t *tpe
			t, problem = newTPE(points)
			return t
		}
		problem = fmt.Errorf("unknown baseline %q; allowed: %q", name, Names())
		return newExhaustive(points)
	})
	if err == nil {
		err = problem
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// points is the space as a list of points, and the common part of all baselines.
type points struct {
	settings   search.Settings
	ledger     *standings.Ledger
	candidates []search.Candidate
	index      map[string]int // index of a candidate, by key
	ordinal    []bool         // by knob: its values are numbers or durations
}

func newPoints(s search.Settings, l *standings.Ledger, candidates []search.Candidate) points {
	p := points{settings: s, ledger: l, candidates: candidates, index: make(map[string]int, len(candidates))}
	for i, c := range candidates {
		p.index[c.Key()] = i
	}
	for _, k := range s.Space.Knobs {
		p.ordinal = append(p.ordinal, isOrdinal(k))
	}
	return p
}

// isOrdinal reports whether a knob's values are numbers or durations.
func isOrdinal(k search.Knob) bool {
	for _, v := range k.Values {
		_, number := v.Int()
		_, duration := v.Duration()
		if number != nil && duration != nil {
			return false
		}
	}
	return true
}

// point holds an index into the candidates and one into the levels.
type point struct{ candidate, level int }

// number returns the number of points.
func (p points) number() int { return len(p.candidates) * len(p.settings.Space.Load.Levels) }

// at returns the i-th point.
func (p points) at(i int) point {
	n := len(p.settings.Space.Load.Levels)
	return point{i / n, i % n}
}

// trial returns the action that measures a point in one window.
func (p points) trial(at point, why string) search.Action {
	level := p.settings.Space.Load.Levels[at.level]
	return search.Action{Trial: p.settings.Trial(p.candidates[at.candidate], level, search.PhaseSearch), Why: why}
}

// isBroken reports whether the engine does not start with a candidate.
func (p points) isBroken(candidate int) bool {
	_, broken := p.ledger.PoolFailure(p.candidates[candidate])
	return broken
}

// Skipped returns nothing: a baseline does not explain itself.
func (p points) Skipped() []search.Fold { return nil }

// exhaustive measures every point once: the pools in random order, and within a pool configuration
// by configuration.
type exhaustive struct {
	points
	todo []point // the first is next
}

func newExhaustive(p points) *exhaustive {
	random := rand.New(rand.NewPCG(p.settings.Seed, 0))
	var order []string
	pools := map[string][]int{}
	for i, c := range p.candidates {
		k := c.PoolKey()
		if pools[k] == nil {
			order = append(order, k)
		}
		pools[k] = append(pools[k], i)
	}
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	e := &exhaustive{points: p}
	for _, k := range order {
		pool := pools[k]
		random.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
		for _, candidate := range pool {
			for level := range p.settings.Space.Load.Levels {
				e.todo = append(e.todo, point{candidate, level})
			}
		}
	}
	return e
}

// Ask returns the next point.
func (e *exhaustive) Ask() search.Action {
	if len(e.todo) == 0 {
		return search.Action{Stop: true, Why: "every point was measured"}
	}
	return e.trial(e.todo[0], "next in a random order")
}

// Tell moves to the next point. It ignores events of the default, which comes first.
func (e *exhaustive) Tell(event search.Event) {
	if event.Trial.Phase == search.PhaseSearch && len(e.todo) > 0 {
		e.todo = e.todo[1:]
	}
	for len(e.todo) > 0 && e.isBroken(e.todo[0].candidate) {
		e.todo = e.todo[1:]
	}
}

// Remaining returns the number of points that are not measured yet.
func (e *exhaustive) Remaining() int { return len(e.todo) }
