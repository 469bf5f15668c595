package gate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"tuner/gate/decide"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/spec"
)

// Result is what a gate found out, and all that its files are made of.
type Result struct {
	Setup    Setup
	Outcome  Outcome
	Rows     []Row          // by criterion
	Accuracy *Accuracy      // nil where outputs are not compared
	Withheld measure.Others // what others took of the CPU time
	Warnings []string       // what one should know of the figures, in sentences
	Time     time.Time      // of the beginning
	Revision string         // of what is gated; "" unknown
}

// Accuracy is how the candidate's outputs compare with the baseline's.
type Accuracy struct {
	Limit string  // for people: "cosine ≥ 0.99"
	Value float64 // NaN where there is none
	Miss  string  // how the limit is missed; "" when it is kept
	Note  string  // what the figure stands on
}

// Row is a criterion with its figures.
type Row struct {
	Criterion
	Verdict                   decide.Verdict
	Candidate, Baseline       float64 // in the metric's base unit
	HasCandidate, HasBaseline bool
	// Change is candidate over baseline, or over the limit, less 1; its bounds may be infinite.
	Change   measure.Estimate
	Standing decide.Standing
}

// IsKnown reports whether the change has an interval.
func (r Row) IsKnown() bool { return !math.IsInf(r.Standing.Lo, 0) && !math.IsInf(r.Standing.Hi, 0) }

// CountsAs is what a verdict, of the gate or of one of its criteria, means for a build: an inconclusive one counts as the file has it, or stays what
// it is. Nothing passes that was not measured on both sides, or in a gate that was broken off.
func (r Result) CountsAs(v decide.Verdict) decide.Verdict {
	switch {
	case v != decide.Inconclusive:
	case r.Setup.Spec.Inconclusive == spec.GateFail:
		return decide.Fail
	case r.Setup.Spec.Inconclusive == spec.GatePass && !r.Outcome.Interrupted && slices.ContainsFunc(r.Outcome.Pairs, Pair.isWhole):
		return decide.Pass
	}
	return v
}

// NewResult sums up a gate. It may have ended before anything was measured: then there are rows without figures.
func NewResult(s Setup, o Outcome, reference map[measure.Metric]Reference, now time.Time, revision string) Result {
	r := Result{Setup: s, Outcome: o, Time: now, Revision: revision}
	for i, c := range Criteria(s.Spec) {
		row := Row{Criterion: c, Verdict: decide.Inconclusive, Standing: decide.Standing{Verdict: decide.Inconclusive, Lo: math.Inf(-1), Hi: math.Inf(1)}}
		if i < len(o.Standings) {
			row.Standing, row.Verdict = o.Standings[i], o.Standings[i].Verdict
		}
		row.Change = c.Change(row.Standing)
		row.Candidate, row.HasCandidate = typical(c.Metric, o.Pairs, func(p Pair) measure.Measurement { return p.Candidate })
		row.Baseline, row.HasBaseline = typical(c.Metric, o.Pairs, func(p Pair) measure.Measurement { return p.Baseline })
		if saved, ok := reference[c.Metric]; ok {
			row.Baseline, row.HasBaseline = math.Exp(saved.Log), true
		}
		r.Rows = append(r.Rows, row)
	}
	r.Withheld = othersIn(o.Pairs)
	r.Warnings = append(r.corrections(), warnings(o)...)
	return r
}

// corrections say what was taken out of the changes that were judged.
func (r Result) corrections() []string {
	to := "an equal share on both sides"
	if r.Setup.Baseline == nil {
		to = "the average"
	}
	isCorrected := slices.ContainsFunc(r.Rows, func(row Row) bool { return row.judged(nil).Slope != 0 })
	sentence := r.Withheld.Corrected(to)
	if sentence == "" || !isCorrected {
		return nil
	}
	return []string{sentence}
}

// othersIn sums up what others took from both sides of the pairs.
func othersIn(pairs []Pair) measure.Others {
	var o measure.Others
	for _, p := range pairs {
		for _, side := range []measure.Measurement{p.Baseline, p.Candidate} {
			usable := mostUsed(side.Windows)
			for _, w := range side.Windows {
				o = o.With(w, w.WithheldOf(0, usable))
			}
		}
	}
	return o
}

// typical is the median of a metric over the pairs; false where none tells it.
func typical(metric measure.Metric, pairs []Pair, side func(Pair) measure.Measurement) (float64, bool) {
	var values []float64
	for _, p := range pairs {
		if v, ok := Figure(metric, side(p)); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	return stats.Median(values), true
}

// warnings say what disturbed the windows.
func warnings(o Outcome) []string {
	windows, flagged := Flags(o.Pairs)
	var list []string
	for _, f := range slices.Sorted(maps.Keys(flagged)) {
		if f == measure.FlagUnsteady || f == measure.FlagCorrelated { // a window's own interval, which nothing here is made of
			continue
		}
		list = append(list, fmt.Sprintf("%d of %d windows: %s.", flagged[f], windows, f.Text()))
	}
	return list
}
