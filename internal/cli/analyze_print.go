package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"tuner/analyze"
	"tuner/internal/exit"
	"tuner/internal/terminal"
	"tuner/pipeline"
	"tuner/report"
	"tuner/report/formats"
	"tuner/report/text"
	"tuner/spec"
)

// deliver prints a result and writes its files.
func deliver(con console, o analyzeOptions, a spec.Analyze, result analyze.Result) error {
	if err := printResult(con.out, o, a.Formats, result); err != nil {
		return err
	}
	write := formats.All().WriteAll
	if a.Shared {
		write = formats.All().WriteShared
	}
	written, err := write(a.Output, result, a.Formats)
	missing := new(report.MissingModelError)
	if err != nil && !errors.As(err, &missing) {
		return exit.OfFiles(err)
	}
	listFiles(con.err, a.Output, written)
	if err != nil {
		fmt.Fprintf(con.err, "\nThere is no model repository: %v.\n", missing)
	}
	pipeline.NoteOldChart(con.err, a.Output, result)
	return result.Unmet()
}

// printResult prints the result in the form of --output.
func printResult(out io.Writer, o analyzeOptions, names []string, r analyze.Result) error {
	switch o.output {
	case "text":
		return printTable(out, o, names, r)
	case "none":
		return nil
	}
	return formats.All().Print(out, o.output, r)
}

// printTable prints the table if the formats include it, and its explanation if requested.
func printTable(out io.Writer, o analyzeOptions, names []string, r analyze.Result) error {
	if slices.Contains(names, text.Name) {
		write := text.WriteTable
		if _, isTerminal := terminal.File(out); terminal.ShowsColors(isTerminal, os.Getenv) {
			write = text.WriteColoredTable
		}
		if err := write(out, r); err != nil || !o.explain {
			return err
		}
		fmt.Fprintln(out)
	}
	if !o.explain {
		return nil
	}
	return text.WriteExplanation(out, r)
}

// listFiles lists the files of a result.
func listFiles(out io.Writer, dir string, written []string) {
	fmt.Fprintf(out, "\nwritten to %s:\n", dir)
	for _, path := range written {
		if relative, err := filepath.Rel(dir, path); err == nil {
			path = relative
		}
		fmt.Fprintf(out, "  %s\n", path)
	}
}
