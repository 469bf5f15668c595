package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"tuner/internal/durable"
	"tuner/internal/exit"
)

// The lines around the table in a page.
const (
	tableBegins = "<!-- the table begins: make -C lab zoo writes it -->"
	tableEnds   = "<!-- the table ends -->"
)

// replaceTable replaces the table of a page.
func replaceTable(path string, results []Result) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(page), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the table: it needs the lines %q and %q", path, tableBegins, tableEnds)
	}
	var table bytes.Buffer
	if err := writeTable(&table, results); err != nil {
		return err
	}
	return durable.WriteFile(path, durable.Bytes([]byte(before+tableBegins+"\n\n"+table.String()+"\n"+tableEnds+after)))
}

// writeTable writes the results as a Markdown table, after a line with their counts.
func writeTable(w io.Writer, results []Result) error {
	var b strings.Builder
	served, refused, packages := 0, 0, map[string]bool{}
	for _, r := range results {
		packages[r.Package] = true
		switch {
		case !r.Passed():
		case r.Exit == exit.OK:
			served++
		default:
			refused++
		}
	}
	fmt.Fprintf(&b, "%d models of %d packages: %d are served with equal outputs, %d are refused as they should be, %d fail.\n\n",
		len(results), len(packages), served, refused, len(results)-served-refused)
	b.WriteString("| model | origin | task | opset | result | gain | time | decided | requests |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		requests := r.Shapes
		if requests == "" {
			requests = r.Refusal
		}
		cells := []string{strings.TrimPrefix(r.Name, "zoo_") + ", " + r.Package, r.Origin, r.Task, fmt.Sprint(r.Opset), r.Verdict(), orDash(r.Gain),
			fmt.Sprintf("%.0f s", r.Took.Seconds()), orDash(r.Decided), requests}
		for i, c := range cells {
			cells[i] = strings.NewReplacer("|", "\\|", "<", "&lt;", "_", "\\_", "*", "\\*").Replace(strings.Join(strings.Fields(c), " "))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
