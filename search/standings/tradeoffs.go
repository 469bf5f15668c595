package standings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tuner/measure"
)

// Tradeoffs are the ways to satisfy all constraints but one. For each constraint, they hold the
// configuration at a load that misses only this one, by the least amount. The smallest miss comes
// first. They are useful if no configuration satisfies all constraints.
type Tradeoffs []Standing

// Add returns the trade-offs with a further configuration at a load taken into account. It ignores
// one that misses several constraints, and one that refuses requests, which no goal allows.
func (t Tradeoffs) Add(s Standing) Tradeoffs {
	if !s.Point.Scored || len(s.Point.Misses) != 1 {
		return t
	}
	miss := s.Point.Misses[0]
	if miss.Missing || miss.Constraint.Metric == measure.ErrorRate {
		return t
	}
	i := slices.IndexFunc(t, func(known Standing) bool { return known.Point.Misses[0].Constraint.Metric == miss.Constraint.Metric })
	switch {
	case i < 0:
		t = append(t, s)
	case miss.Violation < t[i].Point.Misses[0].Violation:
		t[i] = s
	}
	slices.SortStableFunc(t, func(a, b Standing) int { return cmp.Compare(a.Point.Violation(), b.Point.Violation()) })
	return t
}

// String describes the change of a constraint that is needed: "A constraint would have to give:
// latency_p99 to 61.2 ms (2 instances × 1 thread at concurrency 4), or throughput to 410.0 infer/s
// (default at concurrency 2)."; "" without trade-offs.
func (t Tradeoffs) String() string {
	var parts []string
	for _, s := range t {
		miss := s.Point.Misses[0]
		metric := miss.Constraint.Metric
		parts = append(parts, fmt.Sprintf("%s to %s (%s at %s)", metric, metric.Format(miss.Value), s.Candidate.Describe(), s.Load))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("A constraint would have to give: %s.", strings.Join(parts, ", or "))
}

// Shortfall describes in sentences the measured configuration that is nearest to the constraints,
// and the constraints that would have to change. It is empty if a configuration satisfies them, or
// if none has a score.
func (l *Ledger) Shortfall() []string {
	ranked := l.Ranked()
	if len(ranked) == 0 || !ranked[0].Point.Scored || ranked[0].Point.Passes() {
		return nil
	}
	nearest := ranked[0]
	var misses, limits []string
	for _, m := range nearest.Point.Misses {
		misses = append(misses, m.String())
		if !m.Missing && m.Constraint.Metric != measure.ErrorRate {
			limits = append(limits, fmt.Sprintf("%s to %s", m.Constraint.Metric, m.Constraint.Metric.Format(m.Value)))
		}
	}
	sentences := []string{fmt.Sprintf("Nearest to the constraints is %s at %v: %s.", nearest.Candidate.Describe(), nearest.Load, strings.Join(misses, ", "))}
	switch text := l.tradeoffs.String(); {
	case text != "":
		sentences = append(sentences, text)
	case len(limits) == len(misses): // several, like every configuration
		sentences = append(sentences, fmt.Sprintf("Constraints would have to give: %s.", strings.Join(limits, " and ")))
	}
	return sentences
}
