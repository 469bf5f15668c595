// Package tour visits the configurations of a space one after the other, and seeks the best load of
// each (Seek). It stands between package search, whose values it reads, and the strategies that are
// made of tours. It does not choose the configurations, and it measures nothing.
package tour

import (
	"fmt"
	"math"

	"tuner/search"
	"tuner/search/standings"
)

// Tour is the common part of strategies. It visits candidates one by one and seeks the best load of
// each. It skips those whose engine process is known not to start. It reads the ledger of its
// owner, who adds each event there before calling Tell.
type Tour struct {
	settings search.Settings
	ledger   *standings.Ledger
	phase    search.Phase
	current  search.Candidate
	ended    bool
	next     func() (search.Candidate, bool)
	left     int // known number of candidates that are not done
	skipped  search.Folds
}

// New returns a tour through candidates in their order. A default tour (search.PhaseDefault) has no
// leader to beat: all others are compared with the default's best load.
func New(s search.Settings, l *standings.Ledger, phase search.Phase, candidates []search.Candidate) *Tour {
	left := candidates
	return NewLazy(s, l, phase, len(candidates), func() (search.Candidate, bool) {
		if len(left) == 0 {
			return search.Candidate{}, false
		}
		first := left[0]
		left = left[1:]
		return first, true
	})
}

// NewLazy is New with candidates that are made on demand. next returns the next one; false at the
// end. about is their approximate number.
func NewLazy(s search.Settings, l *standings.Ledger, phase search.Phase, about int, next func() (search.Candidate, bool)) *Tour {
	first, ok := next()
	t := &Tour{settings: s, ledger: l, phase: phase, current: first, ended: !ok, next: next, left: about}
	t.advance()
	return t
}

// turn moves to the next candidate.
func (t *Tour) turn() {
	c, ok := t.next()
	t.current, t.ended, t.left = c, !ok, t.left-1
}

// Ask returns the next load of the current candidate.
func (t *Tour) Ask() search.Action {
	if t.ended {
		return search.Action{Stop: true, Why: "every candidate was tried"}
	}
	step, _ := t.step()
	return search.Action{Trial: t.settings.Trial(t.current, step.Level, t.phase), Why: step.Why}
}

// Tell moves to the next candidate once the current one's best load is found.
func (t *Tour) Tell(search.Event) { t.advance() }

// Remaining returns the number of candidates whose best load is not found yet.
func (t *Tour) Remaining() int {
	if t.ended {
		return 0
	}
	return max(t.left, 1)
}

// Skipped returns the number of skipped candidates by reason.
func (t *Tour) Skipped() []search.Fold { return t.skipped.List() }

// advance drops candidates that are finished or cannot lead.
func (t *Tour) advance() {
	for ; !t.ended; t.turn() {
		reason, broken := t.ledger.PoolFailure(t.current)
		if !broken {
			if _, more := t.step(); more {
				return
			}
		} else if len(t.ledger.Points(t.current)) == 0 {
			t.skipped.Add(fmt.Sprintf("the engine does not start with %s: %s", t.current.PoolKey(), reason), "", 1)
		}
	}
}

func (t *Tour) step() (Step, bool) {
	s := t.settings
	lead := t.ledger.Lead()
	if t.phase == search.PhaseDefault {
		lead = math.Inf(-1)
	}
	return Seek{Axis: s.Space.Load, Goal: s.Goal, Knee: s.Space.Knee(t.current)}.Next(t.ledger.Points(t.current), lead)
}
