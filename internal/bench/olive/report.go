package main

import (
	"fmt"
	"io"
	"strings"
)

// report prints Markdown: what each program did, what its answer is worth, and what it tried.
func report(out io.Writer, all []comparison) error {
	var text strings.Builder
	text.WriteString("\n| model | asked | wall s | exit | settings measured | latency it tells | its answer |\n|---|---|---|---|---|---|---|\n")
	for _, c := range all {
		for _, a := range c.answers {
			fmt.Fprintf(&text, "| %s | %s | %.0f | %d | %d | %s | %s |\n", c.name, a.by, a.elapsed.Seconds(), a.exit, a.measured,
				duration(a.latency), cell(a.text()))
		}
	}
	text.WriteString("\n| model | default, median | answer of | median | × default | 95 % interval | cosine with the original |\n|---|---|---|---|---|---|---|\n")
	for _, c := range all {
		for i, a := range c.answers {
			fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", c.name, duration(c.judged.base), a.by, c.judged.marks[i].cells())
		}
	}
	text.WriteString("\nTried:\n")
	for _, c := range all {
		for _, a := range c.answers {
			if len(a.tried) > 0 {
				fmt.Fprintf(&text, "- %s, %s: %s\n", c.name, a.by, strings.Join(a.tried, "; "))
			}
		}
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("cannot print the comparison: %w", err)
	}
	return nil
}

// cells are the last four of a row.
func (m mark) cells() string {
	switch {
	case m.seconds == 0:
		return "no answer | | | "
	case m.same:
		return duration(m.seconds) + " | 1: it is the default | | 1"
	}
	return fmt.Sprintf("%s | **%.2f** | %.2f–%.2f | %.4f", duration(m.seconds), m.gain.Value, m.gain.Lo, m.gain.Hi, m.cosine)
}

// duration is seconds for people; "" for 0.
func duration(seconds float64) string {
	switch {
	case seconds == 0:
		return ""
	case seconds < 1e-3:
		return fmt.Sprintf("%.0f µs", seconds*1e6)
	}
	return fmt.Sprintf("%.2f ms", seconds*1e3)
}

// cell is text that does not end a cell of a table.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) }
