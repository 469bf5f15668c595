// Package view shows a run of `tuner perf` to people while it measures: levels on stdout in text form,
// warnings and a live line on stderr. It measures nothing, and package perf/output has its words.
package view

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/perf"
	"tuner/perf/output"
	"tuner/perf/paflags"
)

// View is a perf.Observer.
type View struct {
	out, err io.Writer
	settings perf.Settings
	verbose  int
	text     bool     // print levels on stdout as text
	terminal *os.File // the terminal of the live line; nil if stderr is no terminal
	failed   error    // first write error
}

// New makes the view of a run. out carries the levels if the reports are text, err messages for
// people.
func New(out, err io.Writer, s perf.Settings, r paflags.Reports) *View {
	v := &View{out: out, err: err, settings: s, verbose: r.Verbose, text: r.Output == "text"}
	if f, ok := terminal.File(err); ok {
		v.terminal = f
	}
	return v
}

// Begin prints the settings of the run.
func (v *View) Begin() {
	v.print(func(w io.Writer) error { return output.Banner(w, v.settings) })
}

// print writes to stdout, unless stdout is for programs.
func (v *View) print(write func(io.Writer) error) {
	if !v.text || v.failed != nil {
		return
	}
	v.failed = write(v.out)
}

// Live rewrites the live line. Without a terminal it prints a line per window if --verbose asks for
// it.
func (v *View) Live(p perf.Progress) {
	switch {
	case v.terminal != nil:
		columns, _, err := term.GetSize(int(v.terminal.Fd()))
		if err != nil {
			columns = 80
		}
		fmt.Fprint(v.terminal, clearLine+words.Shorten(output.Live(p), columns-1))
	case v.verbose > 0 && p.Window > 0:
		fmt.Fprintln(v.err, output.Live(p))
	}
}

// clearLine moves to the first column and clears the line.
const clearLine = "\r\x1b[K"

// Measured prints a level and its warnings.
func (v *View) Measured(l perf.Level) {
	v.clear()
	v.print(func(w io.Writer) error { return output.Text(w, l, v.settings, v.verbose) })
	for _, w := range l.Warnings {
		v.Warn(w)
	}
}

// End clears the live line. The run may have ended within a level of which nothing is printed.
func (v *View) End() { v.clear() }

func (v *View) clear() {
	if v.terminal != nil {
		fmt.Fprint(v.terminal, clearLine)
	}
}

// Warn prints a warning.
func (v *View) Warn(text string) {
	v.clear()
	fmt.Fprintf(v.err, "WARNING: %s\n", text)
}

// Failed returns the first error of writing to out.
func (v *View) Failed() error { return v.failed }
