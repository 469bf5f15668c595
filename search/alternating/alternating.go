// Package alternating is a strategy for several models on one server. It improves the configuration of
// one model at a time, the one whose limit is missed first, while the others stay as they are.
//
// It stands beside the other strategies, below package plan. It makes no prediction: every choice
// follows from the points of the ledger.
package alternating

import (
	"cmp"
	"math"
	"slices"

	"tuner/search"
	"tuner/search/standings"
)

// The numbers of the search.
const (
	// farthest is the largest number of knobs of one model that change at once. Threads and instances
	// often must change together.
	farthest = 2
	// step is the ratio of the next higher load, a quarter of an octave. A configuration that is better
	// by more is rare, and the finals look at loads beside.
	step = 1.189207115002721
	// resolution is the ratio of a passing and a missing load between which none is tried.
	resolution = 1.1
	// mostPoints bounds the loads of one configuration.
	mostPoints = 6
)

// Alternating is the strategy. It is for one goroutine.
type Alternating struct {
	settings search.Settings
	ledger   *standings.Ledger
	current  search.Candidate // configuration of the last trial
	isBegun  bool
}

// New returns the strategy. It reads its owner's ledger. The space is that of several models.
func New(s search.Settings, l *standings.Ledger, _ *search.Candidates) *Alternating {
	return &Alternating{settings: s, ledger: l}
}

// Ask returns the next load of the current configuration, or the first one of the next neighbour.
func (a *Alternating) Ask() search.Action {
	if a.isBegun {
		if level, more := a.climb(a.current); more {
			return search.Action{Trial: a.settings.Trial(a.current, level, search.PhaseSearch), Why: "load of a promising configuration"}
		}
	}
	home, ok := a.home()
	if !ok {
		return search.Action{Stop: true, Why: "no configuration has figures"}
	}
	next, ok := a.neighbour(home)
	if !ok {
		return search.Action{Stop: true, Why: "no change of one model's configuration is left to try"}
	}
	return search.Action{Trial: a.settings.Trial(next, a.first(home), search.PhaseSearch), Why: "a change of one model"}
}

// Tell follows the trials of the search.
func (a *Alternating) Tell(e search.Event) {
	if e.Trial.Phase == search.PhaseSearch {
		a.current, a.isBegun = e.Trial.Candidate, true
	}
}

// Remaining returns the number of neighbours of the best configuration that were not measured.
func (a *Alternating) Remaining() int {
	home, ok := a.home()
	if !ok {
		return 0
	}
	n := 0
	for _, c := range a.neighbours(home) {
		if a.isNew(c) {
			n++
		}
	}
	return n
}

// Skipped returns nothing: what was not tried is not known to be worse.
func (a *Alternating) Skipped() []search.Fold { return nil }

// home returns the best configuration so far, or the one nearest to the constraints.
func (a *Alternating) home() (standings.Standing, bool) {
	if leader, ok := a.ledger.Leader(); ok {
		return leader, true
	}
	ranked := a.ledger.Ranked()
	if len(ranked) == 0 || ranked[0].Point.Failure != nil {
		return standings.Standing{}, len(ranked) > 0
	}
	return ranked[0], true
}

// first returns the load at which a neighbour is measured first. Where the best configuration keeps the
// limits, it is the next higher one: a neighbour that misses them there is no better. Otherwise it is
// the load at which the best is nearest to them.
func (a *Alternating) first(home standings.Standing) float64 {
	axis, level := a.settings.Space.Load, home.Load.Level()
	if !home.Point.Passes() || !a.settings.Goal.Objective.Rises() {
		return axis.AtMost(level)
	}
	return axis.AtLeast(math.Nextafter(level, math.Inf(1)))
}

// climb returns the next load of a configuration; false if its best load is known well enough, or if
// it cannot lead.
func (a *Alternating) climb(c search.Candidate) (float64, bool) {
	points := a.ledger.Points(c)
	if len(points) == 0 || len(points) >= mostPoints || !a.settings.Goal.Objective.Rises() {
		return 0, false
	}
	passes, misses := 0.0, math.Inf(1) // highest passing level, and the lowest missing one above it
	for _, p := range points {
		switch {
		case p.Failure != nil:
			return 0, false
		case p.Passes():
			passes = max(passes, p.Level)
		}
	}
	for _, p := range points {
		if !p.Passes() && p.Level > passes {
			misses = min(misses, p.Level)
		}
	}
	axis := a.settings.Space.Load
	level := 0.0
	switch {
	case passes == 0 && a.ledger.Lead() > math.Inf(-1):
		return 0, false // it misses where the best one passes
	case passes == 0:
		level = axis.AtMost(misses / 2)
	case math.IsInf(misses, 1):
		level = axis.AtLeast(passes * step)
	case misses/passes > resolution:
		level = axis.AtMost(math.Sqrt(passes * misses))
	}
	isTried := slices.ContainsFunc(points, func(p standings.Point) bool { return p.Level == level })
	return level, level > passes && level < misses && !isTried
}

