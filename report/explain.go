package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// section is a part of the explanation: sentences, a table where there is one, and what one should know to read it.
type section struct {
	title string
	lines []string
	heads []terminal.Column
	cells [][]string
	notes []string
}

// WriteExplanation writes for a terminal why the best configuration is the best.
func WriteExplanation(w io.Writer, r analyze.Result) error {
	var b strings.Builder
	sections := explanation(r)
	if len(sections) == 0 {
		fmt.Fprintf(&b, "There is nothing to explain: %s.\n", unexplained(r))
	} else if lines := foldLines(r); len(lines) > 0 {
		last := &sections[len(sections)-1]
		last.lines = append(last.lines, lines...)
	}
	for i, s := range sections {
		if i > 0 {
			fmt.Fprintln(&b)
		}
		fmt.Fprintf(&b, "%s\n", s.title)
		for _, line := range s.lines {
			fmt.Fprintln(&b, line)
		}
		if len(s.cells) > 0 {
			if err := terminal.WriteTable(&b, s.heads, s.cells); err != nil {
				return err
			}
		}
		for _, line := range s.notes {
			fmt.Fprintln(&b, line)
		}
	}
	if _, err := io.WriteString(w, terminal.Fold(terminal.Plain(b.String()), terminal.Width)); err != nil {
		return fmt.Errorf("cannot write explanation: %w", err)
	}
	return nil
}

// unexplained says why there is no explanation.
func unexplained(r analyze.Result) string {
	if slices.ContainsFunc(r.Configs, func(c analyze.Config) bool { return c.Best != nil }) {
		return "the best of the campaign is not among the configurations that are reported"
	}
	return "nothing was measured"
}

// writeExplanation writes the section of report.md. What was folded has a section of its own there.
func writeExplanation(b *strings.Builder, r analyze.Result) {
	sections := explanation(r)
	if len(sections) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Why this configuration\n")
	for _, s := range sections {
		fmt.Fprintf(b, "\n### %s\n\n", escapeMarkdown(s.title))
		for _, line := range s.lines {
			fmt.Fprintf(b, "- %s\n", escapeMarkdown(line))
		}
		if len(s.cells) > 0 {
			if len(s.lines) > 0 {
				fmt.Fprintln(b)
			}
			titles := make([]string, len(s.heads))
			for i, head := range s.heads {
				titles[i] = head.Title
			}
			b.WriteString(markdownTable(titles, s.cells, nil))
		}
		for _, line := range s.notes {
			fmt.Fprintf(b, "\n%s\n", escapeMarkdown(line))
		}
	}
}

// explanation is what there is to say, in the order in which it is read; nothing where nothing is explained.
func explanation(r analyze.Result) []section {
	if len(r.Explanation.Subjects) == 0 {
		return nil
	}
	var sections []section
	for _, s := range []section{comparison(r), limitations(r), knobTable(r), predictionTable(r), untried(r)} {
		if len(s.lines)+len(s.cells) > 0 {
			sections = append(sections, s)
		}
	}
	return sections
}

// comparison puts the best beside the other subjects.
func comparison(r analyze.Result) section {
	subjects := r.Explanation.Subjects
	best := configOf(r, subjects[0])
	s := section{title: "Why " + nameAndSetup(r, best)}
	if !best.Satisfies() {
		s.title = "Nearest to the constraints: " + nameAndSetup(r, best)
		s.lines = append(s.lines, fmt.Sprintf("At %s %s.", best.Best.Load, verdict.MissesText(best.Best.Misses)))
		return s
	}
	if x, known := choiceOf(r, best); known {
		s.lines = append(s.lines, wordsOf(r).Text(x)+".")
	}
	for _, other := range subjects[1:] {
		c := configOf(r, other)
		name := nameAndSetup(r, c)
		switch {
		case other.Change == nil && c.Satisfies():
			s.lines = append(s.lines, fmt.Sprintf("%s at %s cannot be compared: %s.", name, other.Load, incomparable(r, *best.Best, *c.Best)))
		case other.Change == nil:
			s.lines = append(s.lines, fmt.Sprintf("%s does not satisfy the constraints: at %s %s.", name, c.Best.Load, verdict.MissesText(c.Best.Misses)))
		case c.Candidate.IsDefault() && best.Gain != nil:
			s.lines = append(s.lines, fmt.Sprintf("It has %s, at %s.", verdict.Words{Goal: r.Goal}.GainText(*best.Gain), other.Load))
		case len(c.TiedWith) > 0:
			s.lines = append(s.lines, fmt.Sprintf("%s at %s is tied with it in %s: %s.", name, other.Load, gainOf(r), verdict.ChangeText(*other.Change)))
		default:
			s.lines = append(s.lines, fmt.Sprintf("%s at %s is %s in %s%s.", name, other.Load, verdict.ChangeText(*other.Change), gainOf(r), whyNot(r, c, *other.Change)))
		}
	}
	return s
}

