// Package output writes the ranking of a fleet: as text for terminals, and as one page for a browser.
package output

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"tuner/fleet/results"
	"tuner/internal/terminal"
	"tuner/internal/words"
)

// WriteText writes the ranking for a terminal. dir is the fleet's output folder.
func WriteText(w io.Writer, dir string, r results.Ranking) error {
	var b strings.Builder
	for _, m := range r.Models {
		fmt.Fprintf(&b, "%s\n", terminal.Plain(m.Model))
		for _, sentence := range m.Summary {
			fmt.Fprintf(&b, "  %s\n", terminal.Plain(sentence))
		}
		b.WriteString("\n")
		for _, t := range tables(m) {
			if err := terminal.WritePlainTable(&b, t.Columns, t.Rows); err != nil {
				return err
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "page for a browser: %s\n", filepath.Join(dir, FileName))
	if folder := firstFolder(r); folder != "" {
		fmt.Fprintf(&b, "next: tuner analyze --input %s explains one of them\n", words.ShellWord(filepath.Join(dir, folder)))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot write the ranking: %w", err)
	}
	return nil
}

// firstFolder returns the folder of the first campaign with an answer; "" without one.
func firstFolder(r results.Ranking) string {
	for _, m := range r.Models {
		for _, row := range m.Rows {
			if row.State == results.StateAnswer && row.Folder != "" {
				return row.Folder
			}
		}
	}
	return ""
}

// table is a table of a ranking in any form. The page's template reads its fields.
type table struct {
	Title   string
	Columns []terminal.Column
	Rows    [][]string
}

// tables returns the tables of a model. The table of types is left out if each has one campaign, which the
// table of campaigns has.
func tables(m results.ModelAnswer) []table {
	if slices.ContainsFunc(m.Types, func(x results.Type) bool { return x.Campaigns > 1 }) {
		return []table{types(m), campaigns(m)}
	}
	return []table{campaigns(m)}
}

// types has a row for each type of machine.
func types(m results.ModelAnswer) table {
	t := table{Title: "Types of machines", Columns: []terminal.Column{
		{Title: "Type"}, {Title: "Machines", Right: true}, {Title: "Configuration"}, {Title: "infer/s", Right: true}, {Title: "× default", Right: true},
		{Title: "cost/M", Right: true}, {Title: "another one", Right: true}, {Title: "× best", Right: true}}}
	for _, x := range m.Types {
		next := ""
		if x.Next != nil {
			next = words.Digits(x.Next.Lo, 4) + " to " + words.Digits(x.Next.Hi, 4)
		}
		t.Rows = append(t.Rows, []string{x.Machine, fmt.Sprintf("%d of %d", x.Machines, x.Campaigns), setup(x.State, x.Setup),
			figure(x.Throughput, 4, 1), figure(x.Gain, 3, 1), figure(x.Cost, 4, 1), next, figure(x.ToBest, 3, 1)})
	}
	return t
}

// campaigns has a row for each campaign.
func campaigns(m results.ModelAnswer) table {
	t := table{Title: "Campaigns", Columns: []terminal.Column{
		{Title: "Machine"}, {Title: "Node"}, {Title: "Configuration"}, {Title: "Load"}, {Title: "infer/s", Right: true}, {Title: "p99 ms", Right: true},
		{Title: "cost/M", Right: true}, {Title: "Disturbed", Right: true}}}
	for _, r := range m.Rows {
		t.Rows = append(t.Rows, []string{r.Machine, r.Node, setup(r.State, r.Setup), r.Load, figure(r.Throughput, 4, 1), figure(r.P99, 3, 1e3),
			figure(r.Cost, 4, 1), fmt.Sprintf("%.0f %%", 100*r.Disturbed)})
	}
	return t
}

// setup is the configuration, or why it is missing.
func setup(state, text string) string {
	switch state {
	case results.StateInfeasible:
		return "nothing satisfies the constraints"
	case results.StateMissing:
		return "no result yet"
	case results.StateEnded:
		return "ended early"
	}
	return text
}

// figure prints a figure with its interval and that many significant digits; "" if it is unknown.
func figure(i *results.Interval, digits int, times float64) string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf("%s [%s, %s]", words.Digits(times*i.Value, digits), words.Digits(times*i.Lo, digits), words.Digits(times*i.Hi, digits))
}
