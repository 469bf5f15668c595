package verdict

import (
	"fmt"
	"math"
	"strings"

	"tuner/measure"
	"tuner/search"
)

// Sentences say the decision to people, the answer first. Every output that uses words for it uses these.
func (v Verdict) Sentences(goal search.Goal) []string {
	var list []string
	add := func(format string, values ...any) { list = append(list, fmt.Sprintf(format, values...)) }
	if v.State == Unfinished {
		add("%s", v.unfinished())
	}
	switch {
	case v.State == Unmeasured:
		add("Nothing was measured.")
		return list
	case v.Recommended != nil:
		add("Recommended (%s): %s.", v.State, v.Recommended.Text(goal))
	case v.Edge != nil:
		add("At the edge: %s. Nothing that was measured keeps the limits with a probability of %s%s.",
			v.Edge.Text(goal), Percent(v.Confidence), v.Edge.remedy())
	default:
		add("Nothing satisfies the limits. Nearest: %s.", v.Nearest.Text(goal))
		if text := v.Tradeoffs.String(); text != "" {
			add("%s", text)
		}
	}
	if text := v.against(goal); text != "" {
		add("%s", text)
	}
	if v.Recommended != nil && v.Edge != nil {
		add("At the edge: %s.", v.Edge.Text(goal))
	}
	if text := v.Loosened(goal); text != "" {
		add("%s", text)
	}
	if v.State != Unfinished && v.Satisfies() {
		add("No other configuration is expected to be more than %.1f %% better (probability %s).", 100*v.More, Percent(v.Confidence))
	}
	return list
}

// unfinished says how much may be missing, and what to do.
func (v Verdict) unfinished() string {
	if math.IsInf(v.More, 1) {
		return "Unfinished: some configurations were never tried, so that it is not known how much better they may be. A larger budget tries them."
	}
	return fmt.Sprintf("Unfinished: something up to %.2g × better may exist. A larger budget looks for it.", 1+v.More)
}

// against says what the answer gains over the default.
func (v Verdict) against(goal search.Goal) string {
	answer := v.Answer()
	switch {
	case v.Default == nil || v.Nearest != nil:
		return ""
	case answer.Candidate.IsDefault():
		return "This is the default: nothing is shown to be better."
	case v.Default.Holds < Likely:
		return fmt.Sprintf("The default does not keep the limits: %s.", v.Default.Text(goal))
	case answer.Gain == nil:
		return ""
	}
	text := fmt.Sprintf("%s × the default [%s, %s], which has %s.", Factor(answer.Gain.Value), Factor(answer.Gain.Lo), Factor(answer.Gain.Hi), v.Default.figures(goal))
	if answer.Better < v.Confidence {
		return "Not shown to be better than the default: " + text
	}
	return text
}

// Text says a choice with its figures: what, at which load, what it does, and how surely.
func (c Choice) Text(goal search.Goal) string {
	text := fmt.Sprintf("%s at %s, %s", c.Candidate.Describe(), c.Load, c.figures(goal))
	if len(c.Limits) == 0 {
		return text
	}
	return fmt.Sprintf("%s; keeps the limits with a probability of %s", text, c.HoldsText())
}

// HoldsText is the probability that all limits are kept, or what is missing to tell it.
func (c Choice) HoldsText() string {
	for _, l := range c.Limits {
		if l.IsUnknown() {
			return fmt.Sprintf("%s by extrapolation (%s needs %d more requests)", Percent(c.Holds), l.Constraint.Metric, l.Needs)
		}
	}
	return Percent(c.Holds)
}

// remedy says what would decide a limit that is not known well enough.
func (c Choice) remedy() string {
	for _, l := range c.Limits {
		if l.IsUnknown() {
			return fmt.Sprintf(": %d more requests at this load would tell its %s", l.Needs, l.Constraint.Metric)
		}
	}
	return ""
}

// figures are the goal's metrics, the throughput and the latency that the goal cares for.
func (c Choice) figures(goal search.Goal) string {
	var parts []string
	var told []measure.Metric
	for _, metric := range append([]measure.Metric{measure.Throughput, goal.Latency()}, goal.Metrics()...) {
		e, ok := c.Values[metric]
		if !ok || contains(told, metric) {
			continue
		}
		told = append(told, metric)
		text := metric.Format(e.Value)
		if e.Hi > e.Lo && metric != measure.Memory {
			text = fmt.Sprintf("%s [%s, %s]", text, metric.Format(e.Lo), metric.Format(e.Hi))
		}
		if metric != measure.Throughput {
			text = fmt.Sprintf("%s %s", metric, text)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func contains(list []measure.Metric, m measure.Metric) bool {
	for _, x := range list {
		if x == m {
			return true
		}
	}
	return false
}

// near is how far beyond a limit a reader may want to know of, as a factor.
const near = 1.5

// Loosened says what the next step of a limit would bring, where it is near and brings more than a tie: "" otherwise.
func (v Verdict) Loosened(goal search.Goal) string {
	answer := v.Recommended
	if answer == nil {
		return ""
	}
	for i, curve := range v.Curves {
		if i >= len(goal.Constraints) || curve.IsLeast {
			continue
		}
		limit := *goal.Constraints[i].Max
		for _, s := range curve.Steps {
			d := v.Choices[s.Choice].Score.Mean - answer.Score.Mean
			if s.Limit > limit && s.Limit <= near*limit && goal.Objective.Gain(0, d) > worthMore {
				return fmt.Sprintf("%s %s instead of %s would bring %+.0f %%: %s.", curve.Metric, curve.Metric.Format(s.Limit),
					curve.Metric.Format(limit), 100*goal.Objective.Gain(0, d), v.Choices[s.Choice].Candidate.Describe())
			}
		}
	}
	return ""
}

// Percent is a probability or a share in words: "97 %", ">99 %", "<1 %".
func Percent(p float64) string {
	switch {
	case p > 0.99 && p < 1 || p >= 1:
		return ">99 %"
	case p < 0.01:
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", math.Floor(100*p+0.5))
}

// Factor is a ratio with three digits.
func Factor(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
