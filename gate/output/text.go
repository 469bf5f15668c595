package output

import (
	"fmt"
	"io"
	"math"
	"strings"

	"tuner/gate"
	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/measure"
)

// rows returns all rows of the table.
func (r Report) rows() [][]string {
	var list [][]string
	for _, row := range r.Rows {
		list = append(list, cells(row))
	}
	for _, a := range r.Accuracy {
		list = append(list, accuracyCells(a))
	}
	return list
}

// notes returns the sentences under a table.
func (r Report) notes() []string {
	var list []string
	for _, reason := range r.Outcome.Reasons {
		list = append(list, words.Shorten(reason, longestReason)+".")
	}
	if needed := r.needed(); needed != "" {
		list = append(list, needed)
	}
	return append(list, r.Warnings...)
}

// WriteTable prints the verdict and the table for a terminal.
func WriteTable(w io.Writer, r Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", r.headline(), r.effort())
	if text := r.byModel(); text != "" {
		fmt.Fprintf(&b, "%s\n", text)
	}
	b.WriteByte('\n')
	if rows := r.rows(); len(rows) > 0 {
		columns := make([]terminal.Column, len(heads()))
		for i, title := range heads() {
			columns[i] = terminal.Column{Title: title, Right: i > 0 && i < 4}
		}
		if err := terminal.WriteTable(&b, columns, rows); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	for _, note := range r.notes() {
		b.WriteString(terminal.Fold(note, terminal.ProseWidth))
	}
	return write(w, "the table", b.String())
}

// mostSparks is the number of gates in a sparkline.
const mostSparks = 24

// sparkline draws a metric's values in the history as a line of blocks, the latest last. The blocks
// range from its lowest to its highest value. It returns "" for fewer than two values.
func sparkline(history []gate.Record, metric measure.Metric) string {
	values := trend(history, metric)
	if values = values[max(0, len(values)-mostSparks):]; len(values) < 2 {
		return ""
	}
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		least, most = min(least, v), max(most, v)
	}
	blocks := []rune("▁▂▃▄▅▆▇█")
	line := make([]rune, len(values))
	for i, v := range values {
		at := len(blocks) / 2
		if most > least {
			at = min(int((v-least)/(most-least)*float64(len(blocks))), len(blocks)-1)
		}
		line[i] = blocks[at]
	}
	return string(line)
}

// trend returns a metric's values in the history.
func trend(history []gate.Record, metric measure.Metric) []float64 {
	var values []float64
	for _, record := range history {
		if f, ok := record.Metrics[metric]; ok {
			values = append(values, f.Candidate)
		}
	}
	return values
}

// WriteMarkdown writes the summary: the verdict, the table, the reasons, and the place of the
// measurement.
func WriteMarkdown(w io.Writer, r Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### tuner gate: %s\n\n%s.\n\n", escape(r.headline()), escape(r.effort()))
	if text := r.byModel(); text != "" {
		fmt.Fprintf(&b, "By model: %s.\n\n", escape(text))
	}
	if rows := r.rows(); len(rows) > 0 {
		fmt.Fprintf(&b, "| %s | trend |\n|---|---:|---:|---:|---|---|---|---|\n", strings.Join(heads(), " | "))
		for i, row := range rows {
			spark := ""
			if i < len(r.Rows) {
				spark = sparkline(r.related(), r.Rows[i].Metric)
			}
			for k, t := range row {
				row[k] = escape(t)
			}
			last := len(row) - 1
			row[last] = "**" + row[last] + "**"
			fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(row, " | "), spark)
		}
		b.WriteByte('\n')
	}
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "- %s\n", escape(note))
	}
	r.origin(&b)
	return write(w, "Markdown", b.String())
}

// origin writes a folded section with the models and the machine.
func (r Report) origin(b *strings.Builder) {
	fmt.Fprintf(b, "\n<details><summary>What was measured</summary>\n\n")
	side := func(name string, s gate.Subject) {
		fmt.Fprintf(b, "- %s: `%s`, SHA-256 `%s`, ONNX Runtime %s", name, s.Files[0].Source.Path, s.Files[0].Source.Digest, escape(s.Runtime))
		if s.Engine != "" {
			fmt.Fprintf(b, ", engine `%s`", s.Engine)
		}
		b.WriteByte('\n')
	}
	for _, one := range r.Setup.Each() {
		of := ""
		if len(r.Setup.Models) > 0 {
			of = fmt.Sprintf(" of %s (%s)", escape(one.Spec.Name), one.Load)
		}
		if one.Baseline != nil {
			side("baseline"+of, *one.Baseline)
		}
		if one.Spec.Baseline.Saved != "" {
			fmt.Fprintf(b, "- baseline: saved in `%s`\n", one.Spec.Baseline.Saved)
		}
		side("candidate"+of, one.Candidate)
	}
	for _, a := range r.Accuracy {
		fmt.Fprintf(b, "- %s: %s\n", escape(a.Name()), escape(a.Note))
	}
	if r.Revision != "" {
		fmt.Fprintf(b, "- revision %s\n", escape(r.Revision))
	}
	fmt.Fprintf(b, "- tuner %s, machine `%s`, %s\n\n</details>\n", escape(r.Setup.Tool), r.Setup.Fingerprint, r.Time.UTC().Format("2006-01-02 15:04 MST"))
}

// escape keeps text from being read as markup.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", "#", `\#`, "\n", " ").Replace(text)
}
