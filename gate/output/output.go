// Package output writes the results of a gate:
//
//   - a table for terminals,
//   - Markdown for a job summary or a pull request,
//   - JUnit XML for the page of tests,
//   - JSON,
//   - the benchmark format for benchstat,
//   - lines that CI systems turn into annotations,
//   - the history as a chart and as a page for a browser.
//
// It measures and decides nothing. Its writers are functions of a writer and a result.
package output

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/internal/durable"
	"tuner/internal/words"
)

// The files of a gate.
const (
	JSONName     = "gate.json"
	MarkdownName = "gate.md"
	JUnitName    = "junit.xml"
	BenchName    = "gate.bench"
	ChartName    = "trend.png"
	TrendName    = "trend.html"
)

// Report is a result with the history that ends with it.
type Report struct {
	gate.Result
	History []gate.Record // the latest last, including this gate
}

// related returns the comparable gates of the history: those with the same model name and load.
func (r Report) related() []gate.Record {
	return slices.DeleteFunc(slices.Clone(r.History), func(record gate.Record) bool {
		return record.Name != r.Setup.Spec.Name || record.Load != r.Setup.Load
	})
}

// file is one of the files, with its writer.
type file struct {
	name  string
	write func(io.Writer, Report) error
}

func files() []file {
	return []file{{JSONName, WriteJSON}, {MarkdownName, WriteMarkdown}, {JUnitName, WriteJUnit}, {BenchName, WriteBench}, {ChartName, WriteChart},
		{TrendName, WriteTrend}}
}

// WriteAll writes the files into a folder, each completely or not at all, and returns their paths.
// It makes the folder.
func WriteAll(dir string, r Report) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make folder %q: %w", dir, durable.Cause(err))
	}
	var written []string
	for _, f := range files() {
		var b bytes.Buffer
		if err := f.write(&b, r); err != nil {
			return written, err
		}
		path := filepath.Join(dir, f.name)
		if err := durable.WriteFile(path, durable.Bytes(b.Bytes())); err != nil {
			return written, fmt.Errorf("cannot write %q: %w", path, durable.Cause(err))
		}
		written = append(written, path)
	}
	return written, nil
}

// headline returns the verdict in a sentence.
func (r Report) headline() string {
	text := r.Setup.Spec.Name + ": "
	switch {
	case r.Outcome.Verdict == decide.Fail:
		return text + "fail"
	case r.Outcome.Verdict == decide.Inconclusive:
		return text + "inconclusive"
	case len(r.Rows) == 0 && len(r.Accuracy) == 0:
		return text + "measured, nothing to judge"
	case len(r.Setup.Spec.Metrics) > 0:
		return text + "pass, not worse than the baseline by more than the margin"
	}
	return text + "pass, within the limits"
}

// byModel returns the verdict on each of several models and on their server; "" for one model.
func (r Report) byModel() string {
	var list []string
	for _, part := range r.Parts() {
		list = append(list, fmt.Sprintf("%s: %s", part.Name(), part.Verdict))
	}
	return strings.Join(list, ", ")
}

// effort describes the measurements behind the verdict.
func (r Report) effort() string {
	n := len(r.Outcome.Pairs)
	unit := "pair"
	if r.Setup.Baseline == nil {
		unit = "launch"
	}
	text := fmt.Sprintf("%s at %s in %s", words.Count(n, unit), r.Setup.LoadText(), words.Clock(r.Outcome.Elapsed))
	if r.Outcome.Looks > 0 {
		text += ", decided in " + words.Count(r.Outcome.Looks, "look")
		if r.Outcome.Verdict == decide.Inconclusive {
			text = strings.Replace(text, "decided in", "undecided after", 1)
		}
	}
	return text
}

// needed describes what a decision would take. It returns "" if the gate is decided, or if more
// time would not help.
func (r Report) needed() string {
	n := r.Outcome.Needed
	switch {
	case r.Outcome.Verdict != decide.Inconclusive || len(r.Outcome.Pairs) == 0 || r.Outcome.Timeless:
		return ""
	case n.Window > 0:
		return fmt.Sprintf("A decision would probably need windows of %v (window in gate.yaml), and %s in all (--budget).", n.Window, words.Clock(n.Time))
	case n.Time > 0:
		return fmt.Sprintf("A decision would probably need %s in all (--budget).", words.Clock(n.Time))
	case r.Outcome.Looks > 0:
		return "No reasonable time would decide it: the change is too close to the margin."
	}
	return ""
}

// longestReason limits the length of a reason. An engine's last messages may fill a page.
const longestReason = 600

// cells returns a row of the table: metric, baseline, candidate, change, interval, tolerance,
// verdict.
func cells(row gate.Row) []string {
	const none = "–"
	baseline, candidate, change := none, none, none
	if row.HasCandidate {
		candidate = row.Metric.Format(row.Candidate)
	}
	if row.HasBaseline && !row.IsLimit() {
		baseline = row.Metric.Format(row.Baseline)
	}
	interval := none
	if row.IsKnown() {
		interval = row.Interval(row.Standing)
		if !row.IsLimit() {
			change = gate.Percent(row.Change.Value)
		}
	}
	return []string{string(row.Metric), baseline, candidate, change, interval, row.Tolerated(), string(row.Verdict)}
}

// heads returns the titles of the columns.
func heads() []string {
	return []string{"metric", "baseline", "candidate", "change", "95 % interval", "allowed", "verdict"}
}

// write writes a text.
func write(w io.Writer, what, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("cannot write %s: %w", what, err)
	}
	return nil
}

// accuracyCells returns the row for the comparison of outputs.
func accuracyCells(a gate.Accuracy) []string {
	value := "–"
	if !math.IsNaN(a.Value) {
		value = fmt.Sprintf("%.4g", a.Value)
	}
	return []string{a.Name(), "–", value, "–", "–", a.Limit, string(a.Verdict())}
}
