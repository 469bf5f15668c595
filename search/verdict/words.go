package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tuner/internal/words"
	"tuner/measure"
	"tuner/search"
)

// Words describe a decision for people. All textual outputs use them.
type Words struct {
	Goal search.Goal
	Name func(search.Candidate) string // name of a configuration; nil: its settings
	// IsExact means that the figures have no known errors, so no probability is printed.
	IsExact bool
}

// Line is one statement of an answer with its subject: "At the edge", "2 instances at …".
type Line struct{ Name, Text string }

// String returns the printed line.
func (l Line) String() string { return l.Name + ": " + l.Text }

// The names of an answer's lines. Each occurs at most once.
const (
	LineRecommended = "Recommended"
	LineEdge        = "At the edge"
	LineNearest     = "Nearest"
	LineDefault     = "Default"
	LineLooser      = "Looser limit"
	LineElse        = "Anything else"
	LineNext        = "Next"
)

// Badge returns the state as a title.
func (s State) Badge() string { return strings.ToUpper(string(s[:1])) + string(s[1:]) }

// Headline returns the first sentence of an answer: the state and its grounds.
func (v Verdict) Headline(w Words) string {
	switch v.State {
	case Unmeasured:
		return "Nothing was measured."
	case Nothing:
		return "Nothing satisfies the limits."
	case Unfinished:
		return v.unfinished()
	case Close:
		if l, ok := v.Answer().unknown(); ok && v.Answer().Holds >= v.Confidence {
			return fmt.Sprintf("%s: too few requests were measured to tell %s.", Close.Badge(), Label(l.Constraint.Metric))
		}
		return fmt.Sprintf("%s: no measured configuration keeps the limits with a probability of %s.", Close.Badge(), Percent(v.Confidence))
	case NoGain:
		return NoGain.Badge() + ": no configuration is shown to be better than the default" + w.Within() + "."
	}
	switch answer := v.Answer(); {
	case answer.Gain != nil:
		return fmt.Sprintf("%s: %s%s.", Proven.Badge(), w.GainText(*answer.Gain), w.Within())
	case v.Default == nil:
		return Proven.Badge() + ": the best" + w.Within() + ". The default was not measured."
	}
	return Proven.Badge() + ": the best" + w.Within() + v.withoutDefault() + "."
}

// withoutDefault says why an answer has no gain over the default, as the end of a sentence.
func (v Verdict) withoutDefault() string {
	switch {
	case v.Default.Holds >= Likely:
		return "; it was not compared with the default"
	case v.Unseen != nil:
		return ", which the default does not keep" + v.Unseen.text()
	case v.Default.Holds > 1-v.Confidence:
		return ", which the default probably does not keep"
	}
	return ", which the default does not keep"
}

// misses says what keeps a choice from being recommended, as the end of a sentence that has the probability of its limits.
func misses(c Choice) string {
	if len(c.Misses) == 0 && c.MayLead() {
		return ""
	}
	return "; " + c.Shortfall()
}

// Shortfall says why a choice is not likely to keep the limits, or may not lead: what its figures miss. Where they miss
// nothing, the choice may not lead, or limits that are each likely to be kept are not likely to be kept together.
func (c Choice) Shortfall() string {
	switch {
	case len(c.Misses) > 0:
		return MissesText(c.Misses)
	case c.IsBroken:
		return "its fresh processes failed"
	case c.IsOutside:
		return "it was measured for load curves alone"
	}
	return "its limits are kept together with a probability of " + c.HoldsText()
}

// unfinished describes the gain that may be missing, and the next action.
func (v Verdict) unfinished() string {
	switch {
	case v.Nearest != nil && math.IsInf(v.More, 1):
		return Unfinished.Badge() + ": no measured configuration keeps the limits, and some were never tried; a larger --budget tries them."
	case v.Nearest != nil:
		return fmt.Sprintf("%s: no measured configuration is likely to keep the limits; another may, with a probability of %s; a larger --budget searches for it.",
			Unfinished.Badge(), Percent(v.Chance))
	case math.IsInf(v.More, 1):
		return Unfinished.Badge() + ": some configurations were never tried; a larger --budget tries them."
	case v.IsUnconfirmed:
		return Unfinished.Badge() + ": the answer was not measured again on a fresh process; a larger --budget measures it."
	}
	return fmt.Sprintf("%s: a configuration up to %s × better may exist; a larger --budget searches for it.", Unfinished.Badge(), Factor(1+v.More))
}

