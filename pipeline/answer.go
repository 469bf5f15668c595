package pipeline

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tuner/analyze"
	"tuner/export"
	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/pipeline/steps"
	"tuner/report/html"
	"tuner/report/text"
	"tuner/spec"
)

// writeAnswer prints the best configuration, the places of the results, and the next commands.
func (j job) writeAnswer(out io.Writer, r analyze.Result) error {
	if err := text.WriteAnswer(out, r); err != nil {
		return err
	}
	output, names := j.analysis.Output, j.analysis.Formats
	lines := []string{"", "report: " + filepath.Join(output, "report.md")}
	if slices.Contains(names, html.Name) {
		lines = append(lines, "page for a browser: "+filepath.Join(output, "report.html"))
	}
	var next []string
	if r.IsMeasured() { // otherwise there is nothing to explain
		flag, path := j.analysis.Source()
		next = []string{"next:", fmt.Sprintf("  tuner analyze %s %s --explain", flag, words.ShellWord(path))}
	}
	if _, ok := r.Winner(); ok && slices.Contains(names, spec.FormatRepository) {
		repository := filepath.Join(output, "repository")
		lines = append(lines, "repository: "+filepath.Join(repository, r.Header.Model))
		serve := "  tuner serve --model-repository " + words.ShellWord(repository)
		for _, o := range r.Header.Libraries().Options() {
			serve += " " + o.Flag + " " + words.ShellWord(o.Path)
		}
		next = append(next, serve,
			fmt.Sprintf("  tuner export %s --input %s -o %s", export.Triton, words.ShellWord(output), words.ShellWord(freeName(filepath.Join(output, "deploy")))))
	}
	if s, _ := r.Steps.Get(steps.Chart); s.State == steps.OK {
		lines = append(lines, "Helm chart: "+filepath.Join(output, chartDir)+" (README.md there says how to install it)")
	}
	_, err := fmt.Fprintln(out, strings.Join(append(lines, next...), "\n"))
	return err
}

// freeName returns the first of NAME, NAME-2, NAME-3 … that does not exist.
func freeName(path string) string {
	name := path
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d", path, n)
	}
}

// stepLines writes a line for each begin and end of a step.
type stepLines struct{ out io.Writer }

func (r Request) stepLines() stepLines {
	if r.Quiet {
		return stepLines{io.Discard}
	}
	return stepLines{r.Messages}
}

// Begun implements steps.Observer.
func (l stepLines) Begun(name steps.Name) {
	fmt.Fprintf(l.out, "%d/%d %s\n", name.Number(), len(steps.Names()), name)
}

// Ended implements steps.Observer. It omits the error of a failed step, which the program prints
// last.
func (l stepLines) Ended(s steps.Step, before bool) {
	text := "  " + string(s.State)
	switch {
	case before && s.State == steps.OK:
		text += ", done before"
	case s.Elapsed >= time.Second:
		text += " after " + words.Clock(s.Elapsed)
	}
	if s.Text != "" && s.State != steps.Failed {
		text += ": " + strings.Join(strings.Fields(s.Text), " ")
	}
	fmt.Fprint(l.out, terminal.Fold(text+"\n", terminal.Width))
}
