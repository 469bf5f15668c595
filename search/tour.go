package search

import (
	"fmt"
	"math"
)

// Tour is the common part of strategies. It visits candidates one by one and seeks the best load of
// each. It skips those whose engine process is known not to start. It reads the ledger of its
// owner, who adds each event there before calling Tell.
type Tour struct {
	settings Settings
	ledger   *Ledger
	phase    Phase
	current  Candidate
	ended    bool
	next     func() (Candidate, bool)
	left     int // known number of candidates that are not done
	skipped  foldCounter
}

// NewTour returns a tour through candidates in their order. A default tour (PhaseDefault) has no
// leader to beat: all others are compared with the default's best load.
func NewTour(s Settings, l *Ledger, phase Phase, candidates []Candidate) *Tour {
	left := candidates
	return NewLazyTour(s, l, phase, len(candidates), func() (Candidate, bool) {
		if len(left) == 0 {
			return Candidate{}, false
		}
		first := left[0]
		left = left[1:]
		return first, true
	})
}

// NewLazyTour is NewTour with candidates that are made on demand. next returns the next one; false
// at the end. about is their approximate number.
func NewLazyTour(s Settings, l *Ledger, phase Phase, about int, next func() (Candidate, bool)) *Tour {
	first, ok := next()
	t := &Tour{settings: s, ledger: l, phase: phase, current: first, ended: !ok, next: next, left: about, skipped: foldCounter{at: map[string]int{}}}
	t.advance()
	return t
}

// turn moves to the next candidate.
func (t *Tour) turn() {
	c, ok := t.next()
	t.current, t.ended, t.left = c, !ok, t.left-1
}

// Ask returns the next load of the current candidate.
func (t *Tour) Ask() Action {
	if t.ended {
		return Action{Stop: true, Why: "every candidate was tried"}
	}
	step, _ := t.step()
	return Action{Trial: t.settings.Trial(t.current, step.Level, t.phase), Why: step.Why}
}

// Tell moves to the next candidate once the current one's best load is found.
func (t *Tour) Tell(Event) { t.advance() }

// Remaining returns the number of candidates whose best load is not found yet.
func (t *Tour) Remaining() int {
	if t.ended {
		return 0
	}
	return max(t.left, 1)
}

// Skipped returns the number of skipped candidates by reason.
func (t *Tour) Skipped() []Fold { return t.skipped.list }

// advance drops candidates that are finished or cannot lead.
func (t *Tour) advance() {
	for ; !t.ended; t.turn() {
		reason, broken := t.ledger.PoolFailure(t.current)
		if !broken {
			if _, more := t.step(); more {
				return
			}
		} else if len(t.ledger.Points(t.current)) == 0 {
			t.skipped.add(fmt.Sprintf("the engine does not start with %s: %s", t.current.PoolKey(), reason), "", 1)
		}
	}
}

func (t *Tour) step() (Step, bool) {
	s := t.settings
	lead := t.ledger.Lead()
	if t.phase == PhaseDefault {
		lead = math.Inf(-1)
	}
	return Seek{Axis: s.Space.Load, Goal: s.Goal, Knee: s.Space.Knee(t.current)}.Next(t.ledger.Points(t.current), lead)
}

// Trial returns a trial with one window of a candidate at a level of the load axis.
func (s Settings) Trial(c Candidate, level float64, phase Phase) Trial {
	return Trial{Candidate: c, Load: s.Space.Load.At(level), Windows: 1, Window: s.Window, Phase: phase}
}
