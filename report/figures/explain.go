package figures

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// Section is a part of the explanation: sentences, a table, and notes below it. Each may be
// missing.
type Section struct {
	Title string
	Lines []string
	Heads []terminal.Column
	Cells [][]string
	Notes []string
}

// Unexplained returns the reason why there is no explanation.
func Unexplained(r analyze.Result) string {
	if slices.ContainsFunc(r.Configs, func(c analyze.Config) bool { return c.Best != nil }) {
		return "the campaign's best configuration is not among the reported ones"
	}
	return "nothing was measured"
}

// Explanation explains why the best configuration is the best, in sections. It returns none if the
// result has no explanation.
func Explanation(r analyze.Result) []Section {
	if len(r.Explanation.Subjects) == 0 {
		return nil
	}
	var sections []Section
	for _, s := range []Section{comparison(r), limitations(r), knobTable(r), predictionTable(r), untried(r)} {
		if len(s.Lines)+len(s.Cells) > 0 {
			sections = append(sections, s)
		}
	}
	return sections
}

// comparison compares the best with the other subjects.
func comparison(r analyze.Result) Section {
	subjects := r.Explanation.Subjects
	best := configOf(r, subjects[0])
	s := Section{Title: "Why " + NameAndSetup(r, best)}
	if !best.Satisfies() || best.FailedFinals {
		s.Title = "Nearest to the constraints: " + NameAndSetup(r, best)
		s.Lines = append(s.Lines, fmt.Sprintf("At %s %s.", best.Best.Load, best.Shortfall()))
		return s
	}
	if x, known := ChoiceOf(r, best); known {
		s.Lines = append(s.Lines, wordsOf(r).Text(x)+".")
	}
	for _, other := range subjects[1:] {
		c := configOf(r, other)
		name := NameAndSetup(r, c)
		switch {
		case other.Change == nil && c.Satisfies():
			s.Lines = append(s.Lines, fmt.Sprintf("%s at %s cannot be compared: %s.", name, other.Load, incomparable(r, *best.Best, *c.Best)))
		case other.Change == nil:
			s.Lines = append(s.Lines, fmt.Sprintf("%s does not satisfy the constraints: at %s %s.", name, c.Best.Load, c.Shortfall()))
		case c.Candidate.IsDefault() && best.Gain != nil:
			s.Lines = append(s.Lines, fmt.Sprintf("%s has %s; the default was measured at %s.", ShortName(r, best), verdict.Words{Goal: r.Goal}.GainText(*best.Gain), other.Load))
		case len(c.TiedWith) > 0:
			s.Lines = append(s.Lines, fmt.Sprintf("%s at %s is tied with it in %s: %s.", name, other.Load, GainOf(r), verdict.ChangeText(*other.Change)))
		default:
			s.Lines = append(s.Lines, fmt.Sprintf("%s at %s is %s in %s%s.", name, other.Load, verdict.ChangeText(*other.Change), GainOf(r), whyNot(r, c, *other.Change)))
		}
	}
	return s
}

// incomparable says why two configurations that satisfy the constraints cannot be compared.
func incomparable(r analyze.Result, from, to analyze.Point) string {
	if !r.AreComparable(from, to) {
		return "it was measured on another server"
	}
	return "it was measured at too few loads for a mean"
}

// whyNot says why a configuration that looks better is not the best.
func whyNot(r analyze.Result, c analyze.Config, change measure.Estimate) string {
	x, known := ChoiceOf(r, c)
	switch {
	case change.Value <= 0 || !known:
		return ""
	case c.FailedFinals:
		return ", but a fresh process of it failed"
	case !x.Keeps(r.Verdict.Confidence):
		return ", but keeps the limits with a probability of " + x.HoldsText()
	}
	return "; this is too uncertain to prefer it to the simpler configuration"
}

func configOf(r analyze.Result, s analyze.Subject) analyze.Config {
	c, _ := r.Config(s.Name) // always found: a subject is one of the configurations
	return c
}

// isNone reports whether a change is small and its interval includes zero.
func isNone(change measure.Estimate) bool {
	const hardly = 0.01 // a smaller change counts as a tie
	return change.Lo <= 0 && 0 <= change.Hi && math.Abs(change.Value) <= hardly
}

// tenths returns a share in percent, rounded to a tenth. It never returns −0.
func tenths(share float64) float64 { return math.Round(share*1000)/10 + 0 }

