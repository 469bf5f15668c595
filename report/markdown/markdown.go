// Package markdown writes report.md: the summary for a pull request or a wiki, with the terminal's
// table. Text from the user's files is escaped, so it never becomes markup.
package markdown

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/report"
	"tuner/report/chart"
	"tuner/report/figures"
)

// FileName is the file's name in the output folder.
const FileName = "report.md"

// Format writes report.md.
type Format struct{}

// Name implements report.Format.
func (Format) Name() string { return "markdown" }

// Files implements report.Format.
func (Format) Files(r analyze.Result, o report.Output) []report.File {
	return []report.File{{Path: FileName, Write: func(w io.Writer) error { return Write(w, r, o.Has(chart.Name)) }}}
}

// Write writes report.md. With charts it shows the pictures in plots/.
func Write(w io.Writer, r analyze.Result, charts bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n%s\n", escape(r.Header.Model), answer(r))
	g := figures.NewRanking(r)
	b.WriteString(table(g.Heads, g.Cells))
	fmt.Fprintln(&b)
	for _, line := range figures.Notes(r, g) {
		fmt.Fprintf(&b, "- %s\n", escape(line))
	}
	charts = charts && r.IsMeasured()
	switch {
	case charts && len(r.Models) > 0:
		fmt.Fprintf(&b, "\n![How far the traffic can grow](%s)\n", chart.GrowthFile)
	case charts:
		fmt.Fprintf(&b, "\n![Throughput against p99 latency](%s)\n\n![Throughput against load](%s)\n",
			chart.LatencyFile, chart.LoadFile)
	}
	writeStages(&b, r, charts)
	writeClientWork(&b, r)
	writeExplanation(&b, r)
	writeFronts(&b, r, charts)
	writeLoads(&b, r)
	writeVariants(&b, r)
	if r.Recorded == "" {
		writeAccount(&b, r.Account)
		writeFolds(&b, r)
		writeSteps(&b, r)
		writeOrigin(&b, r)
	} else {
		fmt.Fprintf(&b, "\n## Origin\n\n- the measurements of another program, read from %s\n", code(r.Recorded))
	}
	if _, err := io.WriteString(w, terminal.Plain(b.String())); err != nil {
		return fmt.Errorf("cannot write Markdown: %w", err)
	}
	return nil
}

// table prints a table.
func table(heads []terminal.Column, cells [][]string) string {
	var b strings.Builder
	line := func(texts []string) {
		escaped := make([]string, len(texts))
		for i, t := range texts {
			escaped[i] = escape(t)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(escaped, " | "))
	}
	line(figures.Titles(heads))
	rules := make([]string, len(heads))
	for i, head := range heads {
		rules[i] = "---"
		if head.Right {
			rules[i] = "---:"
		}
	}
	fmt.Fprintf(&b, "| %s |\n", strings.Join(rules, " | "))
	for _, row := range cells {
		line(row)
	}
	return b.String()
}

// left makes columns that are aligned to the left.
func left(titles ...string) []terminal.Column {
	heads := make([]terminal.Column, len(titles))
	for i, title := range titles {
		heads[i].Title = title
	}
	return heads
}

// escape keeps text from being read as markup: HTML, a link, emphasis, code, a heading, or the end
// of a line or cell.
func escape(text string) string {
	return strings.NewReplacer(
		`\`, `\\`, "&", "&amp;", "<", "&lt;", "|", `\|`, "*", `\*`, "_", `\_`, "#", `\#`, "`", "\\`", "~~", `\~~`,
		"](", `]\(`, "][", `]\[`, "]:", `]\:`,
		"\r\n", " ", "\n", " ", "\r", " ",
	).Replace(text)
}

// code prints text as code. A backtick would end the code, so it becomes an apostrophe.
func code(text string) string { return "`" + strings.ReplaceAll(figures.OneLine(text), "`", "'") + "`" }

func writeAccount(b *strings.Builder, a analyze.Account) {
	fmt.Fprintf(b, "\n## Where the time went\n\n")
	var cells [][]string
	for _, p := range figures.AccountParts(a) {
		cells = append(cells, []string{p.Name, p.Time.Round(100 * time.Millisecond).String(), fmt.Sprintf("%.0f %%", 100*a.Share(p.Time))})
	}
	cells = append(cells, []string{"all", a.Elapsed.Round(100 * time.Millisecond).String(), ""})
	b.WriteString(table(left("part", "time", "share"), cells))
}

func writeFolds(b *strings.Builder, r analyze.Result) {
	if len(r.Folds) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Combinations that were not tried\n\n")
	for _, f := range r.Folds {
		fmt.Fprintf(b, "- %d: %s\n", f.Count, escape(f.Reason))
	}
}

// writeOrigin lists everything that is needed to reproduce the result.
func writeOrigin(b *strings.Builder, r analyze.Result) {
	h := r.Header
	fmt.Fprintf(b, "\n## Origin\n\n")
	fmt.Fprintf(b, "- profile: %s, SHA-256 %s, seed %d\n", code(h.Spec.Path), code(h.Spec.SHA256), h.Seed)
	for _, one := range r.OfEach() {
		for _, m := range one.Header.Models {
			name := m.Precision
			if len(r.Served()) > 0 {
				name = one.Header.Model + ", " + name
			}
			fmt.Fprintf(b, "- model (%s): %s, SHA-256 %s\n", escape(name), code(m.Path), code(m.SHA256))
		}
	}
	if figures.HasServers(r) {
		fmt.Fprintf(b, "- server: %s\n", escape(h.Server.String()))
	}
	if h.Finals != nil {
		fmt.Fprintf(b, "- server of the finals: %s\n", escape(h.Finals.String()))
	}
	for _, runtime := range figures.Runtimes(h) {
		fmt.Fprintf(b, "- ONNX Runtime %s (%s)\n", escape(runtime.Version), escape(runtime.Flavour))
	}
	fmt.Fprintf(b, "- tuner %s\n", escape(h.Tool))
	for _, p := range r.Placements {
		fmt.Fprintf(b, "- placement: %s\n", escape(p.String()))
	}
	fmt.Fprintf(b, "- machine: %s (fingerprint %s), campaign begun %s\n", escape(figures.MachineText(h.Machine)), code(h.Fingerprint), h.Created.UTC().Format("2006-01-02 15:04 MST"))
}
