// Package output writes what a gate found out: a table for terminals, Markdown for a job summary or a pull request, JUnit XML for the page of
// tests, JSON, the benchmark format that benchstat reads, lines that CI systems turn into annotations, and the history as a chart and as a page
// for a browser. It measures and decides nothing; its writers are functions of a writer and a result.
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

// Report is a result with the history that it ends.
type Report struct {
	gate.Result
	History []gate.Record // the latest last, this gate's included
}

// related are the gates of the history that compare: of the same model's name, at the same load.
func (r Report) related() []gate.Record {
	return slices.DeleteFunc(slices.Clone(r.History), func(record gate.Record) bool {
		return record.Name != r.Setup.Spec.Name || record.Load != r.Setup.Load
	})
}

// file is one of the files with what writes it.
type file struct {
	name  string
	write func(io.Writer, Report) error
}

func files() []file {
	return []file{{JSONName, WriteJSON}, {MarkdownName, WriteMarkdown}, {JUnitName, WriteJUnit}, {BenchName, WriteBench}, {ChartName, WriteChart},
		{TrendName, WriteTrend}}
}

// WriteAll writes the files into a folder, each whole or not at all, and returns their paths. The folder is made.
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

// headline is the verdict in a sentence.
func (r Report) headline() string {
	text := r.Setup.Spec.Name + ": "
	switch {
	case r.Outcome.Verdict == decide.Fail:
		return text + "fail"
	case r.Outcome.Verdict == decide.Inconclusive:
		return text + "inconclusive"
	case len(r.Rows) == 0 && r.Accuracy == nil:
		return text + "measured, nothing to judge"
	case len(r.Setup.Spec.Metrics) > 0:
		return text + "pass, no worse than the baseline by more than is tolerated"
	}
	return text + "pass, within the limits"
}

// effort says what the verdict stands on.
func (r Report) effort() string {
	n := len(r.Outcome.Pairs)
	unit := "pair"
	if r.Setup.Baseline == nil {
		unit = "launch"
	}
	text := fmt.Sprintf("%s at %s in %s", words.Count(n, unit), r.Setup.Load, words.Clock(r.Outcome.Elapsed))
	if r.Outcome.Looks > 0 {
		text += ", decided in " + words.Count(r.Outcome.Looks, "look")
		if r.Outcome.Verdict == decide.Inconclusive {
			text = strings.Replace(text, "decided in", "undecided after", 1)
		}
	}
	return text
}

// needed says what a decision would take; "" where nothing is missing, and where it is not time.
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
		return "No reasonable time would decide it: the change is too near to what is tolerated."
	}
	return ""
}

// longestReason bounds a reason: an engine's last words may be a page.
const longestReason = 600

// cells are a row of the table: metric, baseline, candidate, change, interval, what is allowed, verdict.
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

// heads are the titles above the cells.
func heads() []string {
	return []string{"metric", "baseline", "candidate", "change", "95 % interval", "allowed", "verdict"}
}

// write puts a text out.
func write(w io.Writer, what, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("cannot write %s: %w", what, err)
	}
	return nil
}

// accuracyCells are the row of the outputs' comparison.
func accuracyCells(a gate.Accuracy) []string {
	verdict := string(decide.Pass)
	if a.Miss != "" {
		verdict = string(decide.Fail)
	}
	value := "–"
	if !math.IsNaN(a.Value) {
		value = fmt.Sprintf("%.4g", a.Value)
	}
	return []string{"accuracy", "–", value, "–", "–", a.Limit, verdict}
}
