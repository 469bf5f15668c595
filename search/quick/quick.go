// Package quick is Model Analyzer's quick search, the baseline for other strategies. It is a hill
// climb over max_batch_size and instance_count at the load 2 · max_batch_size · instance_count. The
// values of max_batch_size are powers of two, or those of the space. A search for the best loads of
// the three best configurations follows. It searches no other knob: each stays at its first legal
// value.
//
// It differs from the original in three points:
//   - The space's values bound both dimensions.
//   - A folded combination counts as a failed measurement without costing a trial, and the climb
//     begins at the first one that is not folded.
//   - The sweep at the end seeks the best load within the constraints. The original measures 1, 2,
//     4, 8 clients whatever the results.
package quick

import (
	"tuner/search"
	"tuner/search/standings"
	"tuner/search/tour"
)

// finalists is the number of configurations of the climb whose best load is sought.
const finalists = 3

// Quick is the strategy. It reads the ledger that its owner writes.
type Quick struct {
	settings search.Settings
	ledger   *standings.Ledger
	climb    *climb
	measured []search.Candidate // by the climb, in its order
	sweep    *tour.Tour         // nil before the climb is done
}

// New returns the strategy for the candidates of the settings' space.
func New(s search.Settings, l *standings.Ledger, candidates *search.Candidates) *Quick {
	q := &Quick{settings: s, ledger: l}
	t, ok := newTerrain(s.Space, candidates)
	if !ok {
		q.sweep = tour.New(s, l, search.PhaseSearch, nil)
		return q
	}
	q.climb = newClimb(t, s.Goal.Objective)
	q.skipKnown()
	return q
}

// Ask returns the climb's next coordinate at its load, then the sweep's loads.
func (q *Quick) Ask() search.Action {
	if q.sweep != nil {
		next := q.sweep.Ask()
		if next.Stop && q.climb != nil {
			next.Why = "the hill climb has ended, and the best loads of its best configurations are found"
		}
		return next
	}
	c, _ := q.climb.terrain.candidate(q.climb.at)
	return search.Action{
		Trial: q.settings.Trial(c, q.climb.terrain.level(c), search.PhaseSearch),
		Why:   "hill climb",
	}
}

// Tell moves the climb on if its coordinate was measured.
func (q *Quick) Tell(e search.Event) {
	if q.sweep != nil {
		q.sweep.Tell(e)
		return
	}
	q.skipKnown()
}

// Remaining estimates the number of configurations that are not measured yet. A climb usually takes
// a dozen trials.
func (q *Quick) Remaining() int {
	if q.sweep != nil {
		return q.sweep.Remaining()
	}
	const typical = 12
	return max(typical-len(q.measured), 1) + finalists
}

// Skipped returns the skipped candidates by reason.
func (q *Quick) Skipped() []search.Fold {
	if q.sweep == nil {
		return nil
	}
	return q.sweep.Skipped()
}

// skipKnown feeds the climb with results from the ledger, until it needs a trial or is done.
func (q *Quick) skipKnown() {
	for !q.climb.done {
		r, known := q.lookUp(q.climb.at)
		if !known {
			return
		}
		q.climb.learn(r)
	}
	if q.sweep == nil {
		q.sweep = tour.New(q.settings, q.ledger, search.PhaseSearch, q.best())
	}
}

// lookUp returns the result at a coordinate; false if it is not measured yet.
func (q *Quick) lookUp(at coordinate) (result, bool) {
	c, legal := q.climb.terrain.candidate(at)
	if !legal {
		return result{}, true
	}
	level := q.climb.terrain.level(c)
	for _, p := range q.ledger.Points(c) {
		if p.Level == level {
			q.remember(c)
			return result{p, p.Failure == nil}, true
		}
	}
	_, broken := q.ledger.PoolFailure(c)
	return result{}, broken
}

func (q *Quick) remember(c search.Candidate) {
	for _, known := range q.measured {
		if known.Key() == c.Key() {
			return
		}
	}
	q.measured = append(q.measured, c)
}

// best returns the climb's best configurations.
func (q *Quick) best() []search.Candidate {
	climbed := map[string]bool{}
	for _, c := range q.measured {
		climbed[c.Key()] = true
	}
	var best []search.Candidate
	for _, standing := range q.ledger.Ranked() {
		if c := standing.Candidate; climbed[c.Key()] && len(best) < finalists {
			best = append(best, c)
		}
	}
	return best
}