// knobTable shows how much each knob matters. Knobs without a known difference share a line.
func knobTable(r analyze.Result) Section {
	s := Section{Title: "Which knob matters how much", Heads: []terminal.Column{
		{Title: "Knob"}, {Title: "Chosen"}, {Title: "Instead"}, {Title: "Change in " + GainOf(r)}, {Title: "Basis"},
	}}
	var alike, alone []string
	isBelieved := false // by the beliefs of a strategy that predicts
	for _, k := range r.Explanation.Knobs {
		name := fmt.Sprintf("%s (%s)", k.Knob, valueText(k.Knob, k.Chosen))
		switch {
		case !slices.ContainsFunc(k.Others, func(e search.Effect) bool { return e.Basis != search.BasisUnknown }):
			alone = append(alone, name)
			continue
		case !slices.ContainsFunc(k.Others, tells):
			alike = append(alike, name)
			continue
		}
		first := []string{k.Knob, valueText(k.Knob, k.Chosen)}
		for _, e := range k.Others {
			isBelieved = isBelieved || e.Basis == search.BasisPredicted || e.Basis == search.BasisBound
			s.Cells = append(s.Cells, append(slices.Clone(first), valueText(k.Knob, e.Value), effectText(e), basisText(e.Basis)))
			first = []string{"", ""}
		}
	}
	switch {
	case len(s.Cells) == 0:
	case isBelieved:
		s.Notes = append(s.Notes, "Each row compares the best configuration with another value to the best with the chosen value. "+
			"All other knobs and the load may differ. Parentheses hold 95 % intervals.")
	default:
		s.Notes = append(s.Notes, "Each row compares the best measured configuration with another value to the best with the chosen value. "+
			"Parentheses hold 95 % intervals. If little was measured, other knobs may cause part of the change.")
	}
	if len(alike) > 0 {
		s.Lines = append(s.Lines, "These knobs make no clear difference: "+strings.Join(alike, ", ")+".")
	}
	if len(alone) > 0 {
		s.Lines = append(s.Lines, "No other value was measured for "+strings.Join(alone, ", ")+".")
	}
	return s
}

// tells reports whether a value of a knob has a known effect.
func tells(e search.Effect) bool {
	return len(e.Misses) > 0 || e.Basis != search.BasisUnknown && !isNone(e.Change)
}

func effectText(e search.Effect) string {
	switch {
	case len(e.Misses) > 0:
		return "misses " + missText(e.Misses[0])
	case e.Basis == search.BasisUnknown:
		return Unknown
	case e.Basis == search.BasisBound && e.Change.Hi < 0:
		return fmt.Sprintf("at least %.1f %% worse", tenths(-e.Change.Hi))
	case e.Basis == search.BasisBound:
		return fmt.Sprintf("at most %.1f %% better", tenths(e.Change.Hi))
	}
	return verdict.ChangeText(e.Change)
}

// missText names a missed limit: "p99 ≤ 50 ms by 22 %". Beyond twice the limit it gives the value:
// "p99 ≤ 50 ms: 310 ms".
func missText(m search.Miss) string {
	switch {
	case m.Missing:
		return verdict.Label(m.Constraint.Metric) + ", which is unknown"
	case m.Violation >= 1:
		return fmt.Sprintf("%s: %s", verdict.ConstraintText(m.Constraint), m.Constraint.Metric.Format(m.Value))
	}
	return fmt.Sprintf("%s by %.0f %%", verdict.ConstraintText(m.Constraint), 100*m.Violation)
}

func basisText(b search.Basis) string {
	switch b {
	case search.BasisBound:
		return "bound, not measured"
	case search.BasisUnknown:
		return "no figures" // not tried, failed, or left out of the space
	}
	return string(b)
}

// valueText prints a knob's value for people.
func valueText(name string, v search.Value) string {
	_, knob := search.SplitKnob(name)
	switch {
	case knob == search.KnobIntraOpThreads && v == "0":
		return "all cores"
	case knob == search.KnobMaxQueueDelay:
		return strings.Replace(string(v), "us", " µs", 1)
	case v == "[]":
		return "none"
	}
	return string(v)
}

