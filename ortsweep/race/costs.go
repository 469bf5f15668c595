package race

import (
	"math"
	"slices"
	"time"

	"tuner/search"
)

// need is the known cost of a trial in addition to its window.
type need int

// The needs, the cheapest first.
const (
	needNothing need = iota // the candidate was measured before, so its session probably exists
	needSession             // another candidate of its artifact was measured, so the engine process exists
	needEngine
	needs
)

// costs has the times that trials of each need took beyond their requested windows. They come from
// launches, warm-ups, and longer windows for slow models (package runner). It stores sums and
// numbers over the race so far.
type costs [needs]struct {
	sum time.Duration
	n   int
}

// The expected costs before the first trial of a need.
const (
	guessedLaunch = 1500 * time.Millisecond
	guessedExtra  = 400 * time.Millisecond
)

func (c *costs) addCost(n need, extra time.Duration) {
	c[n].sum += max(0, extra)
	c[n].n++
}

// expect returns the expected time of a window with that length. The first session shows whether
// sessions are created quickly and engines are shared. Until then it is expected to cost as much as
// a launch.
func (c *costs) expect(n need, window time.Duration) time.Duration {
	switch {
	case c[n].n > 0:
		return window + c[n].sum/time.Duration(c[n].n)
	case n == needSession:
		return c.expect(needEngine, window)
	case n == needEngine:
		return window + guessedLaunch
	}
	return window + guessedExtra
}

// need returns the need of a trial outside of the finals.
func (r *Race) need(c search.Candidate) need {
	least := needEngine
	for _, h := range r.heats {
		for _, e := range h.entrants {
			switch {
			case len(e.scores) == 0:
			case e.candidate.Key() == c.Key():
				return needNothing
			case e.candidate.ArtifactKey() == c.ArtifactKey():
				least = needSession
			}
		}
	}
	return least
}

// needAt returns the need of the trial at a position in a heat's current round. A round of the
// finals begins without engines.
func (r *Race) needAt(h *heat, place int) need {
	c := h.entrants[h.order[place]].candidate
	if h.phase != PhaseFinal {
		return r.need(c)
	}
	for _, i := range h.order[:place] {
		if h.entrants[i].candidate.ArtifactKey() == c.ArtifactKey() {
			return needSession
		}
	}
	return needEngine
}

// finalRound returns the expected time of a finals round of the default and candidates with windows
// of that length.
func (r *Race) finalRound(window time.Duration, candidates []search.Candidate) time.Duration {
	artifacts := []string{search.Candidate{}.ArtifactKey()}
	cost := r.costs.expect(needEngine, window)
	for _, c := range candidates {
		n := needEngine
		if slices.Contains(artifacts, c.ArtifactKey()) {
			n = needSession
		}
		artifacts = append(artifacts, c.ArtifactKey())
		cost += r.costs.expect(n, window)
	}
	return cost
}

// reserve is the share of the remaining time that plans use, since launches sometimes take a little
// longer.
const reserve = 0.95

// finalLength returns the window length in the finals of the default and candidates: at most
// finalWindow times the shortest.
//
// Half of a window's variance falls with its length, and half stays, since disturbances outlast it.
// So the variance for a given total time is lowest with windows of √(shortest · the time that a
// window takes in addition). They are shorter if the minimum number of rounds would not fit
// otherwise.
func (r *Race) finalLength(candidates []search.Candidate) time.Duration {
	shortest, entrants := r.settings.Window, time.Duration(1+len(candidates))
	beside := r.finalRound(0, candidates) / entrants
	best := time.Duration(math.Sqrt(float64(shortest) * float64(beside)))
	if r.settings.Budget > 0 {
		round := time.Duration(reserve * float64(r.settings.Budget-r.elapsed) / fewestFinals)
		best = min(best, round/entrants-beside)
	}
	return min(finalWindow*shortest, max(shortest, best.Round(time.Millisecond)))
}
