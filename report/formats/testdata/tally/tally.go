// Package tally is a report format for a test only. It counts the configurations that satisfy the
// constraints.
package tally

import (
	"fmt"
	"io"

	"tuner/analyze"
	"tuner/internal/words"
	"tuner/report"
	"tuner/report/figures"
)

// Format writes tally.txt.
type Format struct{}

// Name implements report.Format.
func (Format) Name() string { return "tally" }

// Files implements report.Format.
func (Format) Files(r analyze.Result, _ report.Output) []report.File {
	return []report.File{{Path: "tally.txt", Write: func(w io.Writer) error { return write(w, r) }}}
}

func write(w io.Writer, r analyze.Result) error {
	n := 0
	for _, c := range r.Configs {
		if c.Satisfies() {
			n++
		}
	}
	if _, err := fmt.Fprintf(w, "%s of %d. %s\n", words.Count(n, "configuration"), len(r.Configs), figures.AnswerOf(r).Headline); err != nil {
		return fmt.Errorf("cannot write the tally: %w", err)
	}
	return nil
}