// Lines returns the statements behind the headline, the answer first.
func (v Verdict) Lines(w Words) []Line {
	var list []Line
	add := func(name, text string) {
		if text != "" {
			list = append(list, Line{name, text})
		}
	}
	switch {
	case v.Recommended != nil:
		add(LineRecommended, v.answerText(w))
	case v.Edge != nil:
		add(LineEdge, v.answerText(w))
	case v.Nearest != nil:
		add(LineNearest, w.Text(*v.Nearest)+misses(*v.Nearest)+".")
	}
	if v.Recommended != nil && v.Edge != nil {
		add(LineEdge, fmt.Sprintf("%s: %s, %s.", w.place(*v.Edge), w.brief(*v.Edge), changeWord(v.Edge.Against)))
	}
	if d, answer := v.Default, v.Answer(); d != nil && !answer.Candidate.IsDefault() {
		add(LineDefault, fmt.Sprintf("at %s: %s%s.", d.Load, w.brief(*d), misses(*d)))
	}
	add(LineLooser, v.Loosened(w.Goal))
	add(LineNext, v.Next())
	if v.State != Unfinished && v.Satisfies() {
		add(LineElse, fmt.Sprintf("at most %s better, with a probability of %s.", percents(v.More), Percent(v.Confidence)))
	}
	return list
}

// Sentences describe the whole decision, the answer first.
func (v Verdict) Sentences(goal search.Goal) []string {
	w := Words{Goal: goal}
	list := []string{v.Headline(w)}
	for i, l := range v.Lines(w) {
		if i == 0 && v.State == Nothing { // the headline and the first line need each other
			list[0] += " " + l.String()
			continue
		}
		list = append(list, l.String())
	}
	return list
}

// answerText describes the answer, with its gain unless the headline has it.
func (v Verdict) answerText(w Words) string {
	answer := *v.Answer()
	text := w.Text(answer)
	if answer.Gain != nil && v.State != Proven && !answer.Candidate.IsDefault() {
		text += "; " + w.GainText(*answer.Gain)
	}
	if answer.Candidate.IsDefault() {
		text += "; this is the default"
	}
	return text + "."
}

// Text describes a choice: configuration, load, figures, and certainty.
func (w Words) Text(c Choice) string { return w.place(c) + ": " + w.standing(c) }

// place describes a choice's configuration and load.
func (w Words) place(c Choice) string {
	name := c.Candidate.Describe()
	if w.Name != nil {
		name = w.Name(c.Candidate)
	}
	return fmt.Sprintf("%s at %s", name, c.Load)
}

// brief is a short form of standing, for choices beside the answer. "kept: 98 %?" is extrapolated.
func (w Words) brief(c Choice) string {
	text := w.Figures(c.Values)
	if len(c.Limits) == 0 || w.IsExact {
		return text
	}
	mark := ""
	if c.IsUnknown() {
		mark = "?"
	}
	return fmt.Sprintf("%s; kept: %s%s", text, Percent(c.Holds), mark)
}

// Text describes a choice that is named by its settings.
func (c Choice) Text(goal search.Goal) string { return Words{Goal: goal}.Text(c) }

// standing describes a choice's figures, and the probability that it keeps the limits.
func (w Words) standing(c Choice) string {
	text := w.Figures(c.Values)
	if len(c.Limits) == 0 {
		return text
	}
	switch {
	case !w.IsExact:
		return fmt.Sprintf("%s; %s kept: %s", text, w.limits(), c.HoldsText())
	case c.Holds >= Likely:
		return fmt.Sprintf("%s; %s kept", text, w.limits())
	}
	return text
}

// limits names the constraints if they are few: "p99 ≤ 50 ms".
func (w Words) limits() string {
	const most = 2
	if n := len(w.Goal.Constraints); n == 0 || n > most {
		return "limits"
	}
	_, names, _ := strings.Cut(strings.TrimPrefix(w.Within(), " "), " ")
	return names
}

// MissesText describes the miss of each constraint: "p99 is 59.4 ms, 19 % above the limit of 50.0
// ms".
func MissesText(misses []search.Miss) string {
	parts := make([]string, len(misses))
	for i, m := range misses {
		parts[i] = Label(m.Constraint.Metric) + strings.TrimPrefix(m.String(), string(m.Constraint.Metric))
	}
	return strings.Join(parts, "; ")
}

