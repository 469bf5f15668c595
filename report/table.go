package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/measure"
	"tuner/search"
)

// WriteTable writes the result for a terminal: what was found in a sentence, the ranking in at most terminal.Width columns, then what
// one should know about the figures.
func WriteTable(w io.Writer, r analyze.Result) error {
	g := newGrid(r)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", headline(r))
	if best, ok := r.Winner(); ok {
		fmt.Fprintf(&b, "Best: %s. %s\n", nameAndSetup(best), confirmation(r, *best.Best))
	}
	fmt.Fprintf(&b, "%s.\n", effort(r))
	if r.Recorded == "" {
		fmt.Fprintf(&b, "Time: %s.\n", accountText(r.Account))
	}
	fmt.Fprintln(&b)
	if err := terminal.WriteTable(&b, g.heads(), g.cells); err != nil {
		return err
	}
	fmt.Fprintln(&b)
	for _, line := range slices.Concat(notes(r, g), variantNotes(r)) {
		fmt.Fprintln(&b, line)
	}
	if _, err := io.WriteString(w, terminal.Fold(b.String(), terminal.Width)); err != nil {
		return fmt.Errorf("cannot write table: %w", err)
	}
	return nil
}

// notes are the lines below the ranking: legend, ties, flags, failures, what was left out.
func notes(r analyze.Result, g grid) []string {
	lines := legendNotes(r, g)
	if hidden := len(r.Configs) - len(g.cells); hidden > 0 {
		lines = append(lines, fmt.Sprintf("%s not shown; all are in result.json.", count(hidden, "more configuration")))
	}
	lines = append(lines, otherKnobNotes(r)...)
	lines = append(lines, assignedNotes(r)...)
	lines = append(lines, limitNotes(r)...)
	lines = append(lines, flagNotes(r)...)
	lines = append(lines, failureNotes(r)...)
	lines = append(lines, r.Ending.Statement...)
	lines = append(lines, reusedNotes(r)...)
	if r.Ending.Interrupted {
		lines = append(lines, fmt.Sprintf("The campaign did not end by itself: %s. The same `tuner profile` command resumes it.",
			r.Ending.Reason))
	}
	return lines
}

// legendNotes explain the table's columns and marks, as far as they occur.
func legendNotes(r analyze.Result, g grid) []string {
	text := "* what you had · inst × thr: instances × threads of each · load: requests in flight · ±: half of the 95 % interval"
	if isRate(r) {
		text = "* what you had · inst × thr: instances × threads of each · rate: requests/s · ±: half of the 95 % interval"
	}
	if r.Recorded != "" { // neither threads nor intervals are known
		text = "* what you had · inst × thr: instances · – unknown"
	}
	if g.common != "" {
		text += " · all: " + g.common
	}
	lines := []string{text}
	shown := rows(r)
	if slices.ContainsFunc(shown, func(c analyze.Config) bool { return c.Satisfies() && c.Best.Confirmed }) {
		how := "on engines launched for it"
		if r.Header.Runtime.IsRemote() {
			how = "with the model loaded anew"
		}
		lines = append(lines, "confirmed: measured again "+how+", after the search")
	}
	if slices.ContainsFunc(shown, func(c analyze.Config) bool { return len(c.TiedWith) > 0 }) {
		lines = append(lines, "= tied: within 1 % and with overlapping intervals; confirmed ones come first, then lower memory, lower p99, fewer threads")
	}
	return lines
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

// limitNotes name the configurations that satisfy a constraint, but not with their whole interval.
func limitNotes(r analyze.Result) []string {
	var lines []string
	for _, constraint := range r.Goal.Constraints {
		var names []string
		for _, c := range rows(r) {
			if !c.Satisfies() {
				continue
			}
			e, ok := c.Best.Values[constraint.Metric]
			if ok && (constraint.Violation(e.Lo) > 0 || constraint.Violation(e.Hi) > 0) {
				names = append(names, shortName(r, c))
			}
		}
		if len(names) > 0 {
			lines = append(lines, fmt.Sprintf("Close to the limit, the 95 %% interval reaches beyond %s: %s.",
				constraintText(constraint), strings.Join(names, ", ")))
		}
	}
	return lines
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

// failureNotes list the failed trials, equal ones of a configuration once.
func failureNotes(r analyze.Result) []string {
	var lines []string
	seen := map[string]bool{}
	for _, f := range r.Failures {
		if key := f.Name + string(f.Stage) + f.Reason; !seen[key] {
			seen[key] = true
			lines = append(lines, fmt.Sprintf("Failed: %s (%s) at %s, %s: %s", f.Name, f.Candidate.Describe(), f.Load, f.Stage,
				firstLine(f.Reason)))
		}
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
