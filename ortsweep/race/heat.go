package race

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tuner/measure/stats"
	"tuner/search"
)

// A heat's decision rules. docs/design/ortsweep.md explains them.
const (
	// surely: an entrant is dropped if the whole interval of its ratio to the leader is below this
	surely        = 0.99
	farBehind     = 0.80 // an entrant is dropped if both of its first two ratios are below this
	hardlyBetter  = 1.02 // a challenger whose interval ends below this needs no further rounds
	clearlyBetter = 1.05 // a finalist whose interval begins above this has won
	// precisely: a finalist's gain is known if the ratio of its interval's ends is below this
	precisely   = 1.04
	firstJudged = 3 // rounds before intervals are used
)

// The largest number of rounds of a heat, and the smallest of the finals. With more than two
// finalists the latter is the planned number.
const (
	screenRounds  = 6
	productRounds = 10
	finalRounds   = 12
	fewestFinals  = 5
	manyFinals    = 8
)

// finalWindow is the largest length of a finals window, in shortest windows. growth is the factor
// by which other heats' windows grow from round to round, up to mostGrowth.
const (
	finalWindow = 4
	growth      = 0.25
	mostGrowth  = 3
)

// entrant is a candidate in one heat.
type entrant struct {
	candidate search.Candidate
	measured  []float64     // figures by round
	withheld  []float64     // CPU time that others took from their windows (measure.Withheld)
	values    []float64     // figures after the correction for it
	scores    []float64     // the same with "larger is better": a latency's reciprocal
	variate   stats.Variate // the variate of the correction
	out       string        // reason why it left the heat; "" while it is in
	failure   string        // reason why it has no figure; it is then out
}

func (e *entrant) tell(o Outcome, higherBetter bool) {
	if o.Failure != "" || !(o.Value > 0) || math.IsInf(o.Value, 0) {
		e.failure = o.Failure
		if e.failure == "" {
			e.failure = fmt.Sprintf("the figure %g is not a measurement", o.Value)
		}
		e.out = e.failure
		return
	}
	e.measured, e.withheld = append(e.measured, o.Value), append(e.withheld, o.Withheld)
	e.values, e.scores = append(e.values, o.Value), append(e.scores, score(o.Value, higherBetter))
}

// ratio estimates how many times better e is than other, from the rounds that both took part in.
func (e *entrant) ratio(other *entrant) stats.Estimate {
	return stats.Widen(stats.PairedRatio(e.scores, other.scores), e.doubt(other))
}

// heat is a race of a few candidates in rounds, with the default first.
type heat struct {
	phase    Phase
	entrants []*entrant // the default first
	deadline time.Duration
	length   time.Duration // window length of finals
	round    int           // number of complete rounds
	order    []int         // of the current round's entrants
	next     int           // index in order

	// screened has the blocks of a screening heat, with the candidate around which it screens, and
	// its design. The design is nil in a heat that races.
	screened []block
	from     search.Candidate
	design   *design
	promises promises // for a product after screening
}

func newHeat(phase Phase, candidates []search.Candidate) *heat {
	h := &heat{phase: phase, entrants: []*entrant{{}}}
	for _, c := range candidates {
		if !c.IsDefault() {
			h.entrants = append(h.entrants, &entrant{candidate: c})
		}
	}
	return h
}

// entrant returns a candidate's entrant, and nil if it is not in this heat.
func (h *heat) entrant(c search.Candidate) *entrant {
	for _, e := range h.entrants {
		if e.candidate.Key() == c.Key() {
			return e
		}
	}
	return nil
}

// hasFigure reports whether a candidate was measured in this heat.
func (h *heat) hasFigure(c search.Candidate) bool {
	e := h.entrant(c)
	return e != nil && len(e.scores) > 0
}

// rounds returns the largest number of rounds of the heat.
func (h *heat) rounds() int {
	return map[Phase]int{PhaseScreen: screenRounds, PhaseProduct: productRounds, PhaseFinal: finalRounds}[h.phase]
}

// window returns the window length of the current round.
func (h *heat) window(shortest time.Duration) time.Duration {
	if h.phase == PhaseFinal {
		return h.length
	}
	return time.Duration(math.Min(mostGrowth, 1+growth*float64(h.round)) * float64(shortest))
}

// shuffle sets the order of the next round. It is random. In the finals each second round has the
// reverse order of the one before, so that drift affects all entrants equally even in few rounds.
func (h *heat) shuffle(random *rand.Rand) {
	h.next, h.order = 0, nil
	for i, e := range h.entrants {
		if e.out == "" {
			h.order = append(h.order, i)
		}
	}
	if h.phase != PhaseFinal {
		random.Shuffle(len(h.order), func(i, j int) { h.order[i], h.order[j] = h.order[j], h.order[i] })
	} else if h.round%2 == 1 {
		slices.Reverse(h.order)
	}
}

// base returns the default's entrant.
func (h *heat) base() *entrant { return h.entrants[0] }

// challengers returns the entrants that are still in, without the default.
func (h *heat) challengers() []*entrant {
	var in []*entrant
	for _, e := range h.entrants[1:] {
		if e.out == "" && len(e.scores) > 0 {
			in = append(in, e)
		}
	}
	return in
}

// leader returns the best entrant so far, including the default; nil if nothing was measured.
func (h *heat) leader() *entrant {
	lead := h.base()
	if len(lead.scores) == 0 {
		return nil
	}
	best := 1.0
	for _, e := range h.challengers() {
		if g := h.ratio(e, h.base()).Value; g > best {
			lead, best = e, g
		}
	}
	return lead
}

