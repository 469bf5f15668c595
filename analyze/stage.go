package analyze

import (
	"slices"

	"tuner/search"
)

// stageByServer applies firstStage to the configurations with figures of the winner's server.
// isElsewhere means that only another server measured the first stage.
func stageByServer(r Result, space search.Space) (name string, isElsewhere bool) {
	name = firstStage(r, space)
	best, won := r.Winner()
	if r.Header.Finals == nil || !won {
		return name, false
	}
	r.Configs = slices.DeleteFunc(slices.Clone(r.Configs), func(c Config) bool {
		return c.Best == nil || !r.AreComparable(*best.Best, *c.Best)
	})
	here := firstStage(r, space)
	return here, here == "" && name != ""
}

// firstStage finds the configuration for Result.FirstStage in a ranked result.
//
// It skips candidates that set only values that the default has. It returns "" if the winner's own
// settings of that kind have no figures, since other settings do not show the gain of these. If the
// stage does more than the winner, it returns the winner, since both stages together are never
// worse than the first.
func firstStage(r Result, space search.Space) string {
	best, hasWon := r.Winner()
	own := search.Candidate{}
	if hasWon {
		own = space.FirstStage(best.Candidate)
	}
	var first *Config
	isKnown := own.IsDefault()
	for i, c := range r.Configs {
		stage := space.FirstStage(c.Candidate)
		isTwin := !c.Candidate.IsDefault() && stage.IsDefault()
		if isTwin || c.Best == nil || !space.InFirstStage(c.Candidate) {
			continue
		}
		if first == nil || c.CurveOnly && r.isBetterStage(c, *first) {
			first = &r.Configs[i]
		}
		isKnown = isKnown || stage.Key() == own.Key()
	}
	switch {
	case first == nil || !isKnown:
		return ""
	case hasWon && first.Score.Value > best.Score.Value:
		return best.Name
	}
	return first.Name
}

// isBetterStage reports whether a configuration outside the space is better than another one: it
// keeps the constraints as surely, and has a better score. Configurations outside the space are not
// in the verdict's order.
func (r Result) isBetterStage(outside, other Config) bool {
	a, b := r.surety(outside), r.surety(other)
	return a > b || a == b && a > 0 && outside.Score.Value > other.Score.Value
}

// surety returns 2 if a configuration keeps the constraints with the verdict's confidence, 1 if it
// is likely to, and else 0.
func (r Result) surety(c Config) int {
	switch {
	case !c.Satisfies() || c.FailedFinals:
		return 0
	case c.Choice != nil && !c.Choice.Keeps(r.Verdict.Confidence):
		return 1
	}
	return 2
}
