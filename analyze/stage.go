package analyze

import (
	"slices"

	"tuner/search"
)

// stageByServer is firstStage among those whose figures are of the winner's server. isElsewhere says that
// only another server's tell of it.
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

// firstStage finds the configuration of Result.FirstStage in a ranked result. Candidates that set nothing but what the
// default has are passed over. Without figures of the winner's own settings of that kind the others tell nothing of its
// gain. The winner itself stands for what does more: both stages do no less than the first.
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

// isBetterStage reports whether what lies outside of the space, and so has no place by its merits, is better than
// another configuration: it keeps the constraints as surely, and its score is better.
func (r Result) isBetterStage(outside, other Config) bool {
	a, b := r.surety(outside), r.surety(other)
	return a > b || a == b && a > 0 && outside.Score.Value > other.Score.Value
}

// surety is 2 for what keeps the constraints with the verdict's confidence, 1 for what is likely to, 0 for the rest.
func (r Result) surety(c Config) int {
	switch {
	case !c.Satisfies() || c.FailedFinals:
		return 0
	case c.Choice != nil && !c.Choice.Keeps(r.Verdict.Confidence):
		return 1
	}
	return 2
}
