package race

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tuner/search"
	"tuner/stats"
)

// How a heat judges; docs/design/ortsweep.md says why.
const (
	surely        = 0.99 // dropped when the whole interval of the ratio to the leader is below
	farBehind     = 0.80 // dropped when both of the first two ratios are below
	hardlyBetter  = 1.02 // a challenger whose interval ends below need not be measured further
	clearlyBetter = 1.05 // a finalist whose interval begins above has won
	firstJudged   = 3    // rounds before intervals say anything
)

// The most rounds of a heat, and the fewest of the finals.
const (
	screenRounds  = 6
	productRounds = 10
	finalRounds   = 12
	fewestFinals  = 5
)

// finalWindow is how many times the shortest window a window of the finals lasts; growth is by how much those of a heat
// grow from round to round, up to mostGrowth.
const (
	finalWindow = 4
	growth      = 0.25
	mostGrowth  = 3
)

// entrant is a candidate in one heat.
type entrant struct {
	candidate search.Candidate
	values    []float64 // figures, by round
	scores    []float64 // the same as "larger is better": a latency's reciprocal
	out       string    // why it is out of the heat; "" while it is in
	failure   string    // why it yielded no figure; then it is out
}

func (e *entrant) tell(o Outcome, higherBetter bool) {
	if o.Failure != "" || !(o.Value > 0) || math.IsInf(o.Value, 0) {
		e.failure = o.Failure
		if e.failure == "" {
			e.failure = fmt.Sprintf("the figure %g is no measurement", o.Value)
		}
		e.out = e.failure
		return
	}
	e.values = append(e.values, o.Value)
	if higherBetter {
		e.scores = append(e.scores, o.Value)
	} else {
		e.scores = append(e.scores, 1/o.Value)
	}
}

// ratio estimates how many times better e is than other, from the rounds that both have been in.
func (e *entrant) ratio(other *entrant) stats.Estimate {
	return stats.PairedRatio(e.scores, other.scores)
}

