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

// Result is the result of a gate, with everything that its files contain.
type Result struct {
	Setup    Setup
	Outcome  Outcome
	Rows     []Row          // by criterion
	Accuracy []Accuracy     // of each model whose outputs are compared
	Withheld measure.Others // CPU time that others took
	Warnings []string       // doubts about the figures, in sentences
	Time     time.Time      // the start
	Revision string         // of the candidate; "" unknown
}

// Accuracy is the comparison of the candidate's outputs with the baseline's.
type Accuracy struct {
	Model string  // one of several models; "" for one
	Limit string  // for people: "cosine ≥ 0.99"
	Value float64 // NaN if unknown
	Miss  string  // how the candidate misses the limit; "" if it keeps it
	Note  string  // basis of the figure
}

// Name returns the name of the comparison among criteria: "accuracy", or "encoder.accuracy" of one of several
// models.
func (a Accuracy) Name() string {
	if a.Model == "" {
		return "accuracy"
	}
	return a.Model + ".accuracy"
}

// Verdict returns the verdict on the comparison.
func (a Accuracy) Verdict() decide.Verdict {
	if a.Miss != "" {
		return decide.Fail
	}
	return decide.Pass
}

// Row is a criterion with its figures.
type Row struct {
	Criterion
	Verdict                   decide.Verdict
	Candidate, Baseline       float64 // in the metric's base unit
	HasCandidate, HasBaseline bool
	// Change is candidate over baseline (or limit), minus 1. Its bounds may be infinite.
	Change   measure.Estimate
	Standing decide.Standing
}

// IsKnown reports whether the change has an interval.
func (r Row) IsKnown() bool { return !math.IsInf(r.Standing.Lo, 0) && !math.IsInf(r.Standing.Hi, 0) }

// CountsAs returns what a verdict of the gate or of a criterion means for a build. The file may
// turn an inconclusive verdict into a pass or a failure. An inconclusive verdict cannot pass if a
// side was not measured, or if the gate was stopped.
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

// NewResult sums up a gate. If the gate ended before any measurement, the rows have no figures.
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

// corrections describe the corrections of the judged changes.
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

// othersIn sums the CPU time that others took from both sides of the pairs.
func othersIn(pairs []Pair) measure.Others {
	var o measure.Others
	for _, p := range pairs {
		for _, side := range []measure.Measurement{p.Baseline, p.Candidate} {
			usable := mostUsed(side.Windows)
			for _, w := range side.Whole().Windows {
				o = o.With(w, w.WithheldOf(0, usable))
			}
		}
	}
	return o
}

// typical returns the median of a metric over the pairs. It returns false if no pair has it.
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

// warnings describe disturbances of the windows.
func warnings(o Outcome) []string {
	windows, flagged := Flags(o.Pairs)
	var list []string
	for _, f := range slices.Sorted(maps.Keys(flagged)) {
		// these flags are about a window's own interval, which a gate does not use
		if f == measure.FlagUnsteady || f == measure.FlagCorrelated {
			continue
		}
		list = append(list, fmt.Sprintf("%d of %d windows: %s.", flagged[f], windows, f.Text()))
	}
	return list
}
