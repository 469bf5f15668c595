package search

import (
	"fmt"
	"math"
)

// Tour is the part that strategies share: it goes through candidates one by one and seeks the best load of each, passing
// over those whose engine process is known not to start. It reads the ledger that its owner writes: the owner adds each
// event there before it tells the tour.
type Tour struct {
	settings Settings
	ledger   *Ledger
	phase    Phase
	current  Candidate
	ended    bool
	next     func() (Candidate, bool)
	left     int // candidates that are not done, as far as known
	skipped  foldCounter
}

// NewTour returns a tour through candidates in their order. A default tour (PhaseDefault) has no leader to beat: the
// default's best load is what everything else is compared with.
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

// NewLazyTour is NewTour with candidates that are made when it is their turn: next takes the next one, or says that there is none. There
// are about so many.
func NewLazyTour(s Settings, l *Ledger, phase Phase, about int, next func() (Candidate, bool)) *Tour {
	first, ok := next()
	t := &Tour{settings: s, ledger: l, phase: phase, current: first, ended: !ok, next: next, left: about, skipped: foldCounter{at: map[string]int{}}}
	t.advance()
	return t
}

// turn goes on to the next candidate.
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

// Tell goes on to the next candidate when the current one's best load is found.
func (t *Tour) Tell(Event) { t.advance() }

// Remaining is the number of candidates whose best load is not found yet.
func (t *Tour) Remaining() int {
	if t.ended {
		return 0
	}
	return max(t.left, 1)
}

// Skipped says which candidates were passed over, by reason.
func (t *Tour) Skipped() []Fold { return t.skipped.list }

// advance drops candidates that are finished or hopeless.
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

// Trial is one window of a candidate at a level of the load axis.
func (s Settings) Trial(c Candidate, level float64, phase Phase) Trial {
	return Trial{Candidate: c, Load: s.Space.Load.At(level), Windows: 1, Window: s.Window, Phase: phase}
}
