// Package text writes results for a terminal: the answer, the table, and the explanation. Escape
// sequences in names and reasons are removed, so they cannot control the terminal.
package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/report"
	"tuner/report/figures"
)

// Name is the name of the table in analyze.yaml.
const Name = "table"

// Format prints the table on the terminal. It has no file.
type Format struct{}

// Name implements report.Format.
func (Format) Name() string { return Name }

// Files implements report.Format.
func (Format) Files(analyze.Result, report.Output) []report.File { return nil }

// WriteTable writes the answer, the ranking in at most terminal.Width columns, and notes on the
// figures.
func WriteTable(w io.Writer, r analyze.Result) error { return writeTable(w, r, false) }

// WriteColoredTable is WriteTable with the best in green, and figures that miss a constraint in
// red.
func WriteColoredTable(w io.Writer, r analyze.Result) error { return writeTable(w, r, true) }

func writeTable(w io.Writer, r analyze.Result, colored bool) error {
	g := figures.NewRanking(r)
	var head, table, foot strings.Builder
	fmt.Fprintln(&head, answerText(r))
	if err := terminal.WriteTable(&table, g.Heads, g.Cells); err != nil {
		return err
	}
	fmt.Fprintln(&foot)
	if r.Recorded == "" {
		fmt.Fprintf(&foot, "Time: %s.\n", figures.AccountText(r.Account))
	}
	for _, line := range slices.Concat(figures.Notes(r, g), figures.VariantNotes(r)) {
		fmt.Fprintln(&foot, line)
	}
	loads, err := loadsText(r)
	if err != nil {
		return err
	}
	body := rowsOf(&table)
	if colored {
		body = coloredRows(body, g)
	}
	if _, err := io.WriteString(w, head.String()+body+prose(foot.String())+loads); err != nil {
		return fmt.Errorf("cannot write table: %w", err)
	}
	return nil
}

// coloredRows colours the best row of a table, and the figures that miss a constraint in the other
// rows. It does not change a table with folded rows.
func coloredRows(table string, g figures.Ranking) string {
	const head = 2 // titles, and the rule below them
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	if len(lines) != head+len(g.Cells) {
		return table
	}
	for i, cells := range g.Cells {
		line := &lines[head+i]
		if strings.HasPrefix(cells[0], figures.BestMark) {
			*line = terminal.BoldGreen.Text(*line)
			continue
		}
		for _, cell := range cells {
			if strings.HasSuffix(cell, figures.BeyondLimit) {
				*line = strings.Replace(*line, cell, terminal.Red.Text(cell), 1)
			}
		}
		if verdict := cells[len(cells)-1]; verdict == figures.MissesWord || verdict == figures.FailedWord {
			*line = strings.TrimSuffix(*line, verdict) + terminal.Red.Text(verdict)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// WriteAnswer writes the answer: a sentence on the state, and a line for each statement.
func WriteAnswer(w io.Writer, r analyze.Result) error {
	if _, err := io.WriteString(w, answerText(r)); err != nil {
		return fmt.Errorf("cannot write the answer: %w", err)
	}
	return nil
}

func answerText(r analyze.Result) string {
	a := figures.AnswerOf(r)
	var b strings.Builder
	for _, line := range append([]string{a.Headline}, a.Texts()...) {
		fmt.Fprintln(&b, figures.OneLine(line))
	}
	return prose(b.String())
}

// prose breaks lines of sentences.
func prose(text string) string { return terminal.Fold(terminal.Plain(text), terminal.ProseWidth) }

// rowsOf breaks the rows of a table that are too wide.
func rowsOf(table *strings.Builder) string {
	return terminal.Fold(terminal.Plain(table.String()), terminal.Width)
}

// loadsText returns the table of loads, or "" if it is not requested.
func loadsText(r analyze.Result) (string, error) {
	if !r.Each || len(r.Loads) == 0 {
		return "", nil
	}
	heads, cells := figures.BestAtLoads(r)
	var table strings.Builder
	if err := terminal.WriteTable(&table, heads, cells); err != nil {
		return "", err
	}
	note := figures.LoadsNote
	if len(r.Served()) == 0 {
		note += " " + figures.AdaptNote
	}
	return "\n" + figures.LoadsTitle + "\n" + rowsOf(&table) + prose(note+"\n"), nil
}

// WriteExplanation writes why the best configuration is the best.
func WriteExplanation(w io.Writer, r analyze.Result) error {
	var b strings.Builder
	sections := figures.Explanation(r)
	if len(sections) == 0 {
		fmt.Fprintf(&b, "There is nothing to explain: %s.\n", figures.Unexplained(r))
	} else if lines := figures.FoldLines(r); len(lines) > 0 {
		last := &sections[len(sections)-1]
		last.Lines = append(last.Lines, lines...)
	}
	for i, s := range sections {
		if i > 0 {
			fmt.Fprintln(&b)
		}
		for _, line := range append([]string{s.Title}, s.Lines...) {
			b.WriteString(prose(line + "\n"))
		}
		if len(s.Cells) > 0 {
			var table strings.Builder
			if err := terminal.WriteTable(&table, s.Heads, s.Cells); err != nil {
				return err
			}
			b.WriteString(rowsOf(&table))
		}
		for _, line := range s.Notes {
			b.WriteString(prose(line + "\n"))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot write explanation: %w", err)
	}
	return nil
}
