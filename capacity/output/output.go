// Package output writes a plan: text for terminals, Markdown, and JSON. Package export/scaling writes
// its autoscaler.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"tuner/capacity"
	"tuner/internal/terminal"
)

// width is that of the text, in columns.
const width = 100

// WriteJSON writes the plan for programs.
func WriteJSON(w io.Writer, p capacity.Plan) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(p); err != nil {
		return fmt.Errorf("cannot write plan: %w", err)
	}
	return nil
}

// WriteText writes the plan for a terminal. With explain it also says how it was found.
func WriteText(w io.Writer, p capacity.Plan, explain bool) error {
	var b strings.Builder
	line := func(text string) {
		b.WriteString(strings.TrimRight(terminal.Fold(terminal.Plain(text), width), "\n") + "\n")
	}
	show := func(t table) error {
		b.WriteString("\n")
		return terminal.WritePlainTable(&b, t.Columns, t.Rows)
	}
	for _, l := range head(p) {
		line(l)
	}
	if err := show(fleets(p)); err != nil {
		return err
	}
	if p.Verification != nil {
		if err := show(replayed(p.Verification)); err != nil {
			return err
		}
		line("")
		for _, l := range verification(p) {
			line(l)
		}
	}
	if explain {
		for _, t := range []table{candidates(p), checks(p)} {
			if err := show(t); err != nil {
				return err
			}
		}
		line("")
		for _, l := range explanation(p) {
			line(l)
		}
	}
	for i, note := range p.Notes {
		if i == 0 {
			line("")
		}
		line("note: " + note)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot write plan: %w", err)
	}
	return nil
}

// WriteMarkdown writes the plan as Markdown. With explain it also says how it was found.
func WriteMarkdown(w io.Writer, p capacity.Plan, explain bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Plan for %s\n\n", escaped(p.Model))
	for i, l := range head(p) {
		if i == 0 {
			fmt.Fprintf(&b, "**%s**\n\n", escaped(l))
			continue
		}
		fmt.Fprintf(&b, "- %s\n", escaped(l))
	}
	fleets(p).markdown(&b)
	if p.Verification != nil {
		replayed(p.Verification).markdown(&b)
		b.WriteString("\n")
		for _, l := range verification(p) {
			fmt.Fprintf(&b, "- %s\n", escaped(l))
		}
	}
	if explain {
		candidates(p).markdown(&b)
		checks(p).markdown(&b)
		b.WriteString("\n")
		for _, l := range explanation(p) {
			fmt.Fprintf(&b, "- %s\n", escaped(l))
		}
	}
	for i, note := range p.Notes {
		if i == 0 {
			b.WriteString("\n## Notes\n\n")
		}
		fmt.Fprintf(&b, "- %s\n", escaped(note))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot write plan: %w", err)
	}
	return nil
}

// table is a table of a plan in any form.
type table struct {
	Title   string // on the page
	Columns []terminal.Column
	Rows    [][]string
}

func (t table) markdown(b *strings.Builder) {
	b.WriteString("\n|")
	for _, c := range t.Columns {
		fmt.Fprintf(b, " %s |", escaped(c.Title))
	}
	b.WriteString("\n|")
	for _, c := range t.Columns {
		if c.Right {
			b.WriteString("---:|")
		} else {
			b.WriteString("---|")
		}
	}
	b.WriteString("\n")
	for _, row := range t.Rows {
		b.WriteString("|")
		for _, cell := range row {
			fmt.Fprintf(b, " %s |", escaped(cell))
		}
		b.WriteString("\n")
	}
}

// escaped keeps names of files and configurations from being Markdown or HTML.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", "&", "&amp;", "`", "\\`", "[", `\[`, "\n", " ").Replace(terminal.Plain(text))
}
