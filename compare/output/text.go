package output

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"tuner/compare"
	"tuner/internal/terminal"
)

// width is that of the text, in columns.
const width = 80

// WriteText writes the comparison for a terminal of 80 columns.
func WriteText(w io.Writer, c compare.Comparison) error {
	var b strings.Builder
	line := func(text string) {
		b.WriteString(strings.TrimRight(terminal.Fold(terminal.Plain(text), width), "\n") + "\n")
	}
	for _, r := range c.Runs {
		line(fmt.Sprintf("%s: %s of %s%s", r.Name, r.Kind, r.Model, created(r)))
		line("  " + r.Answer)
	}
	for _, p := range c.Pairs {
		line("\n" + summary(p))
		for _, sentence := range slices.Concat(p.Winner, commonTexts(p)) {
			line("  " + sentence)
		}
		for _, t := range tables(p) {
			line("\n" + t.Title)
			if err := writeTable(&b, p, t); err != nil {
				return err
			}
		}
		writeRest(line, c, p)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot write comparison: %w", err)
	}
	return nil
}

// mostName bounds a configuration's name in the table, so that the table fits the width: beside it
// stand a load of 7 letters, two figures of 14, a change of 23, and 8 spaces.
const mostName = 14

func writeTable(b *strings.Builder, p compare.Pair, t table) error {
	columns := []terminal.Column{{Title: "Config"}, {Title: "Load", Right: true}, {Title: short(p.A), Right: true}, {Title: short(p.B), Right: true}, {Title: "Change [95 %]"}}
	rows := make([][]string, len(t.Rows))
	for i, r := range t.Rows {
		rows[i] = r.Cells()
		rows[i][0] = ending(terminal.Plain(r.Name), mostName)
	}
	return terminal.WriteTable(b, columns, rows)
}

// short shortens a run's name to a column.
func short(name string) string { return clipped(terminal.Plain(name), len("1234.5 infer/s")) }

func clipped(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}

// ending keeps the end of a name, in which names of a campaign differ.
func ending(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return "…" + string(letters[len(letters)-most+1:])
	}
	return text
}

// writeRest writes what stands below the tables.
func writeRest(line func(string), c compare.Comparison, p compare.Pair) {
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		line("\n" + title)
		for _, text := range lines {
			line("  " + text)
		}
	}
	section("configurations", legend(c, p))
	section("only in "+p.A, p.OnlyA)
	section("only in "+p.B, p.OnlyB)
	var facts []string
	for _, d := range p.Differences {
		facts = append(facts, fmt.Sprintf("%s: %s → %s", d.Fact, orUnknown(d.A), orUnknown(d.B)))
	}
	section("differences", facts)
	for _, d := range p.ConfigDiffs {
		section("config.pbtxt of the "+d.Title, d.Lines)
	}
	section("notes", p.Notes)
}

func created(r compare.Run) string {
	if r.Created == "" {
		return ""
	}
	return ", " + r.Created
}

// WriteJSON writes the comparison for programs.
func WriteJSON(w io.Writer, c compare.Comparison) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(c); err != nil {
		return fmt.Errorf("cannot write JSON: %w", err)
	}
	return nil
}

// WriteMarkdown writes the comparison for a pull request or a wiki.
func WriteMarkdown(w io.Writer, c compare.Comparison) error {
	var b strings.Builder
	b.WriteString("# Comparison\n\n| Run | Kind | Model | Began | Answer |\n|---|---|---|---|---|\n")
	for _, r := range c.Runs {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell(r.Name), r.Kind, cell(r.Model), cmp.Or(r.Created, "–"), cell(r.Answer))
	}
	list := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n### %s\n\n", title)
		for _, text := range lines {
			fmt.Fprintf(&b, "- %s\n", cell(text))
		}
	}
	for _, p := range c.Pairs {
		fmt.Fprintf(&b, "\n## %s\n", cell(summary(p)))
		list("Winner", p.Winner)
		list("Common change", commonTexts(p))
		for _, t := range tables(p) {
			fmt.Fprintf(&b, "\n### %s\n\n| Config | Load | %s | %s | Change [95 %%] |\n|---|--:|--:|--:|---|\n", cell(t.Title), cell(p.A), cell(p.B))
			for _, r := range t.Rows {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell(r.Name), r.Load, r.A, r.B, cell(r.Change))
			}
		}
		list("Configurations", legend(c, p))
		list("Only in "+cell(p.A), p.OnlyA)
		list("Only in "+cell(p.B), p.OnlyB)
		if len(p.Differences) > 0 {
			fmt.Fprintf(&b, "\n### Differences\n\n| Fact | %s | %s |\n|---|---|---|\n", cell(p.A), cell(p.B))
			for _, d := range p.Differences {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(d.Fact), cell(orUnknown(d.A)), cell(orUnknown(d.B)))
			}
		}
		for _, d := range p.ConfigDiffs {
			fmt.Fprintf(&b, "\n### config.pbtxt of the %s\n\n", d.Title)
			for _, l := range d.Lines {
				b.WriteString("    " + terminal.Plain(l) + "\n") // indented code, which a line cannot end
			}
		}
		list("Notes", p.Notes)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot write Markdown: %w", err)
	}
	return nil
}

// cell escapes text for Markdown, in which names of foreign files may stand.
func cell(text string) string {
	text = strings.Join(strings.Fields(terminal.Plain(text)), " ")
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "~", `\~`, "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`).Replace(text)
}