// Within names the constraints as the end of a phrase: " within p99 ≤ 50 ms", " with throughput ≥
// 100 infer/s". "" without any.
func (w Words) Within() string {
	word, parts := " within ", make([]string, len(w.Goal.Constraints))
	for i, c := range w.Goal.Constraints {
		parts[i] = ConstraintText(c)
		if c.Min != nil {
			word = " with "
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return word + strings.Join(parts, ", ")
}

// HoldsText describes the probability that all limits are kept, and the requests that are missing
// to know it by measurement alone.
func (c Choice) HoldsText() string {
	if l, ok := c.unknown(); ok {
		return fmt.Sprintf("%s by extrapolation (%s needs %s)", Percent(c.Holds), Label(l.Constraint.Metric), words.Count(l.Needs, "more request"))
	}
	return Percent(c.Holds)
}

// unknown returns the first limit with too few requests.
func (c Choice) unknown() (Limit, bool) {
	i := slices.IndexFunc(c.Limits, Limit.IsUnknown)
	if i < 0 {
		return Limit{}, false
	}
	return c.Limits[i], true
}

// Next describes the next action if one could change the answer; "" otherwise.
func (v Verdict) Next() string {
	answer := v.Answer()
	switch {
	case v.State == Unmeasured || v.State == Unfinished: // the headline says it
		return ""
	case v.State == Nothing:
		if text := v.Tradeoffs.String(); text != "" {
			return text
		}
		return "loosen the limits, or search longer with a larger --budget."
	case v.State != Close:
		return ""
	}
	if l, ok := answer.unknown(); ok {
		return fmt.Sprintf("%s at %s would show its %s.", words.Count(l.Needs, "more request"), answer.Load, Label(l.Constraint.Metric))
	}
	text := "a larger --budget searches for a safer configuration"
	if p := math.Floor(20*answer.Holds) / 20; p > Likely && p < v.Confidence { // in steps of 5 %
		text += fmt.Sprintf("; --confidence %.2g recommends this one", p)
	}
	return text + "."
}

// Figures describe the throughput, the goal's latency, and the goal's other metrics.
func (w Words) Figures(values map[measure.Metric]measure.Estimate) string {
	var parts []string
	var told []measure.Metric
	for _, metric := range append([]measure.Metric{measure.Throughput, w.Goal.Latency()}, w.Goal.Metrics()...) {
		e, ok := values[metric]
		if !ok || slices.Contains(told, metric) || metric == measure.Throughput && w.isOfSeveral() || metric == measure.Scale {
			continue // the load has the scale, and with it the throughputs
		}
		told = append(told, metric)
		text := Interval(metric, e)
		if metric != measure.Throughput {
			text = Label(metric) + " " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// isOfSeveral reports whether the goal is the scale of several models' traffic.
func (w Words) isOfSeveral() bool {
	return slices.ContainsFunc(w.Goal.Objective.Terms, func(t search.Term) bool { return t.Metric == measure.Scale })
}

// Interval prints a value with its 95 % interval, whose ends do not repeat the unit: "31.4 ms
// [28.4, 34.7]". An interval of memory carries no information and is omitted.
func Interval(metric measure.Metric, e measure.Estimate) string {
	value, lo, hi := metric.Format(e.Value), metric.Format(e.Lo), metric.Format(e.Hi)
	if e.Hi <= e.Lo || metric == measure.Memory {
		return value
	}
	if at := strings.IndexByte(value, ' '); at >= 0 {
		unit := value[at:]
		if strings.HasSuffix(lo, unit) && strings.HasSuffix(hi, unit) {
			lo, hi = strings.TrimSuffix(lo, unit), strings.TrimSuffix(hi, unit)
		}
	}
	return fmt.Sprintf("%s [%s, %s]", value, lo, hi)
}

// near is the largest factor beyond a limit at which a step is worth a sentence.
const near = 1.5

// Loosened describes the next step of a limit if it is near and brings more than worthMore; ""
// otherwise.
func (v Verdict) Loosened(goal search.Goal) string {
	answer := v.Recommended
	if answer == nil {
		return ""
	}
	for _, c := range goal.Constraints {
		i := slices.IndexFunc(v.LimitCurves, func(curve LimitCurve) bool { return curve.Metric == c.Metric && !curve.IsLeast })
		if c.Max == nil || c.Min != nil || i < 0 {
			continue
		}
		for _, s := range v.LimitCurves[i].Steps {
			gain := goal.Objective.Gain(0, v.Choices[s.Choice].Score.Mean-answer.Score.Mean)
			if s.Limit > *c.Max && s.Limit <= near**c.Max && gain > worthMore {
				return fmt.Sprintf("%s %s instead of %s would bring %+.0f %%.", Label(c.Metric), LimitText(c.Metric, upwards(s.Limit)),
					LimitText(c.Metric, *c.Max), 100*gain)
			}
		}
	}
	return ""
}

// upwards rounds a limit up to three digits, since a lower limit would not reach the step.
func upwards(x float64) float64 {
	scale := math.Pow(10, math.Floor(math.Log10(x))-2)
	const slack = 1e-9 // relative error of the arithmetic
	return math.Ceil(x/scale-slack) * scale
}

// GainText describes a gain over the default as the ratio of the objective's own values: "1.84 ×
// the default's throughput [1.80, 1.88]", "0.62 × the default's p99". A gain is at least 0.
func (w Words) GainText(gain measure.Estimate) string {
	r := w.Ratio(gain)
	text := Factor(r.Value) + " × the default's " + Label(w.Goal.Objective.Terms[0].Metric)
	if len(w.Goal.Objective.Terms) > 1 {
		text = Factor(r.Value) + " × better than the default in the objective"
	}
	if r.Lo == r.Hi {
		return text
	}
	return fmt.Sprintf("%s [%s, %s]", text, Factor(r.Lo), Factor(r.Hi))
}

// Ratio converts a gain to the ratio of the objective's own values with its interval. It is below 1
// if the objective is one metric that falls, and less is better.
func (w Words) Ratio(gain measure.Estimate) measure.Estimate {
	a, b := w.ratio(gain.Lo), w.ratio(gain.Hi)
	return measure.Estimate{Value: w.ratio(gain.Value), Lo: min(a, b), Hi: max(a, b)}
}

func (w Words) ratio(gain float64) float64 {
	terms := w.Goal.Objective.Terms
	if len(terms) == 1 {
		if info, _ := terms[0].Metric.Info(); !info.HigherBetter {
			return 1 / gain
		}
	}
	return gain
}

// ChangeText prints a relative change of the objective against the best: "12.3 % worse (9.8 to
// 15.0)". If the 95 % interval contains 0, it says "probably": "probably 28 % worse (−49 to +2)".
func ChangeText(change measure.Estimate) string {
	word, value, lo, hi := "better", change.Value, change.Lo, change.Hi
	if change.Value < 0 {
		word, value, lo, hi = "worse", -change.Value, -change.Hi, -change.Lo
	}
	switch {
	case math.Abs(change.Value) < 0.0005 && lo == hi:
		return "the same"
	case math.Abs(change.Value) < 0.0005:
		return fmt.Sprintf("the same (%s to %s)", signed(change.Lo), signed(change.Hi))
	case change.Lo <= 0 && 0 <= change.Hi && change.Lo < change.Hi:
		return fmt.Sprintf("probably %s %s (%s to %s)", percents(value), word, signed(change.Lo), signed(change.Hi))
	case lo == hi:
		return percents(value) + " " + word
	}
	return fmt.Sprintf("%s %s (%.1f to %.1f)", percents(value), word, 100*lo, 100*hi)
}

// changeWord prints a change without its interval: "14 % better".
func changeWord(change measure.Estimate) string {
	text, _, _ := strings.Cut(ChangeText(change), " (")
	return text
}

// percents prints a share in per cent, with a decimal if it is significant: "2.7 %", "28 %".
func percents(share float64) string {
	if math.Abs(share) >= 0.1 {
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// signed prints a share in per cent with its sign and without the unit, never −0.
func signed(share float64) string {
	text := fmt.Sprintf("%+.1f", math.Round(1000*share)/10+0)
	if math.Abs(share) >= 0.1 {
		text = fmt.Sprintf("%+.0f", 100*share)
	}
	return strings.Replace(text, "-", "−", 1)
}

// Percent prints a probability: "97 %", ">99 %", "<1 %". It rounds down, so that a value below the
// required confidence never reads as if it reached it.
func Percent(p float64) string {
	const slack = 1e-9 // of the arithmetic: 100 × 0.29 is below 29
	switch {
	case p > 0.99+slack:
		return ">99 %"
	case p < 0.01:
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", math.Floor(100*p+slack))
}

// Factor prints a ratio with three digits.
func Factor(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