// neighbour returns the next neighbour that was not measured.
func (a *Alternating) neighbour(home standings.Standing) (search.Candidate, bool) {
	for _, c := range a.neighbours(home) {
		if a.isNew(c) {
			return c, true
		}
	}
	return search.Candidate{}, false
}

func (a *Alternating) isNew(c search.Candidate) bool {
	_, isBroken := a.ledger.PoolFailure(c)
	return !isBroken && len(a.ledger.Points(c)) == 0
}

// move is a configuration that differs from home in one model.
type move struct {
	search.Candidate
	changes int // knobs
	turn    int // place of the model, the one whose limit is missed first is 0
	far     int // steps in the lists of values
}

// neighbours lists the configurations that differ from home in a few knobs of one model, or of the server:
// first those with fewer changes, then those of the model that limits, then the nearest values.
func (a *Alternating) neighbours(home standings.Standing) []search.Candidate {
	var moves []move
	seen := map[string]bool{home.Candidate.Key(): true}
	space, base := a.settings.Space, a.inSpace(home.Candidate)
	isolation := space.Value(base, search.KnobIsolation)
	for turn, part := range a.turns(home) {
		own := base.Of(part.Model)
		for _, m := range movesOf(part.Space, own) {
			m.Candidate, m.turn = space.Joined(base, part.Model, m.Candidate), turn
			// a server that shares its cores is the same with and without the setting
			isSame := part.Model == "" && space.Value(m.Candidate, search.KnobIsolation) == isolation
			if key := m.Key(); !seen[key] && !isSame {
				seen[key] = true
				moves = append(moves, m)
			}
		}
	}
	slices.SortStableFunc(moves, func(x, y move) int {
		return cmp.Or(x.changes-y.changes, x.far-y.far, x.turn-y.turn)
	})
	list := make([]search.Candidate, len(moves))
	for i, m := range moves {
		list[i] = m.Candidate
	}
	return list
}

// inSpace returns a configuration with cores divided as the space allows: the default shares them, also where the
// space does not.
func (a *Alternating) inSpace(c search.Candidate) search.Candidate {
	space := a.settings.Space
	for _, k := range space.Server {
		if n := len(k.Values); n > 0 && !slices.Contains(k.Values, space.Value(c, k.Name)) {
			middle := search.Setting{Knob: k.Name, Value: k.Values[n/2]}
			c = space.Joined(c, "", search.NewCandidate(middle))
		}
	}
	return c
}

// turns lists the models. The one whose limits are missed at the lowest load above home's comes first.
// The server's own knobs are a part without a name, the last one.
func (a *Alternating) turns(home standings.Standing) []search.Part {
	parts := slices.Clone(a.settings.Space.Parts)
	if server := a.settings.Space.Server; len(server) > 0 {
		parts = append(parts, search.Part{Space: search.Space{Knobs: server}})
	}
	at := map[string]float64{}
	for _, p := range a.ledger.Points(home.Candidate) {
		for _, m := range p.Misses {
			model, _ := m.Constraint.Metric.Split()
			if known, ok := at[model]; !ok || p.Level < known {
				at[model] = p.Level
			}
		}
	}
	level := func(p search.Part) float64 {
		if l, ok := at[p.Model]; ok {
			return l
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(parts, func(x, y search.Part) int { return cmp.Compare(level(x), level(y)) })
	return parts
}

// movesOf lists the configurations of a model that differ from its own in a few knobs. An own
// configuration that sets not all knobs is completed with the default's values, or the first ones.
func movesOf(space search.Space, own search.Candidate) []move {
	at := make([]int, len(space.Knobs))
	for i, k := range space.Knobs {
		at[i] = max(slices.Index(k.Values, space.Value(own, k.Name)), 0)
	}
	var list []move
	var turn func(k, changes, far int, values []int)
	turn = func(k, changes, far int, values []int) {
		if k == len(space.Knobs) {
			if c, illegal := space.Canonical(candidateAt(space, values)); illegal == "" {
				list = append(list, move{Candidate: c, changes: changes, far: far})
			}
			return
		}
		for v := range space.Knobs[k].Values {
			distance := max(v-at[k], at[k]-v)
			if distance > 0 && changes >= farthest {
				continue
			}
			next := slices.Clone(values)
			next[k] = v
			turn(k+1, changes+min(distance, 1), far+distance, next)
		}
	}
	turn(0, 0, 0, make([]int, len(space.Knobs)))
	return list
}

// candidateAt returns the candidate with the values at the given places.
func candidateAt(space search.Space, values []int) search.Candidate {
	var settings []search.Setting
	for i, k := range space.Knobs {
		settings = append(settings, search.Setting{Knob: k.Name, Value: k.Values[values[i]]})
	}
	return search.NewCandidate(settings...)
}
