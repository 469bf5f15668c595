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
	s := section{title: "Why " + nameAndSetup(best)}
	if !best.Satisfies() {
		s.title = "Nearest to the constraints: " + nameAndSetup(best)
		s.lines = append(s.lines, fmt.Sprintf("At %s %s.", best.Best.Load, missesText(best.Best.Misses)))
		return s
	}
	s.lines = append(s.lines, fmt.Sprintf("At %s: %s%s.", best.Best.Load, figures(r.Goal, best), within(r.Goal)))
	for _, other := range subjects[1:] {
		c := configOf(r, other)
		name := nameAndSetup(c)
		switch {
		case other.Change == nil && c.Satisfies():
			s.lines = append(s.lines, fmt.Sprintf("%s at %s cannot be compared: %s.", name, other.Load, incomparable(r, *best.Best, *c.Best)))
		case other.Change == nil:
			s.lines = append(s.lines, fmt.Sprintf("%s does not satisfy the constraints: at %s %s.", name, c.Best.Load, missesText(c.Best.Misses)))
		case isOpen(*other.Change):
			s.lines = append(s.lines, fmt.Sprintf("%s at %s cannot be told apart from it in %s: %s.", name, other.Load, gainOf(r), changeText(*other.Change)))
		default:
			s.lines = append(s.lines, fmt.Sprintf("%s at %s is %s in %s%s.", name, other.Load, changeText(*other.Change), gainOf(r), unconfirmed(c, *other.Change)))
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

// unconfirmed says why something that looks better is not the best.
func unconfirmed(c analyze.Config, change measure.Estimate) string {
	switch {
	case change.Value <= 0 || c.Best.Confirmed:
		return ""
	case c.FailedFinals:
		return ", by windows of the search alone: its finals failed"
	}
	return ", by windows of the search alone, which flatter what they choose"
}

func configOf(r analyze.Result, s analyze.Subject) analyze.Config {
	c, _ := r.Config(s.Name) // a subject is one of the configurations
	return c
}

// isOpen reports whether a change may be none.
func isOpen(change measure.Estimate) bool { return change.Lo <= 0 && 0 <= change.Hi }

// changeText prints a relative change of the objective: "12.3 % worse (9.8 to 15.0)", or with signs where it may be none.
func changeText(change measure.Estimate) string {
	switch {
	case isOpen(change):
		return fmt.Sprintf("%+.1f %% (%+.1f to %+.1f)", tenths(change.Value), tenths(change.Lo), tenths(change.Hi))
	case change.Value < 0:
		return fmt.Sprintf("%.1f %% worse (%.1f to %.1f)", tenths(-change.Value), tenths(-change.Hi), tenths(-change.Lo))
	}
	return fmt.Sprintf("%.1f %% better (%.1f to %.1f)", tenths(change.Value), tenths(change.Lo), tenths(change.Hi))
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
		s.lines = append(s.lines, "No difference can be told between the values of "+strings.Join(alike, ", ")+".")
	}
	if len(alone) > 0 {
		s.lines = append(s.lines, "No other value was measured of "+strings.Join(alone, ", ")+".")
	}
	return s
}

// tells reports whether an effect is known not to be none.
func tells(e search.Effect) bool {
	return len(e.Misses) > 0 || e.Basis != search.BasisUnknown && !isOpen(e.Change)
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
	return changeText(e.Change)
}

// missText says in a few words what is missed: "p99 ≤ 50 ms by 22 %", or where it is more than twice that "p99 ≤ 50 ms: 310 ms".
func missText(m search.Miss) string {
	switch {
	case m.Missing:
		return metricLabel(m.Constraint.Metric) + ", which is unknown"
	case m.Violation >= 1:
		return fmt.Sprintf("%s: %s", constraintText(m.Constraint), m.Constraint.Metric.Format(m.Value))
	}
	return fmt.Sprintf("%s by %.0f %%", constraintText(m.Constraint), 100*m.Violation)
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
		s.notes = append(s.notes, fmt.Sprintf("The simulation was too far off in %s: the search went on without it.", metricLabel(m)))
	}
	return s
}

func predictionRow(p analyze.Prediction) []string {
	row := []string{metricLabel(p.Metric), unknown, unknown, aroundText(p.Metric, p.Measured), unknown}
	if p.Simulated != nil {
		row[1] = p.Metric.Format(*p.Simulated)
		if p.Measured.Value > 0 {
			row[1] += fmt.Sprintf(" (%+.1f %%)", tenths(*p.Simulated/p.Measured.Value-1))
		}
	}
	if p.Believed == nil {
		return row
	}
	row[2], row[4] = aroundText(p.Metric, *p.Believed), "holds"
	if !p.Holds() {
		row[4] = fmt.Sprintf("off by %+.1f %%", tenths(p.Believed.Value/p.Measured.Value-1))
	}
	return row
}

// aroundText prints a value with half of its interval: "614.8 infer/s ±0.3 %".
func aroundText(m measure.Metric, e measure.Estimate) string {
	if e.Value <= 0 {
		return m.Format(e.Value)
	}
	return fmt.Sprintf("%s ±%.1f %%", m.Format(e.Value), tenths((e.Hi-e.Lo)/2/e.Value))
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
		s.lines = append(s.lines, fmt.Sprintf("%d more run in engine processes whose service times were measured: of them there are predictions, and no window.", u.Predicted))
	}
	if u.Unreached > 0 {
		s.lines = append(s.lines, fmt.Sprintf("%d were not reached before the campaign ended: nothing is known of them.", u.Unreached))
	}
	for _, f := range u.Skipped {
		s.lines = append(s.lines, fmt.Sprintf("%d others: %s.", f.Count, firstLine(f.Reason)))
	}
	if u.Gain != nil {
		s.lines = append(s.lines, fmt.Sprintf("Whatever was not measured is better by %.1f %% at most, as far as the search can know.", tenths(*u.Gain)))
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
