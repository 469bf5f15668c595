// Package standings keeps what a campaign has measured so far: each load of a configuration, judged by
// the goal (Point), each configuration at its best load (Ledger), and what a constraint costs
// (Tradeoffs). It stands between package search and the strategies, which read it. It decides nothing.
package standings

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
)

// Point is the result of one load of a configuration, judged by the goal.
type Point struct {
	Level   float64       // on the load axis
	Score   float64       // 0 unless Scored
	Scored  bool          // the measurement has every metric of the objective
	Misses  []search.Miss // the constraints that it misses
	IsLate  bool          // no answer came within the limit of a goodput in the objective
	IsEmpty bool          // by chance, no request of an open loop came, so the point tells nothing
	Failure *measure.Failure
}

// Judge applies the goal to a measurement at a load.
func Judge(g search.Goal, load measure.Load, m measure.Measurement) Point {
	score, ok := g.Score(m)
	misses := g.Misses(m)
	isUnknown := !ok || slices.ContainsFunc(misses, func(x search.Miss) bool { return x.Missing })
	return Point{
		Level: load.Level(), Score: score, Scored: ok, Misses: misses, Failure: m.Failure,
		IsLate: !ok && isLate(g, m), IsEmpty: isUnknown && m.IsEmpty(load),
	}
}

// isLate reports whether a goodput of the objective is 0.
func isLate(g search.Goal, m measure.Measurement) bool {
	return slices.ContainsFunc(g.Objective.Terms, func(t search.Term) bool {
		value, isKnown := m.Value(t.Metric)
		return t.Metric.IsGoodput() && isKnown && value == 0
	})
}

// Passes reports whether the point has a score and satisfies every constraint.
func (p Point) Passes() bool { return p.Scored && len(p.Misses) == 0 }

// Violation returns the sum of the relative amounts by which constraints are missed.
func (p Point) Violation() float64 {
	sum := 0.0
	for _, m := range p.Misses {
		sum += m.Violation
	}
	return sum
}

// Better orders points: first passing ones by score, then failing ones by violation, then those
// without a score.
func (p Point) Better(q Point) bool {
	switch {
	case p.Passes() != q.Passes():
		return p.Passes()
	case p.Passes():
		return p.Score > q.Score
	case p.Scored != q.Scored:
		return p.Scored
	}
	return p.Violation() < q.Violation()
}

// Standing is a configuration at its best load so far: the best within the constraints, else the
// nearest to them.
type Standing struct {
	Candidate   search.Candidate
	Load        measure.Load
	Point       Point
	Measurement measure.Measurement
}

// Ledger holds a campaign's results so far, by configuration. It is for one goroutine.
type Ledger struct {
	goal    search.Goal
	entries map[string]*entry // by candidate key
	order   []*entry          // as first measured
	leader  *entry            // nil while no configuration passes
	pools   map[string]string // reason why a pool's engine process does not start

	tradeoffs Tradeoffs
}

type entry struct {
	best   Standing
	points []Point // in the order of the trials
}

// NewLedger returns an empty ledger. The goal judges its points.
func NewLedger(g search.Goal) *Ledger {
	return &Ledger{goal: g, entries: map[string]*entry{}, pools: map[string]string{}}
}

// Add records the outcome of a trial. A service trial adds no point to its configuration. It counts
// only if the pool's engine process does not start.
func (l *Ledger) Add(e search.Event) {
	c := e.Trial.Candidate
	if f := e.Measurement.Failure; f != nil && f.Stage == measure.StageStart {
		l.pools[c.PoolKey()] = f.Reason
	}
	if e.Trial.Phase == search.PhaseService {
		return
	}
	now := Standing{c, e.Trial.Load, Judge(l.goal, e.Trial.Load, e.Measurement), e.Measurement}
	known, ok := l.entries[c.Key()]
	if !ok {
		known = &entry{best: now}
		l.entries[c.Key()] = known
		l.order = append(l.order, known)
	}
	known.points = append(known.points, now.Point)
	l.tradeoffs = l.tradeoffs.Add(now)
	if now.Point.Better(known.best.Point) {
		known.best = now
	}
	if known.best.Point.Passes() && (l.leader == nil || known.best.Point.Better(l.leader.best.Point)) {
		l.leader = known
	}
}

// MissesMemory reports whether the last trial of a configuration misses a limit on memory, which no load
// cures.
func (l *Ledger) MissesMemory(c search.Candidate) bool {
	points := l.Points(c)
	return len(points) > 0 && slices.ContainsFunc(points[len(points)-1].Misses, func(m search.Miss) bool { return search.IsMemory(m.Constraint.Metric) })
}

// Points returns the points of a configuration in the order of its trials; the caller must not
// change them.
func (l *Ledger) Points(c search.Candidate) []Point {
	if known, ok := l.entries[c.Key()]; ok {
		return known.points
	}
	return nil
}

// Best returns a configuration at its best load; false if it was not measured.
func (l *Ledger) Best(c search.Candidate) (Standing, bool) {
	if known, ok := l.entries[c.Key()]; ok {
		return known.best, true
	}
	return Standing{}, false
}

// Leader returns the best configuration within the constraints so far; false without one.
func (l *Ledger) Leader() (Standing, bool) {
	if l.leader == nil {
		return Standing{}, false
	}
	return l.leader.best, true
}

// Lead returns the leader's score; -Inf without a leader.
func (l *Ledger) Lead() float64 {
	if l.leader == nil {
		return math.Inf(-1)
	}
	return l.leader.best.Point.Score
}

// Ranked lists the measured configurations from best to worst, equal ones in the order of their
// first trials.
func (l *Ledger) Ranked() []Standing {
	ranked := make([]Standing, len(l.order))
	for i, e := range l.order {
		ranked[i] = e.best
	}
	slices.SortStableFunc(ranked, func(a, b Standing) int {
		switch {
		case a.Point.Better(b.Point):
			return -1
		case b.Point.Better(a.Point):
			return 1
		}
		return 0
	})
	return ranked
}

// Len returns the number of configurations that were tried.
func (l *Ledger) Len() int { return len(l.order) }

// PoolFailure returns the reason why the engine process of a candidate's pool does not start; false
// if it is unknown.
func (l *Ledger) PoolFailure(c search.Candidate) (string, bool) {
	reason, ok := l.pools[c.PoolKey()]
	return reason, ok
}