// heat is a race of a few candidates in rounds, the default first among them.
type heat struct {
	phase    Phase
	entrants []*entrant // the default first
	deadline time.Duration
	round    int   // complete rounds
	order    []int // of the present round's entrants
	next     int   // in order

	// Of a screening heat: what is screened, around which candidate, and by which design; nil for one that races.
	screened []block
	from     search.Candidate
	design   *design
	// Of a product after screening: the log effects that screening promised, by the candidate's key.
	promise map[string]float64
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

// entrant returns a candidate's entrant, nil when it is not in this heat.
func (h *heat) entrant(c search.Candidate) *entrant {
	for _, e := range h.entrants {
		if e.candidate.Key() == c.Key() {
			return e
		}
	}
	return nil
}

// rounds is the most rounds that the heat may have.
func (h *heat) rounds() int {
	return map[Phase]int{PhaseScreen: screenRounds, PhaseProduct: productRounds, PhaseFinal: finalRounds}[h.phase]
}

// window is the length of the present round's windows.
func (h *heat) window(shortest time.Duration) time.Duration {
	if h.phase == PhaseFinal {
		return finalWindow * shortest
	}
	return time.Duration(math.Min(mostGrowth, 1+growth*float64(h.round)) * float64(shortest))
}

// shuffle sets the order of the next round: random, but in the finals the other way round each time, so that a drift falls
// on all alike even in few rounds.
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

// base is the default's entrant.
func (h *heat) base() *entrant { return h.entrants[0] }

// challengers are the entrants that are still in, without the default.
func (h *heat) challengers() []*entrant {
	var in []*entrant
	for _, e := range h.entrants[1:] {
		if e.out == "" && len(e.scores) > 0 {
			in = append(in, e)
		}
	}
	return in
}

// leader is the entrant that is best so far, the default included; nil when nothing was measured.
func (h *heat) leader() *entrant {
	lead := h.base()
	if len(lead.scores) == 0 {
		return nil
	}
	best := 1.0
	for _, e := range h.challengers() {
		if g := e.ratio(h.base()).Value; g > best {
			lead, best = e, g
		}
	}
	return lead
}

// promiseWeight is how many rounds the promise of screening counts for, beside what was measured of a combination itself.
const promiseWeight = 8

// outlook is what is to be expected of an entrant against the default, as a log ratio: what was measured, drawn towards what
// screening promised, whose level is set by all entrants together.
func (h *heat) outlook(e *entrant) float64 {
	seen := math.Log(e.ratio(h.base()).Value)
	promised, ok := h.promise[e.candidate.Key()]
	if !ok {
		return seen
	}
	level, n := 0.0, 0.0
	for _, other := range h.challengers() {
		if p, ok := h.promise[other.candidate.Key()]; ok {
			level, n = level+math.Log(other.ratio(h.base()).Value)-p, n+1
		}
	}
	weight := float64(len(e.scores))
	return (weight*seen + promiseWeight*(promised+level/n)) / (weight + promiseWeight)
}

// judge drops the hopeless. The finals drop nobody, since their figures are what is reported; nor does a design, whose runs
// are not candidates for themselves.
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

// over says that further rounds would not change the heat's outcome, or are not allowed.
func (h *heat) over() bool {
	in := h.challengers()
	if len(in) == 0 || h.round >= h.rounds() {
		return true
	}
	return h.design == nil && h.round >= firstJudged && h.settled(in)
}

// settled says that nobody who is left can still turn out to be much better than the rest; in the finals, that for each the
// question whether it beats the default is answered. An answer after few rounds must be clear, because one that is looked
// for after every round is found by chance more often than the interval says.
func (h *heat) settled(in []*entrant) bool {
	lead := h.leader()
	for _, e := range in {
		against, clearly := lead, 1.0
		if h.phase == PhaseFinal {
			against, clearly = h.base(), clearlyBetter
		} else if e == lead {
			against = h.base()
		}
		ratio := e.ratio(against)
		if ratio.Hi >= hardlyBetter && ratio.Lo <= clearly {
			return false
		}
	}
	return true
}

// winner is the finals' answer: among those whose whole interval is above 1, the best, or within 1 % of it the one with the
// fewest settings; the default when there is none.
func (h *heat) winner() *entrant {
	best, gain := h.base(), 1.0
	for _, e := range h.proven() {
		if g := e.ratio(h.base()).Value; g > gain {
			best, gain = e, g
		}
	}
	for _, e := range h.proven() {
		if e.ratio(h.base()).Value > gain*surely && len(e.candidate.Settings()) < len(best.candidate.Settings()) {
			best = e
		}
	}
	return best
}

// provenRounds is the fewest pairs that prove a gain.
const provenRounds = 3

// proven are the challengers that beat the default beyond doubt.
func (h *heat) proven() []*entrant {
	var list []*entrant
	for _, e := range h.challengers() {
		if len(e.scores) >= provenRounds && e.ratio(h.base()).Lo > 1 {
			list = append(list, e)
		}
	}
	return list
}

// verdictText says how the race ended.
func (h *heat) verdictText() string {
	if w := h.winner(); !w.candidate.IsDefault() {
		ratio := w.ratio(h.base())
		return fmt.Sprintf("%s beats the default by %s (%s to %s)", nameOf(w), percent(ratio.Value), percent(ratio.Lo), percent(ratio.Hi))
	}
	if h.phase == PhaseFinal && h.round < provenRounds {
		return fmt.Sprintf("the budget ended in round %d of the finals, too early to prove a gain over the default", h.round+1)
	}
	return "nothing beats the default beyond doubt: leave every setting as it is"
}

// percent prints a ratio as the change that it is: 1.5 is +50.0 %.
func percent(ratio float64) string { return fmt.Sprintf("%+.1f %%", 100*(ratio-1)) }

func nameOf(e *entrant) string {
	if e.candidate.IsDefault() {
		return "the default"
	}
	return e.candidate.Key()
}
