package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/journal"
)

// WriteMarkdown writes report.md: the summary for a pull request or a wiki, with the same table as the terminal's. With
// charts it shows the pictures in plots/. Text from the user's files stays text, whatever it looks like.
func WriteMarkdown(w io.Writer, r analyze.Result, charts bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n%s\n", escapeMarkdown(r.Header.Model), markdownAnswer(r))
	g := newGrid(r)
	b.WriteString(markdownTable(g.headers(), g.cells, g.columns))
	fmt.Fprintln(&b)
	for _, line := range notes(r, g) {
		fmt.Fprintf(&b, "- %s\n", escapeMarkdown(line))
	}
	charts = charts && r.IsMeasured()
	if charts {
		fmt.Fprintf(&b, "\n![Throughput against p99 latency](plots/%s)\n\n![Throughput against load](plots/%s)\n",
			latencyChartName, loadChartName)
	}
	writeStages(&b, r, charts)
	writeExplanation(&b, r)
	writeFronts(&b, r, charts)
	writeLoadsMarkdown(&b, r)
	writeVariants(&b, r)
	if r.Recorded == "" {
		writeAccount(&b, r.Account)
		writeFolds(&b, r)
		writeSteps(&b, r)
		writeOrigin(&b, r)
	} else {
		fmt.Fprintf(&b, "\n## Origin\n\n- the measurements of another program, read from %s\n", codeText(r.Recorded))
	}
	if _, err := io.WriteString(w, terminal.Plain(b.String())); err != nil {
		return fmt.Errorf("cannot write Markdown: %w", err)
	}
	return nil
}

// markdownTable prints a table; without columns every cell is left-aligned.
func markdownTable(headers []string, cells [][]string, columns []column) string {
	var b strings.Builder
	line := func(texts []string) {
		escaped := make([]string, len(texts))
		for i, t := range texts {
			escaped[i] = escapeMarkdown(t)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(escaped, " | "))
	}
	line(headers)
	rules := make([]string, len(headers))
	for i := range headers {
		rules[i] = "---"
		if i < len(columns) && columns[i].right {
			rules[i] = "---:"
		}
	}
	fmt.Fprintf(&b, "| %s |\n", strings.Join(rules, " | "))
	for _, row := range cells {
		line(row)
	}
	return b.String()
}

// escapeMarkdown keeps text from being read as markup: as HTML, a link, emphasis, code, a heading, or the end of its line or cell.
func escapeMarkdown(text string) string {
	return strings.NewReplacer(
		`\`, `\\`, "&", "&amp;", "<", "&lt;", "|", `\|`, "*", `\*`, "_", `\_`, "#", `\#`, "`", "\\`", "~~", `\~~`,
		"](", `]\(`, "][", `]\[`, "]:", `]\:`,
		"\r\n", " ", "\n", " ", "\r", " ",
	).Replace(text)
}

// codeText is text as code. What would end the code is left out of it: such a name is no name of a file that anybody would look for.
func codeText(text string) string { return "`" + strings.ReplaceAll(oneLine(text), "`", "'") + "`" }

func writeAccount(b *strings.Builder, a analyze.Account) {
	fmt.Fprintf(b, "\n## Where the time went\n\n")
	var cells [][]string
	for _, p := range accountParts(a) {
		cells = append(cells, []string{p.name, p.time.Round(100 * time.Millisecond).String(), fmt.Sprintf("%.0f %%", 100*a.Share(p.time))})
	}
	cells = append(cells, []string{"all", a.Elapsed.Round(100 * time.Millisecond).String(), ""})
	b.WriteString(markdownTable([]string{"part", "time", "share"}, cells, nil))
}

func writeFolds(b *strings.Builder, r analyze.Result) {
	if len(r.Folds) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Combinations that were not tried\n\n")
	for _, f := range r.Folds {
		fmt.Fprintf(b, "- %d: %s\n", f.Count, escapeMarkdown(f.Reason))
	}
}

// writeOrigin names what is needed to reproduce the result.
func writeOrigin(b *strings.Builder, r analyze.Result) {
	h := r.Header
	fmt.Fprintf(b, "\n## Origin\n\n")
	fmt.Fprintf(b, "- profile: %s, SHA-256 %s, seed %d\n", codeText(h.Spec.Path), codeText(h.Spec.SHA256), h.Seed)
	for _, m := range h.Models {
		fmt.Fprintf(b, "- model (%s): %s, SHA-256 %s\n", escapeMarkdown(m.Precision), codeText(m.Path), codeText(m.SHA256))
	}
	if hasServers(r) {
		fmt.Fprintf(b, "- server: %s\n", escapeMarkdown(h.Server.String()))
	}
	if h.Finals != nil {
		fmt.Fprintf(b, "- server of the finals: %s\n", escapeMarkdown(h.Finals.String()))
	}
	for _, runtime := range runtimes(h) {
		fmt.Fprintf(b, "- ONNX Runtime %s (%s)\n", escapeMarkdown(runtime.Version), escapeMarkdown(runtime.Flavour))
	}
	fmt.Fprintf(b, "- tuner %s\n", escapeMarkdown(h.Tool))
	fmt.Fprintf(b, "- machine: %s (fingerprint %s), campaign begun %s\n", escapeMarkdown(machineText(h.Machine)), codeText(h.Fingerprint), h.Created.UTC().Format("2006-01-02 15:04 MST"))
}

// runtimes lists the builds that were measured, or that compared variants; none where another server did everything.
func runtimes(h journal.Header) []journal.RuntimeInfo {
	switch {
	case len(h.Runtimes) > 0:
		return h.Runtimes
	case h.Runtime == journal.RuntimeInfo{} && h.Server != nil:
		return nil
	}
	return []journal.RuntimeInfo{h.Runtime}
}
