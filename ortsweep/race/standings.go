package race

import (
	"cmp"
	"slices"

	"tuner/measure/stats"
	"tuner/search"
)

// Verdict is the result of the race for a candidate.
type Verdict string

// The verdicts.
const (
	Winner  Verdict = "winner"  // the answer; it is the default if nothing beats it
	Ahead   Verdict = "ahead"   // it looks better than the default, but this is not proven
	Base    Verdict = "default" // the default, if nothing is proven
	Tied    Verdict = "tied"    // not distinguishable from the answer
	Slower  Verdict = "slower"  // worse than the answer in the last heat
	Passed  Verdict = "passed"  // not in the last heat, since others looked better
	Dropped Verdict = "dropped" // dropped early
	Failed  Verdict = "failed"  // it has no figure
)

// Standing is the race's result for one candidate.
type Standing struct {
	Candidate search.Candidate `json:"candidate"`
	Windows   int              `json:"windows"`
	// of the metric, in its base unit; for a finalist from the finals only, consistent with Gain
	Value   stats.Estimate `json:"value"`
	Gain    stats.Estimate `json:"gain"` // factor over the default in the same rounds; 1 for the default
	Final   bool           `json:"final,omitempty"`
	Verdict Verdict        `json:"verdict"`
	Reason  string         `json:"reason,omitempty"` // of a dropped or failed candidate
	// Values are the measured figures by heat and round. Value and Gain are corrected for CPU time
	// that others withheld.
	Values [][]float64 `json:"values"`
}

// Result is the state of the race, at its end or at an interruption.
type Result struct {
	Winner    search.Candidate `json:"winner"`    // the default, unless something certainly beats it
	Confirmed bool             `json:"confirmed"` // on fresh launches
	Unproven  bool             `json:"unproven"`  // the race ended before the question was answered
	Why       string           `json:"why"`
	// reason why the default could not be measured; there is no result then
	Broken string `json:"broken,omitempty"`
	// slope of a figure's logarithm with "larger is better", over the withheld time; 0 if others
	// took nothing
	Slope     float64    `json:"slope,omitempty"`
	Standings []Standing `json:"standings"` // best first
	Outs      []Out      `json:"outs,omitempty"`
}

// Result sums up the race so far.
func (r *Race) Result() Result {
	last := r.deciding()
	result := Result{Why: r.why, Broken: r.broken, Unproven: r.unproven || r.why == "", Outs: r.outs, Slope: r.withheld.Slope}
	if r.why == "" {
		result.Why = "interrupted before anything was compared"
	}
	if last != nil && r.broken == "" {
		result.Winner = last.winner().candidate
		result.Confirmed = last.phase == PhaseFinal && !result.Unproven
		if r.why == "" {
			result.Why = last.interruptedText()
		}
	}
	for _, c := range r.candidates() {
		result.Standings = append(result.Standings, r.standing(c, last, result.Winner))
	}
	if result.Winner.IsDefault() && result.Unproven {
		markAhead(result.Standings)
	}
	slices.SortStableFunc(result.Standings, compareStandings)
	return result
}

// markAhead marks, in an unproven race, the candidates that look better than the default. The
// default is then not called the winner.
func markAhead(standings []Standing) {
	for i, s := range standings {
		switch {
		case s.Verdict == Winner: // it is the default
			standings[i].Verdict = Base
		case s.Gain.Value > 1 && s.Verdict != Failed && s.Verdict != Dropped:
			standings[i].Verdict = Ahead
		}
	}
}

// deciding returns the heat that decides the winner: the last one with a comparison; nil without
// one.
func (r *Race) deciding() *heat {
	for _, h := range slices.Backward(r.heats) {
		if h.round >= provenRounds || h.phase == PhaseFinal && r.why != "" {
			return h
		}
	}
	return nil
}