// incomparable says why there is no change from one configuration to another, both within the constraints.
func incomparable(r analyze.Result, from, to analyze.Point) string {
	if !r.AreComparable(from, to) {
		return "it was measured on another server"
	}
	return "it was measured at too few loads for a mean"
}

// whyNot says why something that looks better is not the best.
func whyNot(r analyze.Result, c analyze.Config, change measure.Estimate) string {
	x, known := choiceOf(r, c)
	switch {
	case change.Value <= 0 || !known:
		return ""
	case c.FailedFinals:
		return ", but a fresh process of it failed"
	case x.Holds < r.Verdict.Confidence || x.IsUnknown():
		return ", but keeps the limits with a probability of " + x.HoldsText()
	}
	return ", which is not shown well enough to give up what is simpler"
}

func configOf(r analyze.Result, s analyze.Subject) analyze.Config {
	c, _ := r.Config(s.Name) // a subject is one of the configurations
	return c
}

// isNone reports whether a change may be none, and is hardly any.
func isNone(change measure.Estimate) bool {
	const hardly = 0.01 // what counts as a tie
	return change.Lo <= 0 && 0 <= change.Hi && math.Abs(change.Value) <= hardly
}

// tenths is a share in per cent, rounded to a tenth; never −0.
func tenths(share float64) float64 { return math.Round(share*1000)/10 + 0 }

// knobTable says which knob matters how much. Knobs of which no difference can be told share a line.
func knobTable(r analyze.Result) section {
	s := section{title: "Which knob matters how much", heads: []terminal.Column{
		{Title: "Knob"}, {Title: "Chosen"}, {Title: "Instead"}, {Title: "Change in " + gainOf(r)}, {Title: "Basis"},
	}}
	var alike, alone []string
	isBelieved := false // by a strategy that predicts
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
			s.cells = append(s.cells, append(slices.Clone(first), valueText(k.Knob, e.Value), effectText(e), basisText(e.Basis)))
			first = []string{"", ""}
		}
	}
	switch {
	case len(s.cells) == 0:
	case isBelieved:
		s.notes = append(s.notes, "The best with another value against the best with the chosen one, all other knobs and the load free; in parentheses 95 % intervals.")
	default:
		s.notes = append(s.notes, "The best that was measured with another value against the best with the chosen one; in parentheses 95 % intervals. "+
			"Where little was measured, other knobs may have their part in it.")
	}
	if len(alike) > 0 {
		s.lines = append(s.lines, "There is no difference to speak of between the values of "+strings.Join(alike, ", ")+".")
	}
	if len(alone) > 0 {
		s.lines = append(s.lines, "No other value was measured of "+strings.Join(alone, ", ")+".")
	}
	return s
}

// tells reports whether an effect is one.
func tells(e search.Effect) bool {
	return len(e.Misses) > 0 || e.Basis != search.BasisUnknown && !isNone(e.Change)
}

func effectText(e search.Effect) string {
	switch {
	case len(e.Misses) > 0:
		return "misses " + missText(e.Misses[0])
	case e.Basis == search.BasisUnknown:
		return unknown
	case e.Basis == search.BasisBound && e.Change.Hi < 0:
		return fmt.Sprintf("at least %.1f %% worse", tenths(-e.Change.Hi))
	case e.Basis == search.BasisBound:
		return fmt.Sprintf("at most %.1f %% better", tenths(e.Change.Hi))
	}
	return verdict.ChangeText(e.Change)
}

