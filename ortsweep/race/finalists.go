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

// The finalists are chosen by a combination's measurements and by the screening's prediction for
// its parts. Each counts as far as it is reliable.

// promises are the log effects that screening predicts for combinations, by the candidate's key.
type promises map[string]float64

// Prior assumptions with their degrees of freedom: the standard deviation of a window's log, and
// that of the difference between a promise and the truth.
const (
	guessedNoise   = 0.03
	guessedFreedom = 4
	guessedMiss    = 0.01
)

// noise returns the variance of one window's log, from all entrants that are still in the heat.
func (h *heat) noise() float64 {
	variance, freedom := stats.NewBlocks(scores(h.racing())).Noise()
	return (guessedFreedom*guessedNoise*guessedNoise + float64(freedom)*variance) / float64(guessedFreedom+freedom)
}

// outlooks returns the expected log ratios of challengers to the default: the measured ratio, drawn
// towards the promised one. Promises count more if the windows scatter more, and less if they miss
// the measurements (empirical Bayes: Efron and Morris 1973). All challengers together set the level
// of the promises.
func (h *heat) outlooks(in []*entrant) map[*entrant]float64 {
	list := map[*entrant]float64{}
	var promised []*entrant
	level := 0.0 // mean difference of measured and promised
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
	// variance of truth − promise
	miss := max(guessedMiss*guessedMiss/4, (misses-doubt)/float64(guessedFreedom+len(promised)-1))
	for _, e := range promised {
		trust := miss / (miss + noise/float64(len(e.scores)))
		list[e] = trust*list[e] + (1-trust)*(h.promises[e.candidate.Key()]+level)
	}
	return list
}

// mostFinalists is the largest number of candidates that meet the default in the finals.
// withinFinal is the required ratio to the best.
const (
	mostFinalists = 3
	withinFinal   = 0.98
)

// finalists returns up to most challengers for the finals. These are the best, the simplest one
// that may be as good, and others that are nearly as good. In the finals, settings without a gain
// should lose against their absence, and not be carried along.
func (h *heat) finalists(most int) []search.Candidate {
	if len(h.base().scores) == 0 {
		return nil // no challenger looks better than the default
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

// mayReplace reports whether e has only settings of other and is as good within one standard error
// (Breiman, Friedman, Olshen and Stone 1984, §3.4.3). One standard error is a quarter of a 95 %
// interval.
func (e *entrant) mayReplace(other *entrant) bool {
	for _, s := range e.candidate.Settings() {
		if v, ok := other.candidate.Get(s.Knob); !ok || v != s.Value {
			return false
		}
	}
	ratio := e.ratio(other)
	return math.Log(ratio.Value) >= -math.Log(ratio.Hi/ratio.Lo)/4
}

// beginFinals sends the best of the product into the finals. If nothing looks better than the
// default, the race is over.
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

// fewestOf returns the number of rounds that must fit into the remaining time. It is larger for
// more than two finalists, since a precise gain is worth more than another candidate that is nearly
// as good.
func fewestOf(finalists []search.Candidate) int {
	if len(finalists) > 2 {
		return manyFinals
	}
	return fewestFinals
}

// fits reports whether this many rounds of finals with the default and candidates fit into the
// remaining time.
func (r *Race) fits(rounds int, candidates []search.Candidate) bool {
	cost := time.Duration(rounds) * r.finalRound(finalWindow*r.settings.Window, candidates)
	return r.settings.Budget == 0 || r.elapsed+cost <= r.settings.Budget
}

// unheard returns candidates that beat the default in the product but were not in the finals. If
// the finals prove no candidate better, they get their own finals once.
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
