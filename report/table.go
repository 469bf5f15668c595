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
	"tuner/spec"
)

// WriteTable writes the result for a terminal: the answer, the ranking in at most terminal.Width columns, then what
// one should know about the figures. Nothing in it can steer a terminal, whatever the names are.
func WriteTable(w io.Writer, r analyze.Result) error { return writeTable(w, r, false) }

// WriteColoredTable is WriteTable with the best in green, and in red what misses a constraint.
func WriteColoredTable(w io.Writer, r analyze.Result) error { return writeTable(w, r, true) }

func writeTable(w io.Writer, r analyze.Result, colored bool) error {
	g := newGrid(r)
	var head, table, foot strings.Builder
	fmt.Fprintln(&head, answerText(r))
	if err := terminal.WriteTable(&table, g.heads(), g.cells); err != nil {
		return err
	}
	fmt.Fprintln(&foot)
	if r.Recorded == "" {
		fmt.Fprintf(&foot, "Time: %s.\n", accountText(r.Account))
	}
	for _, line := range slices.Concat(notes(r, g), variantNotes(r)) {
		fmt.Fprintln(&foot, line)
	}
	if err := writeLoads(&foot, r); err != nil {
		return err
	}
	fold := func(text string) string { return terminal.Fold(terminal.Plain(text), terminal.Width) }
	body := fold(table.String())
	if colored {
		body = coloredRows(body, g)
	}
	if _, err := io.WriteString(w, head.String()+body+fold(foot.String())); err != nil {
		return fmt.Errorf("cannot write table: %w", err)
	}
	return nil
}

