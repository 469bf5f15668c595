// Package race decides which candidates of an ONNX Runtime session to measure next, and when the
// answer is known. It races candidates against each other and the default in rounds of short
// windows. It drops hopeless ones early, and confirms the best on fresh launches
// (docs/design/ortsweep.md).
//
// It is pure: no clock, no I/O, no global randomness. The next trial is a function of settings,
// seed and outcomes. Package ortsweep measures the trials.
package race

import (
	"fmt"
	"math/rand/v2"
	"time"

	"tuner/measure/stats"
	"tuner/search"
)

// Settings has everything on which a race depends.
type Settings struct {
	// Knobs are the knobs that may change, with their values. An unset knob counts as one more
	// value.
	Knobs []search.Knob
	// Canonical returns the candidate that stands for another one with the same session, or the
	// reason why a candidate is left out.
	Canonical func(search.Candidate) (c search.Candidate, out string)
	// HigherBetter means that larger figures are better.
	HigherBetter bool
	Budget       time.Duration // 0: none
	Window       time.Duration // shortest window
	Seed         uint64
}

// Phase is the part of a race that a trial belongs to.
type Phase string

// The phases, in their order.
const (
	PhaseScreen  Phase = "screen"  // one block of knobs at a time, around the best candidate so far
	PhaseProduct Phase = "product" // combinations of the knobs that mattered
	PhaseFinal   Phase = "final"   // default and finalists in turn, on fresh launches
)

// Trial is one window to measure.
type Trial struct {
	Candidate search.Candidate `json:"candidate"`
	Window    time.Duration    `json:"window"`
	// all engines are stopped before it, since it begins a round on fresh launches
	Fresh bool  `json:"fresh,omitempty"`
	Phase Phase `json:"phase"`
	Heat  int   `json:"heat"`  // from 1
	Round int   `json:"round"` // from 1 in each heat
}

// Outcome is the outcome of a trial: a figure, or the reason why it is missing.
type Outcome struct {
	Value    float64       `json:"value,omitempty"` // > 0 unless Failure is set
	Failure  string        `json:"failure,omitempty"`
	Withheld float64       `json:"withheld,omitempty"` // CPU time that others took from the window (measure.Withheld)
	Elapsed  time.Duration `json:"elapsed"`            // from the race's start to the trial's end
}

// Action is the next action: a trial, or to stop.
type Action struct {
	Trial Trial
	Stop  bool
	Why   string // reason in a few words, for people
}

// Shares of the budget. The finals get finalShare. They get more, up to mostFinalShare, if the
// minimum number of rounds of default and winner needs it. Screening gets screenShare of the rest.
const (
	finalShare     = 0.35
	mostFinalShare = 0.6
	screenShare    = 0.7
)

// directly is the largest number of candidates that race at once, without screening.
const directly = 16

// Race is one race. It is not safe for concurrent use.
type Race struct {
	settings Settings
	random   *rand.Rand
	costs    costs
	elapsed  time.Duration
	withheld stats.Variate // corrects all figures for CPU time that others took

	heats   []*heat // all heats so far, the current one last
	best    search.Candidate
	blocks  [][]block  // groups that are not screened yet
	changes [][]change // results of the screening, by block
	why     string     // reason why the race is over; "" while it runs
	broken  string     // reason why the default cannot be measured
	outs    []Out
	noted   map[string]bool // keys of outs

	isCut    bool // some settings were not screened for lack of time
	unproven bool // the budget ended before the answer was proven
	retried  bool // the default failed once after it had been measured
}

// Out is a candidate that was left out before the race, with the reason.
type Out struct {
	Candidate search.Candidate `json:"candidate"`
	Reason    string           `json:"reason"`
}

// New starts a race.
func New(s Settings) *Race {
	// the second word only separates it from other uses of the seed
	r := &Race{settings: s, random: rand.New(rand.NewPCG(s.Seed, 0x6f727473))}
	if all, whole := r.product(blocksOf(s.Knobs), directly); whole {
		r.begin(PhaseProduct, all, 1)
		return r
	}
	r.blocks = r.screens()
	r.nextGroup()
	return r
}

// Ask returns the next action. It changes nothing.
func (r *Race) Ask() Action {
	if r.why != "" {
		return Action{Stop: true, Why: r.why}
	}
	return Action{Trial: r.trial(), Why: string(r.heat().phase)}
}

// trial returns the next window of the current heat.
func (r *Race) trial() Trial {
	h := r.heat()
	e := h.entrants[h.order[h.next]]
	return Trial{Candidate: e.candidate, Window: h.window(r.settings.Window), Fresh: h.phase == PhaseFinal && h.next == 0, Phase: h.phase,
		Heat: len(r.heats), Round: h.round + 1}
}

func (r *Race) heat() *heat { return r.heats[len(r.heats)-1] }

