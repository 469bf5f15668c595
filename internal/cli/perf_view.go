package cli

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

// perfView shows a run of perf: levels on stdout in text form, warnings and a live line on stderr.
// It is a perf.Observer.
type perfView struct {
	console  console
	settings perf.Settings
	verbose  int
	text     bool     // print levels on stdout as text
	terminal *os.File // the terminal of the live line; nil if stderr is no terminal
	failed   error    // first write error
}

func newPerfView(con console, s perf.Settings, r paflags.Reports) *perfView {
	v := &perfView{console: con, settings: s, verbose: r.Verbose, text: r.Output == "text"}
	if f, ok := terminal.File(con.err); ok {
		v.terminal = f
	}
	return v
}

// begin prints the settings of the run.
func (v *perfView) begin() {
	v.print(func(w io.Writer) error { return output.Banner(w, v.settings) })
}

// print writes to stdout, unless stdout is for programs.
func (v *perfView) print(write func(io.Writer) error) {
	if !v.text || v.failed != nil {
		return
	}
	v.failed = write(v.console.out)
}

// Live rewrites the live line. Without a terminal it prints a line per window if --verbose asks for
// it.
func (v *perfView) Live(p perf.Progress) {
	switch {
	case v.terminal != nil:
		columns, _, err := term.GetSize(int(v.terminal.Fd()))
		if err != nil {
			columns = 80
		}
		fmt.Fprint(v.terminal, clearLine+words.Shorten(output.Live(p), columns-1))
	case v.verbose > 0 && p.Window > 0:
		fmt.Fprintln(v.console.err, output.Live(p))
	}
}

// clearLine moves to the first column and clears the line.
const clearLine = "\r\x1b[K"

// Measured prints a level and its warnings.
func (v *perfView) Measured(l perf.Level) {
	v.clear()
	v.print(func(w io.Writer) error { return output.Text(w, l, v.settings, v.verbose) })
	for _, w := range l.Warnings {
		v.warn(w)
	}
}

func (v *perfView) clear() {
	if v.terminal != nil {
		fmt.Fprint(v.terminal, clearLine)
	}
}

func (v *perfView) warn(text string) {
	v.clear()
	fmt.Fprintf(v.console.err, "WARNING: %s\n", text)
}
