package gate

import (
	"fmt"
	"math"
	"strconv"

	"tuner/gate/decide"
	"tuner/measure"
)

// Percent prints a share as a percentage with its sign: "+4.8 %". Beyond 100 % it prints whole
// numbers, and "unknown" for infinity.
func Percent(share float64) string {
	switch {
	case math.IsInf(share, 0) || math.IsNaN(share):
		return "unknown"
	case math.Abs(share) < 0.0005:
		return "0.0 %"
	case math.Abs(share) >= 1:
		return fmt.Sprintf("%+.0f %%", 100*share)
	}
	return fmt.Sprintf("%+.1f %%", 100*share)
}

// marginText prints a tolerance without a sign: "2 %".
func marginText(share float64) string {
	return strconv.FormatFloat(math.Round(1e6*share)/1e4, 'f', -1, 64) + " %"
}

// Tolerated describes the tolerance of the criterion: "2 % lower", "10 % higher", "at most 30.0
// ms".
func (c Criterion) Tolerated() string {
	switch {
	case c.IsLimit() && c.Min:
		return "at least " + c.Metric.Format(c.Bound)
	case c.IsLimit():
		return "at most " + c.Metric.Format(c.Bound)
	case c.moreIsWorse():
		return marginText(c.Margin) + " higher"
	}
	return marginText(c.Margin) + " lower"
}

// Interval prints the interval of a change, or of a value beside its limit.
func (c Criterion) Interval(s decide.Standing) string {
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		return "unknown"
	}
	change := c.Change(s)
	if c.IsLimit() {
		return fmt.Sprintf("%s to %s", c.Metric.Format(c.of(change.Lo)), c.Metric.Format(c.of(change.Hi)))
	}
	return fmt.Sprintf("%s to %s", Percent(change.Lo), Percent(change.Hi))
}

// of returns the value that differs from the limit by a share.
func (c Criterion) of(change float64) float64 { return c.Bound * (1 + change) }

// failure describes how a criterion failed.
func (c Criterion) failure(s decide.Standing) string {
	change := c.Change(s).Value
	if c.IsLimit() {
		return fmt.Sprintf("%s is %s (%s): %s is allowed", c.Metric, c.Metric.Format(c.of(change)), c.Interval(s), c.Tolerated())
	}
	return fmt.Sprintf("%s differs by %s (%s): %s is allowed", c.Metric, Percent(change), c.Interval(s), c.Tolerated())
}

// doubt explains why a criterion is not decided.
func (c Criterion) doubt(s decide.Standing) string {
	if math.IsInf(s.Hi, 0) {
		return fmt.Sprintf("%s: too little was measured", c.Metric)
	}
	if c.IsLimit() {
		return fmt.Sprintf("%s is %s: %s is allowed", c.Metric, c.Interval(s), c.Tolerated())
	}
	return fmt.Sprintf("%s differs by %s: %s is allowed", c.Metric, c.Interval(s), c.Tolerated())
}

// tooVague explains that jobs differ by more than the tolerance.
func (c Criterion) tooVague(spread float64) string {
	return fmt.Sprintf("%s: jobs on this machine differ by %.1f %%, so no single job can prove that it is at most %s; widen the margin, "+
		"save the baseline again in further jobs, or measure the baseline's model", c.Metric, 100*spread, c.Tolerated())
}

// Flags counts the windows of the pairs, and those with each flag.
func Flags(pairs []Pair) (windows int, flagged map[measure.Flag]int) {
	flagged = map[measure.Flag]int{}
	for _, p := range pairs {
		for _, side := range []measure.Measurement{p.Baseline, p.Candidate} {
			windows += len(side.Windows)
			for _, w := range side.Windows {
				for _, f := range w.Flags {
					flagged[f]++
				}
			}
		}
	}
	return windows, flagged
}