// candidates returns all measured candidates, each once.
func (r *Race) candidates() []search.Candidate {
	var list []search.Candidate
	seen := map[string]bool{}
	for _, h := range r.heats {
		for _, e := range h.entrants {
			if key := e.candidate.Key(); !seen[key] && (len(e.scores) > 0 || e.failure != "") {
				seen[key] = true
				list = append(list, e.candidate)
			}
		}
	}
	return list
}

// standing sums up a candidate's figures from all heats. For a finalist it uses the finals only.
func (r *Race) standing(c search.Candidate, deciding *heat, winner search.Candidate) Standing {
	s := Standing{Candidate: c, Verdict: Passed}
	var values, own, base []float64
	// withheld time in these
	all, paired, against := entrant{variate: r.withheld}, entrant{variate: r.withheld}, entrant{}
	// for a finalist: from its last finals
	var level, gain stats.Estimate
	for _, h := range r.heats {
		e := h.entrant(c)
		if e == nil || len(e.values) == 0 && e.failure == "" {
			continue
		}
		if h.phase == PhaseFinal && len(e.values) >= provenRounds {
			values, own, base, s.Final = nil, nil, nil, true
			all.withheld, paired.withheld, against.withheld = nil, nil, nil
			level, gain = h.level(e), h.ratio(e, h.base())
		}
		n := min(len(e.scores), len(h.base().scores))
		values, own, base = append(values, e.values...), append(own, e.scores[:n]...), append(base, h.base().scores[:n]...)
		all.withheld = append(all.withheld, e.withheld...)
		paired.withheld, against.withheld = append(paired.withheld, first(e.withheld, n)...), append(against.withheld, first(h.base().withheld, n)...)
		s.Values = append(s.Values, e.measured)
		s.Windows += len(e.values)
		s.Verdict, s.Reason = Passed, e.out
		if e.failure != "" {
			s.Verdict = Failed
		} else if e.out != "" {
			s.Verdict = Dropped
		}
	}
	s.Value = stats.Widen(mean(values), all.ownDoubt())
	s.Gain = stats.Widen(stats.PairedRatio(own, base), paired.doubt(&against))
	if s.Final {
		s.Value, s.Gain = level, gain
	}
	switch {
	case s.Verdict == Failed:
	case c.Key() == winner.Key():
		s.Verdict, s.Reason = Winner, ""
	case s.Verdict == Passed && deciding != nil && deciding.hasFigure(c):
		s.Verdict, s.Reason = Slower, ""
		if deciding.tied(c, winner) {
			s.Verdict = Tied
		}
	}
	return s
}

// level estimates an entrant's figure in the finals with the same fit as ratio. So figures have the
// order of the gains, even with outlying windows.
func (h *heat) level(e *entrant) stats.Estimate {
	in := h.racing()
	i := slices.Index(in, e)
	if i < 0 {
		return stats.Widen(mean(e.values), e.ownDoubt())
	}
	var values [][]float64
	for _, one := range in {
		values = append(values, one.values)
	}
	return stats.Widen(stats.NewBlocks(values).Mean(i), e.ownDoubt())
}

// mean returns the mean of a candidate's figures. It is computed on log scale, so its interval
// never reaches 0.
func mean(values []float64) stats.Estimate {
	return stats.PairedRatio(values, slices.Repeat([]float64{1}, len(values)))
}

// tied reports whether a candidate cannot be distinguished from the winner in this heat.
func (h *heat) tied(c, winner search.Candidate) bool {
	a, b := h.entrant(c), h.entrant(winner)
	return h.hasFigure(c) && h.hasFigure(winner) && h.ratio(a, b).Hi >= 1
}

// compareStandings orders the winner first, then the finalists, then the others by gain, with
// failures last.
func compareStandings(a, b Standing) int {
	rank := func(s Standing) int {
		switch {
		case s.Verdict == Winner, s.Verdict == Base:
			return 0
		case s.Verdict == Failed:
			return 3
		case s.Final:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Gain.Value, a.Gain.Value), cmp.Compare(a.Candidate.Key(), b.Candidate.Key()))
}