// predictionTable compares predictions with measurements.
func predictionTable(r analyze.Result) Section {
	s := Section{Title: "Predicted and measured", Heads: []terminal.Column{
		{Title: "Config"}, {Title: loadHeader(r), Right: true}, {Title: "Metric"}, {Title: "Simulated"}, {Title: "Believed"}, {Title: "Measured"}, {Title: "Belief"},
	}}
	for _, subject := range r.Explanation.Subjects {
		c := configOf(r, subject)
		first := []string{ShortName(r, c), loadCell(c)}
		for _, p := range subject.Predictions {
			s.Cells = append(s.Cells, append(slices.Clone(first), predictionRow(p)...))
			first = []string{"", ""}
		}
	}
	if len(s.Cells) == 0 {
		return s
	}
	if curve := r.Explanation.Subjects[0].Curve; curve != nil {
		s.Lines = append(s.Lines, curveText(*curve))
	}
	s.Notes = append(s.Notes, "Simulated: the result of the queue simulation from measured batch times, with its error in parentheses. "+
		"Believed: the prediction before the first final, corrected by measured windows. A belief holds if its 95 % interval overlaps the measured one.")
	for _, m := range r.Explanation.Dropped {
		s.Notes = append(s.Notes, fmt.Sprintf("The simulation was too far off in %s, so the search stopped using it.", verdict.Label(m)))
	}
	return s
}

func predictionRow(p analyze.Prediction) []string {
	row := []string{verdict.Label(p.Metric), Unknown, Unknown, verdict.Interval(p.Metric, p.Measured), Unknown}
	if p.Simulated != nil {
		row[1] = withoutUnit(p.Metric, p.Metric.Format(*p.Simulated))
		if p.Measured.Value > 0 {
			row[1] += fmt.Sprintf(" (%+.1f %%)", tenths(*p.Simulated/p.Measured.Value-1))
		}
	}
	if p.Believed == nil {
		return row
	}
	row[2], row[4] = withoutUnit(p.Metric, verdict.Interval(p.Metric, *p.Believed)), "holds"
	if !p.Holds() {
		row[4] = fmt.Sprintf("off by %+.1f %%", tenths(p.Believed.Value/p.Measured.Value-1))
	}
	return row
}

// withoutUnit drops the unit of throughput behind the first number of a text.
func withoutUnit(m measure.Metric, text string) string {
	if m == measure.Throughput {
		return strings.Replace(text, " infer/s", "", 1)
	}
	return text
}

// curveText gives the times of batches in the engine process of the best configuration.
func curveText(c analyze.ServiceCurve) string {
	parts := make([]string, len(c.Sizes))
	for i, size := range c.Sizes {
		parts[i] = fmt.Sprintf("%d: %s", size, measure.ComputeInfer.Format(c.Alone[i]))
	}
	text := "Time of a batch in its engine process, by size: " + strings.Join(parts, ", ")
	last := len(c.Sizes) - 1
	if len(c.Crowded) > last {
		text += fmt.Sprintf("; %.2f × as long with all instances busy", c.Crowded[last]/c.Alone[last])
	}
	if last > 0 {
		text += fmt.Sprintf(". One inference takes %s in a batch of %d, and %s alone",
			measure.ComputeInfer.Format(c.Alone[last]/float64(c.Sizes[last])), c.Sizes[last], measure.ComputeInfer.Format(c.Alone[0]/float64(c.Sizes[0])))
	}
	return text + "."
}

// untried counts the configurations that were not measured, with the reasons.
func untried(r analyze.Result) Section {
	u := r.Explanation.Untried
	s := Section{Title: "What was not tried"}
	s.Lines = append(s.Lines, fmt.Sprintf("%d of the space's %s were measured.", u.Measured, words.Count(u.Candidates, "configuration")))
	if u.Predicted > 0 {
		s.Lines = append(s.Lines, fmt.Sprintf("Only predictions exist for %s, made from measured batch times.", words.Count(u.Predicted, "further configuration")))
	}
	if u.Unreached > 0 {
		s.Lines = append(s.Lines, fmt.Sprintf("Nothing is known about %s: the campaign ended first.", words.Count(u.Unreached, "further configuration")))
	}
	for _, f := range u.Skipped {
		s.Lines = append(s.Lines, fmt.Sprintf("%s: %s.", words.Count(f.Count, "other"), firstLine(f.Reason)))
	}
	return s
}

// FoldLines count the combinations that were left out of the space or merged.
func FoldLines(r analyze.Result) []string {
	var lines []string
	for _, f := range r.Folds {
		lines = append(lines, fmt.Sprintf("%s left out or merged beforehand: %s.", words.Count(f.Count, "combination"), firstLine(f.Reason)))
	}
	return lines
}