// missText says in a few words what is missed: "p99 ≤ 50 ms by 22 %", or where it is more than twice that "p99 ≤ 50 ms: 310 ms".
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
		return "not started: by its bounds"
	case search.BasisUnknown:
		return "no figures" // not tried, failed, or left out of the space
	}
	return string(b)
}

// valueText prints a knob's value for people.
func valueText(knob string, v search.Value) string {
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

// predictionTable puts what was predicted beside what was measured.
func predictionTable(r analyze.Result) section {
	s := section{title: "Predicted and measured", heads: []terminal.Column{
		{Title: "Config"}, {Title: loadHeader(r), Right: true}, {Title: "Metric"}, {Title: "Simulated"}, {Title: "Believed"}, {Title: "Measured"}, {Title: "Belief"},
	}}
	for _, subject := range r.Explanation.Subjects {
		c := configOf(r, subject)
		first := []string{shortName(r, c), loadCell(c)}
		for _, p := range subject.Predictions {
			s.cells = append(s.cells, append(slices.Clone(first), predictionRow(p)...))
			first = []string{"", ""}
		}
	}
	if len(s.cells) == 0 {
		return s
	}
	if curve := r.Explanation.Subjects[0].Curve; curve != nil {
		s.lines = append(s.lines, curveText(*curve))
	}
	s.notes = append(s.notes, "Simulated: by the queue simulation, from what batches take in the engine process; in parentheses how far off that was. Believed: "+
		"corrected by the windows of the search, before the first final; of what the finals measured. It holds where the 95 % intervals overlap.")
	for _, m := range r.Explanation.Dropped {
		s.notes = append(s.notes, fmt.Sprintf("The simulation was too far off in %s: the search went on without it.", verdict.Label(m)))
	}
	return s
}

func predictionRow(p analyze.Prediction) []string {
	row := []string{verdict.Label(p.Metric), unknown, unknown, verdict.Interval(p.Metric, p.Measured), unknown}
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

// withoutUnit drops the unit of a value where that goes without saying: behind the number that the text begins with.
func withoutUnit(m measure.Metric, text string) string {
	if m == measure.Throughput {
		return strings.Replace(text, " infer/s", "", 1)
	}
	return text
}

// curveText says what batches take in the best configuration's engine process.
func curveText(c analyze.ServiceCurve) string {
	parts := make([]string, len(c.Sizes))
	for i, size := range c.Sizes {
		parts[i] = fmt.Sprintf("%d: %s", size, measure.ComputeInfer.Format(c.Alone[i]))
	}
	text := "What a batch takes in its engine process, by size: " + strings.Join(parts, ", ")
	last := len(c.Sizes) - 1
	if len(c.Crowded) > last {
		text += fmt.Sprintf("; %.2f × as long with all instances busy", c.Crowded[last]/c.Alone[last])
	}
	if last > 0 {
		text += fmt.Sprintf(". An inference takes %s of a batch of %d, by itself %s",
			measure.ComputeInfer.Format(c.Alone[last]/float64(c.Sizes[last])), c.Sizes[last], measure.ComputeInfer.Format(c.Alone[0]/float64(c.Sizes[0])))
	}
	return text + "."
}

// untried says what was not measured, and why that cannot matter.
func untried(r analyze.Result) section {
	u := r.Explanation.Untried
	s := section{title: "What was not tried"}
	s.lines = append(s.lines, fmt.Sprintf("%d of the space's %s were measured.", u.Measured, count(u.Candidates, "configuration")))
	if u.Predicted > 0 {
		s.lines = append(s.lines, fmt.Sprintf("Of %s there are predictions and no window: the service times of the engine process were measured.", count(u.Predicted, "further configuration")))
	}
	if u.Unreached > 0 {
		s.lines = append(s.lines, fmt.Sprintf("Of %s nothing is known: the campaign ended before.", count(u.Unreached, "further configuration")))
	}
	for _, f := range u.Skipped {
		s.lines = append(s.lines, fmt.Sprintf("%s: %s.", count(f.Count, "other"), firstLine(f.Reason)))
	}
	return s
}

// foldLines say what was left out of the space or merged.
func foldLines(r analyze.Result) []string {
	var lines []string
	for _, f := range r.Folds {
		lines = append(lines, fmt.Sprintf("%s left out or merged beforehand: %s.", count(f.Count, "combination"), firstLine(f.Reason)))
	}
	return lines
}
