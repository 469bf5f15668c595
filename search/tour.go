package search

import (
	"fmt"
	"math"
)

// Tour is the part that strategies share: it goes through a list of candidates and seeks the best load of each, passing
// over those whose engine process is known not to start. It reads the ledger that its owner writes: the owner adds each
// event there before it tells the tour.
type Tour struct {
	settings Settings
	ledger   *Ledger
	phase    Phase
	todo     []Candidate // the first is the current one
	skipped  foldCounter
}

// NewTour returns a tour through candidates in their order. A default tour (PhaseDefault) has no leader to beat: the
// default's best load is what everything else is compared with.
func NewTour(s Settings, l *Ledger, phase Phase, candidates []Candidate) *Tour {
	t := &Tour{settings: s, ledger: l, phase: phase, todo: candidates, skipped: foldCounter{at: map[string]int{}}}
	t.advance()
	return t
}

// Ask returns the next load of the current candidate.
func (t *Tour) Ask() Action {
	if len(t.todo) == 0 {
		return Action{Stop: true, Why: "every candidate was tried"}
	}
	step, _ := t.step()
	return Action{Trial: t.settings.Trial(t.todo[0], step.Level, t.phase), Why: step.Why}
}

// Tell goes on to the next candidate when the current one's best load is found.
func (t *Tour) Tell(Event) { t.advance() }

// Remaining is the number of candidates whose best load is not found yet.
func (t *Tour) Remaining() int { return len(t.todo) }

// Skipped says which candidates were passed over, by reason.
func (t *Tour) Skipped() []Fold { return t.skipped.list }

// Ranked is the ledger's order: a tour knows no more of the configurations than what was measured.
func (t *Tour) Ranked() []Standing { return t.ledger.Ranked() }

// advance drops candidates that are finished or hopeless.
func (t *Tour) advance() {
	for ; len(t.todo) > 0; t.todo = t.todo[1:] {
		c := t.todo[0]
		reason, broken := t.ledger.PoolFailure(c)
		if !broken {
			if _, more := t.step(); more {
				return
			}
		} else if len(t.ledger.Points(c)) == 0 {
			t.skipped.add(fmt.Sprintf("the engine does not start with %s: %s", c.PoolKey(), reason), "", 1)
		}
	}
}

func (t *Tour) step() (Step, bool) {
	c, s := t.todo[0], t.settings
	lead := t.ledger.Lead()
	if t.phase == PhaseDefault {
		lead = math.Inf(-1)
	}
	return Seek{Axis: s.Space.Load, Goal: s.Goal, Knee: s.Space.Knee(c)}.Next(t.ledger.Points(c), lead)
}

// Trial is one window of a candidate at a level of the load axis.
func (s Settings) Trial(c Candidate, level float64, phase Phase) Trial {
	return Trial{Candidate: c, Load: s.Space.Load.At(level), Windows: 1, Window: s.Window, Phase: phase}
}