// Tell reports the outcome of the trial that Ask named.
func (r *Race) Tell(o Outcome) {
	if r.why != "" {
		return
	}
	h := r.heat()
	r.costs.addCost(r.needAt(h, h.next), o.Elapsed-r.elapsed-h.window(r.settings.Window))
	r.elapsed = o.Elapsed
	e := h.entrants[h.order[h.next]]
	if o.Failure != "" && e.candidate.IsDefault() && !r.retried && r.measured(e.candidate) {
		r.retried = true // one bad window must not end a whole race
		return
	}
	e.tell(o, r.settings.HigherBetter)
	r.correct()
	if e.failure != "" && e.candidate.IsDefault() {
		r.broken = e.failure
		r.why = "the default cannot be measured: " + e.failure
		return
	}
	h.next++
	if h.next < len(h.order) {
		if r.late(h) { // rounds must not be mixed, so an incomplete one is the last
			r.endHeat(h)
		}
		return
	}
	h.round++
	h.judge()
	h.shuffle(r.random)
	if h.over() || r.late(h) {
		r.endHeat(h)
	}
}

// late reports whether the heat's time is over, or whether the next step would end after the
// budget.
func (r *Race) late(h *heat) bool {
	limit := r.settings.Budget
	if limit == 0 {
		return false
	}
	window, cost := h.window(r.settings.Window), time.Duration(0)
	end := len(h.order) // a round begins only if it fits completely, since a part of it has no information
	if h.next > 0 {
		end = h.next + 1
	}
	for at := h.next; at < end; at++ {
		cost += r.costs.expect(r.needAt(h, at), window)
	}
	return r.elapsed+cost > h.deadline && h.round > 0 || r.elapsed+cost > limit
}

// hasTime reports whether one round of the default and candidates fits into the time of a phase.
func (r *Race) hasTime(phase Phase, candidates []search.Candidate) bool {
	if r.settings.Budget == 0 {
		return true
	}
	cost := r.costs.expect(r.need(search.Candidate{}), r.settings.Window)
	for _, c := range candidates {
		if !c.IsDefault() {
			cost += r.costs.expect(r.need(c), r.settings.Window)
		}
	}
	return r.elapsed+cost <= r.phaseEnd(phase)
}

// measured reports whether a candidate was measured before.
func (r *Race) measured(c search.Candidate) bool {
	for _, h := range r.heats {
		if h.hasFigure(c) {
			return true
		}
	}
	return false
}

// begin starts a heat of the default and candidates. share is the part of its phase's time after
// which it must be over.
func (r *Race) begin(phase Phase, candidates []search.Candidate, share float64) {
	h := newHeat(phase, candidates)
	h.deadline = time.Duration(share * float64(r.phaseEnd(phase)))
	if phase == PhaseFinal {
		h.length = r.finalLength(candidates)
	}
	h.shuffle(r.random)
	r.heats = append(r.heats, h)
}

// phaseEnd returns the time at which a phase must be over, since the race's start.
func (r *Race) phaseEnd(phase Phase) time.Duration {
	budget := float64(r.settings.Budget)
	needed := fewestFinals * r.finalRound(finalWindow*r.settings.Window, []search.Candidate{r.best})
	finals := min(max(finalShare*budget, float64(needed)), mostFinalShare*budget)
	switch phase {
	case PhaseScreen:
		return time.Duration(screenShare * (budget - finals))
	case PhaseProduct:
		return time.Duration(budget - finals)
	}
	return r.settings.Budget
}

// endHeat evaluates a heat and begins the next one.
func (r *Race) endHeat(h *heat) {
	switch h.phase {
	case PhaseScreen:
		r.isCut = r.isCut || h.round < firstJudged && h.isOpen()
		r.learn(h)
		r.nextGroup()
	case PhaseProduct:
		if lead := h.leader(); lead != nil {
			r.best = lead.candidate
		}
		r.beginFinals(h)
	case PhaseFinal:
		again := r.unheard()
		if h.winner().candidate.IsDefault() && !h.isOpen() && len(again) > 0 {
			r.begin(PhaseFinal, again, 1)
			if !r.late(r.heat()) {
				return
			}
			r.heats = r.heats[:len(r.heats)-1]
		}
		r.finish(h, h.isOpen() || len(again) > 0)
	}
}

// finish ends the race with a heat's result. isOpen means that more time might have changed it.
// Then, or if screening was cut short, the default is no answer, but only the rest without an
// answer.
func (r *Race) finish(h *heat, isOpen bool) {
	r.why = h.verdictText()
	if r.unproven = (isOpen || r.isCut) && h.winner().candidate.IsDefault(); !r.unproven {
		return
	}
	r.why = fmt.Sprintf("the budget of %v was too short to find out whether anything beats the default", r.settings.Budget)
	if h.phase == PhaseFinal && h.isOpen() {
		r.why = fmt.Sprintf("the budget of %v ended in round %d of the finals, too early to prove a gain over the default", r.settings.Budget, h.round+1)
	}
}
