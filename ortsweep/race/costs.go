package race

import (
	"math"
	"slices"
	"time"

	"tuner/search"
)

// need is what a trial takes beside its window, as far as that is known before it.
type need int

// The needs, from the cheapest.
const (
	needNothing need = iota // the candidate was measured before: its session is probably there
	needSession             // another candidate of its artifact was: the engine process is there
	needEngine
	needs
)

// costs says what trials of each need have taken beyond the windows that were asked for, such as a launch, a warm-up, and what the windows of a
// slow model lasted longer (package runner): sums and numbers over the race so far.
type costs [needs]struct {
	sum time.Duration
	n   int
}

// The costs that are expected before the first trial of a need.
const (
	guessedLaunch = 1500 * time.Millisecond
	guessedExtra  = 400 * time.Millisecond
)

func (c *costs) addCost(n need, extra time.Duration) {
	c[n].sum += max(0, extra)
	c[n].n++
}

// expect is what a window of that length is expected to take. Where a session is made quickly, and whether engines are shared at all,
// shows in the first one: until then it is expected to be as dear as a launch.
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

// need is what a trial of a candidate takes outside of the finals.
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

// needAt is what the trial at a place in the present round of a heat takes. A round of the finals begins with no engine.
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

// finalRound is what a round of the finals of the default and candidates is expected to take with windows of that length.
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

// reserve is the part of the time left that is planned with: launches take a little longer now and then.
const reserve = 0.95

// finalLength is how long the windows of the finals of the default and candidates are: at most finalWindow times the shortest. Half of
// a window's variance goes with its length and half stays, since what disturbs a window outlasts it; so of all ways to spend a time, the
// least variance comes of windows of √(shortest · what a window takes beside itself). They are shorter where the fewest rounds would not
// fit otherwise.
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
