package race

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"tuner/measure/stats"
	"tuner/search"
)

// Who goes into the finals is decided by what was measured of a combination and by what screening promises of its parts, each
// as far as it can be trusted.

// promises are the log effects that screening promises of combinations, by the candidate's key.
type promises map[string]float64

// What is believed before it is measured, and on how many degrees of freedom: the standard deviations of a window's log, and of
// the difference between a promise and the truth.
const (
	guessedNoise   = 0.03
	guessedFreedom = 4
	guessedMiss    = 0.01
)

// noise is the variance of one window's log, from all who are still in the heat.
func (h *heat) noise() float64 {
	variance, freedom := stats.NewBlocks(scores(h.racing())).Noise()
	return (guessedFreedom*guessedNoise*guessedNoise + float64(freedom)*variance) / float64(guessedFreedom+freedom)
}

// outlooks are what is to be expected of challengers against the default, as log ratios: what was measured, drawn towards what
// screening promised. The more the windows scatter, the more the promises count; the more the promises miss what was measured,
// the less (empirical Bayes: Efron and Morris 1973). The promises' level is set by all challengers together.
func (h *heat) outlooks(in []*entrant) map[*entrant]float64 {
	list := map[*entrant]float64{}
	var promised []*entrant
	level := 0.0 // of what was measured above what was promised
	for _, e := range in {
		list[e] = math.Log(e.ratio(h.base()).Value)
		if p, ok := h.promises[e.candidate.Key()]; ok {
			promised = append(promised, e)
			level += list[e] - p
		}
	}
	if len(promised) < 2 {
		return list
	}
	level /= float64(len(promised))
	noise := h.noise()
	misses, doubt := guessedFreedom*guessedMiss*guessedMiss, 0.0
	for _, e := range promised {
		off := list[e] - h.promises[e.candidate.Key()] - level
		misses += off * off
		doubt += noise / float64(len(e.scores))
	}
	miss := max(guessedMiss*guessedMiss/4, (misses-doubt)/float64(guessedFreedom+len(promised)-1)) // variance of truth − promise
	for _, e := range promised {
		trust := miss / (miss + noise/float64(len(e.scores)))
		list[e] = trust*list[e] + (1-trust)*(h.promises[e.candidate.Key()]+level)
	}
	return list
}

// mostFinalists is how many candidates meet the default in the finals, and withinFinal how near to the best they must be.
const (
	mostFinalists = 3
	withinFinal   = 0.98
)

// finalists are the challengers that go on: the best, the simplest that may be as good, and others that are nearly as good as far as
// there is room. Settings that gain nothing are to lose against their absence in the finals, not to be carried along.
func (h *heat) finalists(most int) []search.Candidate {
	if len(h.base().scores) == 0 {
		return nil // nobody is known to be better than the default
	}
	in := h.challengers()
	outlook := h.outlooks(in)
	slices.SortStableFunc(in, func(a, b *entrant) int { return cmp.Compare(outlook[b], outlook[a]) })
	in = slices.DeleteFunc(in, func(e *entrant) bool { return outlook[e] <= 0 })
	if len(in) == 0 {
		return nil
	}
	best := in[0]
	isNear := func(e *entrant) bool { return outlook[e] >= outlook[best]+math.Log(withinFinal) }
	simplest := best
	for _, e := range in {
		if (isNear(e) || e.mayReplace(best)) && e.isSimpler(simplest) {
			simplest = e
		}
	}
	list := []search.Candidate{best.candidate}
	if simplest != best {
		list = append(list, simplest.candidate)
	}
	for _, e := range in {
		if e != best && e != simplest && isNear(e) {
			list = append(list, e.candidate)
		}
	}
	return list[:min(most, len(list))]
}

// isSimpler reports whether e has fewer settings than other.
func (e *entrant) isSimpler(other *entrant) bool {
	return len(e.candidate.Settings()) < len(other.candidate.Settings())
}

// mayReplace reports whether e is other without some of its settings, and as good as it to within one standard error (Breiman, Friedman,
// Olshen and Stone 1984, §3.4.3), which is a quarter of a 95 % interval.
func (e *entrant) mayReplace(other *entrant) bool {
	for _, s := range e.candidate.Settings() {
		if v, ok := other.candidate.Get(s.Knob); !ok || v != s.Value {
			return false
		}
	}
	ratio := e.ratio(other)
	return math.Log(ratio.Value) >= -math.Log(ratio.Hi/ratio.Lo)/4
}

// beginFinals sends the best of the product into the finals. Without anything that looks better than the default the race
// is over.
func (r *Race) beginFinals(h *heat) {
	finalists := h.finalists(mostFinalists)
	if len(finalists) == 0 {
		r.finish(h, h.isOpen())
		return
	}
	for len(finalists) > 1 && !r.fits(fewestOf(finalists), finalists) {
		finalists = finalists[:len(finalists)-1]
	}
	r.begin(PhaseFinal, finalists, 1)
	if r.late(r.heat()) {
		r.unproven = true
		r.why = fmt.Sprintf("the budget of %v ended before anything was proven (rounds: %d)", r.settings.Budget, h.round)
		if !h.winner().candidate.IsDefault() {
			r.why = fmt.Sprintf("%s, but the budget of %v ended before fresh launches could confirm it", h.verdictText(), r.settings.Budget)
		}
	}
}

// fewestOf is how many rounds must fit into the time left for finals of these: more where there are more than two, since a gain that is
// known precisely is worth more than another candidate that is nearly as good.
func fewestOf(finalists []search.Candidate) int {
	if len(finalists) > 2 {
		return manyFinals
	}
	return fewestFinals
}

// fits reports whether so many rounds of finals of the default and candidates fit into the time left.
func (r *Race) fits(rounds int, candidates []search.Candidate) bool {
	cost := time.Duration(rounds) * r.finalRound(finalWindow*r.settings.Window, candidates)
	return r.settings.Budget == 0 || r.elapsed+cost <= r.settings.Budget
}

// unheard are those who beat the default in the product but did not go into the finals: when the finals prove nobody better, they
// get finals of their own, once.
func (r *Race) unheard() []search.Candidate {
	if len(r.heats) < 2 || r.heats[len(r.heats)-2].phase != PhaseProduct {
		return nil
	}
	product, finals := r.heats[len(r.heats)-2], r.heat()
	in := slices.DeleteFunc(product.proven(), func(e *entrant) bool { return finals.entrant(e.candidate) != nil })
	slices.SortStableFunc(in, func(a, b *entrant) int {
		return cmp.Compare(b.ratio(product.base()).Lo, a.ratio(product.base()).Lo)
	})
	var list []search.Candidate
	for _, e := range in[:min(mostFinalists-1, len(in))] {
		list = append(list, e.candidate)
	}
	return list
}
