package race

import (
	"cmp"
	"slices"

	"tuner/measure/stats"
	"tuner/search"
)

// Verdict is what became of a candidate.
type Verdict string

// The verdicts.
const (
	Winner  Verdict = "winner"  // the answer; the default when nothing beats it
	Ahead   Verdict = "ahead"   // it looks better than the default, but that was not proven
	Base    Verdict = "default" // the default where nothing is proven
	Tied    Verdict = "tied"    // not told apart from the answer
	Slower  Verdict = "slower"  // worse than the answer in the last heat
	Passed  Verdict = "passed"  // it did not go on to the last heat: others looked better
	Dropped Verdict = "dropped" // given up early
	Failed  Verdict = "failed"  // it yielded no figure
)

// Standing is what the race knows of one candidate.
type Standing struct {
	Candidate search.Candidate `json:"candidate"`
	Windows   int              `json:"windows"`
	Value     stats.Estimate   `json:"value"` // of the metric, in its base unit; of a finalist from the finals alone, where it is in line with Gain
	Gain      stats.Estimate   `json:"gain"`  // how many times better than the default in the same rounds; 1 for the default
	Final     bool             `json:"final,omitempty"`
	Verdict   Verdict          `json:"verdict"`
	Reason    string           `json:"reason,omitempty"` // of a dropped or failed one
	// Values are the figures by heat and round, as they were measured; Value and Gain are freed of what others withheld.
	Values [][]float64 `json:"values"`
}

// Result is where the race stands, at its end or when it was interrupted.
type Result struct {
	Winner    search.Candidate `json:"winner"`    // the default unless something beats it beyond doubt
	Confirmed bool             `json:"confirmed"` // on fresh launches
	Unproven  bool             `json:"unproven"`  // the race ended before the question was answered
	Why       string           `json:"why"`
	Broken    string           `json:"broken,omitempty"` // why the default could not be measured: then there is no result
	Slope     float64          `json:"slope,omitempty"`  // of the logarithm of a figure as "larger is better", over what others withheld; 0 where they took nothing
	Standings []Standing       `json:"standings"`        // the best first
	Outs      []Out            `json:"outs,omitempty"`
}

// Result sums up the race as far as it has come.
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

// markAhead says of an unproven race what looks better than the default, and calls the default no winner.
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

// deciding is the heat that says which candidate wins: the last one in which something was compared; nil without one.
func (r *Race) deciding() *heat {
	for _, h := range slices.Backward(r.heats) {
		if h.round >= provenRounds || h.phase == PhaseFinal && r.why != "" {
			return h
		}
	}
	return nil
}

// candidates are all that were measured, each once.
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

// standing sums up what all heats say of a candidate; of a finalist, what the finals say.
func (r *Race) standing(c search.Candidate, deciding *heat, winner search.Candidate) Standing {
	s := Standing{Candidate: c, Verdict: Passed}
	var values, own, base []float64
	all, paired, against := entrant{variate: r.withheld}, entrant{variate: r.withheld}, entrant{} // what was withheld in these
	var level, gain stats.Estimate                                                                // of a finalist: from its last finals
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

// level estimates an entrant's figure in the finals by the same fit as ratio does, so that figures stand in the order of the gains
// whatever window lies far off.
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

// mean is that of a candidate's figures: on log scale, so that its interval never reaches 0.
func mean(values []float64) stats.Estimate {
	return stats.PairedRatio(values, slices.Repeat([]float64{1}, len(values)))
}

// tied reports whether a candidate cannot be told apart from the winner in this heat.
func (h *heat) tied(c, winner search.Candidate) bool {
	a, b := h.entrant(c), h.entrant(winner)
	return h.hasFigure(c) && h.hasFigure(winner) && h.ratio(a, b).Hi >= 1
}

// compareStandings puts the winner first, then the finalists, then the rest by gain; failures last.
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