// ratio estimates how many times better one entrant is than another. In the finals, which no
// entrant leaves, all entrants together determine the outlying windows. They do not determine the
// noise, since the default may be noisier than the others.
func (h *heat) ratio(e, other *entrant) stats.Estimate {
	in := h.racing()
	i, k := slices.Index(in, e), slices.Index(in, other)
	if h.phase != PhaseFinal || i < 0 || k < 0 {
		return e.ratio(other)
	}
	return stats.Widen(stats.NewBlocks(scores(in)).Paired(i, k), e.doubt(other))
}

// racing returns the default and the challengers.
func (h *heat) racing() []*entrant { return append([]*entrant{h.base()}, h.challengers()...) }

func scores(entrants []*entrant) [][]float64 {
	var list [][]float64
	for _, e := range entrants {
		list = append(list, e.scores)
	}
	return list
}

// judge drops hopeless entrants. Finals drop none, since their figures are reported. Designs drop
// none either, since their runs are no candidates.
func (h *heat) judge() {
	lead := h.leader()
	if lead == nil || h.phase == PhaseFinal || h.design != nil {
		return
	}
	for _, e := range h.challengers() {
		if e == lead {
			continue
		}
		ratio, n := e.ratio(lead), min(len(e.scores), len(lead.scores))
		switch {
		case n == 2 && e.scores[0] < farBehind*lead.scores[0] && e.scores[1] < farBehind*lead.scores[1]:
			e.out = fmt.Sprintf("far behind the leader after 2 windows: %s", percent(ratio.Value))
		case n >= firstJudged && ratio.Hi < surely:
			e.out = fmt.Sprintf("dropped after %d windows: %s (%s to %s) against the leader", len(e.scores), percent(ratio.Value),
				percent(ratio.Lo), percent(ratio.Hi))
		}
	}
}

// over reports whether further rounds are not allowed, or would not change the heat's outcome.
func (h *heat) over() bool {
	in := h.challengers()
	if len(in) == 0 || h.round >= h.rounds() {
		return true
	}
	switch {
	case h.design != nil:
		return false
	case h.phase == PhaseFinal:
		return h.round >= fewestFinals && h.answered(in)
	}
	return h.round >= firstJudged && h.settled(in)
}

// isOpen reports whether a heat that ran out of time has not answered its question. Either an
// entrant was not measured, or further rounds might have changed the outcome.
func (h *heat) isOpen() bool {
	isWaiting := func(e *entrant) bool { return e.out == "" && len(e.scores) == 0 }
	return slices.ContainsFunc(h.entrants, isWaiting) || !h.over()
}

// settled reports whether no remaining entrant can still be much better than the others.
func (h *heat) settled(in []*entrant) bool {
	lead := h.leader()
	for _, e := range in {
		against := lead
		if e == lead {
			against = h.base()
		}
		if ratio := e.ratio(against); ratio.Hi >= hardlyBetter && ratio.Lo <= 1 {
			return false
		}
	}
	return true
}

// answered reports whether the finals have answered for each finalist whether it beats the default.
// All gains that may be the best must also be precise. After few rounds the answer must be clear:
// testing after every round finds false answers more often than the interval says.
func (h *heat) answered(in []*entrant) bool {
	lead := h.leader()
	for _, e := range in {
		gain := h.ratio(e, h.base())
		if gain.Hi >= hardlyBetter && gain.Lo <= clearlyBetter {
			return false
		}
		if gain.Hi > precisely*gain.Lo && h.ratio(e, lead).Hi >= surely {
			return false
		}
	}
	return true
}

// winner returns the finals' answer. Among the entrants whose whole interval is above 1 it is the
// best, or the one within 1 % of it with the fewest settings. Without such entrants it is the
// default.
func (h *heat) winner() *entrant {
	best, gain := h.base(), 1.0
	for _, e := range h.proven() {
		if g := h.ratio(e, h.base()).Value; g > gain {
			best, gain = e, g
		}
	}
	simplest := best
	for _, e := range h.proven() {
		if e.isSimpler(simplest) && h.ratio(e, best).Value > surely {
			simplest = e
		}
	}
	return simplest
}

// provenRounds is the smallest number of pairs that proves a gain.
const provenRounds = 3

// proven returns the challengers that certainly beat the default.
func (h *heat) proven() []*entrant {
	var list []*entrant
	for _, e := range h.challengers() {
		if min(len(e.scores), len(h.base().scores)) >= provenRounds && h.ratio(e, h.base()).Lo > 1 {
			list = append(list, e)
		}
	}
	return list
}

// verdictText describes how the race ended.
func (h *heat) verdictText() string {
	if w := h.winner(); !w.candidate.IsDefault() {
		ratio := h.ratio(w, h.base())
		return fmt.Sprintf("%s beats the default by %s (%s to %s)", nameOf(w), percent(ratio.Value), percent(ratio.Lo), percent(ratio.Hi))
	}
	return "nothing beats the default beyond doubt: leave every setting as it is"
}

// interruptedText describes what was known when the race was interrupted.
func (h *heat) interruptedText() string {
	if h.winner().candidate.IsDefault() {
		return "interrupted before anything was proven"
	}
	return "interrupted: " + h.verdictText() + ", not confirmed on fresh launches"
}

// percent prints a ratio as a change: 1.5 is +50.0 %.
func percent(ratio float64) string { return fmt.Sprintf("%+.1f %%", 100*(ratio-1)) }

func nameOf(e *entrant) string {
	if e.candidate.IsDefault() {
		return "the default"
	}
	return e.candidate.Key()
}