// coloredRows brings out the best row of a table, and in the others the figures that miss a constraint. A table with rows that had to be
// folded stays as it is.
func coloredRows(table string, g grid) string {
	const head = 2 // the lines of titles and of the rule below
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	if len(lines) != head+len(g.cells) {
		return table
	}
	for i, cells := range g.cells {
		line := &lines[head+i]
		if strings.HasPrefix(cells[0], bestMark) {
			*line = terminal.BoldGreen.Text(*line)
			continue
		}
		for _, cell := range cells {
			if strings.HasSuffix(cell, beyondLimit) {
				*line = strings.Replace(*line, cell, terminal.Red.Text(cell), 1)
			}
		}
		if verdict := cells[len(cells)-1]; verdict == missesWord || verdict == failedWord {
			*line = strings.TrimSuffix(*line, verdict) + terminal.Red.Text(verdict)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// notes are the lines below the ranking: legend, ties, flags, failures, what was left out.
func notes(r analyze.Result, g grid) []string {
	lines := legendNotes(r, g)
	if hidden := len(r.Configs) - len(g.cells); hidden > 0 {
		lines = append(lines, fmt.Sprintf("%s not shown; all are in result.json.", count(hidden, "more configuration")))
	}
	lines = append(lines, serverNotes(r)...)
	lines = append(lines, otherKnobNotes(r)...)
	lines = append(lines, assignedNotes(r)...)
	lines = append(lines, flagNotes(r)...)
	lines = append(lines, withheldNotes(r)...)
	lines = append(lines, failureNotes(r)...)
	lines = append(lines, r.Ending.Notes...)
	lines = append(lines, reusedNotes(r)...)
	if r.Ending.Interrupted {
		lines = append(lines, interruption(r))
	}
	return lines
}

// interruption says of a campaign that did not end by itself what one can do.
func interruption(r analyze.Result) string {
	return fmt.Sprintf("The campaign did not end by itself: %s. The same `tuner profile` command resumes it.", r.Ending.Reason)
}

// legendNotes explain the table's columns and marks, as far as they occur.
func legendNotes(r analyze.Result, g grid) []string {
	load := "load: requests in flight"
	if isRate(r) {
		load = "rate: requests/s"
	}
	text := "* what you had · inst × thr: instances × threads of each · " + load + " · ±: half of the 95 % interval · gain: " + gainLegend(r)
	if len(r.Goal.Constraints) > 0 {
		text += " · OK: probability that the limits are kept"
	}
	if r.Recorded != "" { // neither threads nor intervals are known
		text = "* what you had · inst × thr: instances · " + load + " · gain: " + gainLegend(r) + " · – unknown"
	}
	if g.common != "" {
		text += " · all: " + g.common
	}
	lines := append([]string{text}, viewNotes(r)...)
	shown := rows(r)
	if slices.ContainsFunc(shown, func(c analyze.Config) bool { return c.Satisfies() && c.Best.Confirmed }) {
		how := "on engines launched for it"
		if r.Header.ReloadsFinals() {
			how = "with the model loaded anew"
		}
		lines = append(lines, confirmedMark+" measured again "+how+", after the search")
	}
	if slices.ContainsFunc(g.cells, func(cells []string) bool {
		return slices.ContainsFunc(cells, func(cell string) bool { return strings.Contains(cell, "%"+unknownMark) })
	}) {
		lines = append(lines, unknownMark+" by extrapolation: too few requests were measured for the percentile that is limited")
	}
	if slices.ContainsFunc(g.cells, func(cells []string) bool {
		return slices.ContainsFunc(cells, func(cell string) bool { return strings.HasSuffix(cell, beyondLimit) })
	}) {
		lines = append(lines, beyondLimit+" beyond a limit")
	}
	if slices.ContainsFunc(shown, func(c analyze.Config) bool { return len(c.TiedWith) > 0 }) {
		lines = append(lines, "= tied: expected to differ from the best by 1 % at most; the simpler configuration and the lower load are recommended")
	}
	return lines
}

// gainLegend says what the column of the gain is a multiple of.
func gainLegend(r analyze.Result) string {
	if len(r.Goal.Objective.Terms) == 1 {
		return "a multiple of the default's " + gainOf(r)
	}
	return "how many times better than the default"
}

// viewNotes say what configurations are ranked by, where that is not each one's best load.
func viewNotes(r analyze.Result) []string {
	var lines []string
	if r.At != nil {
		text := fmt.Sprintf("All are compared at %s", spec.At{Load: *r.At})
		absent := 0
		for _, c := range r.Configs {
			if c.Best == nil && len(c.Points) > 0 {
				absent++
			}
		}
		if absent > 0 {
			text += fmt.Sprintf(", where %s not measured and so not ranked", count(absent, "configuration")+" "+wereText(absent))
		}
		lines = append(lines, text+".")
	}
	if r.Rank == spec.RankTop3Mean {
		text := "Ranked by the mean of the three highest throughputs over the loads within the limits"
		if n := mostLoads(r); n < 3 {
			text += fmt.Sprintf("; no configuration has three such loads, so that the mean is of %d", n)
		}
		if slices.ContainsFunc(r.Configs, func(c analyze.Config) bool { return c.Satisfies() && math.IsInf(c.Score.Value, 0) }) {
			text += "; those with fewer such loads than others come behind them, without a mean"
		}
		lines = append(lines, text+".")
	}
	return lines
}

func wereText(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// otherKnobNotes list the settings that have no column.
func otherKnobNotes(r analyze.Result) []string {
	var lines []string
	for _, c := range rows(r) {
		var parts []string
		for _, s := range c.Candidate.Settings() {
			if !hasColumn(s.Knob) {
				parts = append(parts, s.Knob+" "+string(s.Value))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, shortName(r, c)+": "+strings.Join(parts, ", "))
		}
	}
	return lines
}

func hasColumn(knob string) bool {
	switch knob {
	case search.KnobInstanceCount, search.KnobIntraOpThreads, search.KnobMaxBatchSize, search.KnobMaxQueueDelay,
		search.KnobExecutionProvider, search.KnobPrecision:
		return true
	}
	return false
}

// flagNotes say which of the figures shown deserve less trust, and why: one line for each flag.
func flagNotes(r analyze.Result) []string {
	names := map[measure.Flag][]string{}
	var order []measure.Flag
	for _, c := range rows(r) {
		if c.Best == nil {
			continue
		}
		for _, f := range c.Best.Flags {
			if names[f] == nil {
				order = append(order, f)
			}
			names[f] = append(names[f], shortName(r, c))
		}
	}
	var lines []string
	for _, f := range order {
		lines = append(lines, fmt.Sprintf("Less certain, %s: %s.", f.Text(), strings.Join(names[f], ", ")))
	}
	return lines
}

// withheldNotes say what others took.
func withheldNotes(r analyze.Result) []string {
	if text := r.Withheld.Text(); text != "" {
		return []string{text}
	}
	return nil
}

// reusedNotes count the trials of earlier campaigns, which are in no figure.
func reusedNotes(r analyze.Result) []string {
	var lines []string
	for _, e := range r.Reused {
		how := "on this machine, to choose what to measure"
		if !e.Same {
			how = "on another machine, ONNX Runtime or protocol, for forecasts alone"
		}
		lines = append(lines, fmt.Sprintf("Reused from %s: %s %s; no figure here is theirs.", e.From, count(e.Trials, "trial"), how))
	}
	return lines
}

// mostFailures is how many failures are listed one by one.
const mostFailures = 10

// failedNote is what the note of a failure begins with.
const failedNote = "Failed: "

// failureNotes list the failed trials, those with the same reason once, by the first of them.
func failureNotes(r analyze.Result) []string {
	var lines []string
	for _, g := range r.FailureGroups() {
		f, others := g.First, ""
		if n := g.Count - 1; n > 0 {
			others = fmt.Sprintf(", and %s", count(n, "more trial"))
		}
		lines = append(lines, fmt.Sprintf(failedNote+"%s (%s) at %s%s, %s: %s", f.Name, f.Candidate.Describe(), f.Load, others, f.Stage,
			firstLine(f.Reason)))
	}
	if rest := len(lines) - mostFailures; rest > 0 {
		lines = append(lines[:mostFailures], fmt.Sprintf("%s; all are in result.json.", count(rest, "more failure")))
	}
	return lines
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
