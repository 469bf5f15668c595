package output

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/internal/words"
	"tuner/measure"
)

// WriteBench writes the format of Go's benchmarks, with a line for each side of a pair. benchstat
// -col /side gate.bench compares the sides. Other tools read the format too.
func WriteBench(w io.Writer, r Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "machine: %s\nruntime: %s\n", r.Setup.Fingerprint, r.Setup.Candidate.Runtime)
	rows := r.benchRows()
	var units []string
	for _, row := range rows {
		for _, m := range row.metrics {
			direction := "lower"
			if info, _ := m.Info(); info.HigherBetter {
				direction = "higher"
			}
			if unit := benchUnit(m); !slices.Contains(units, unit) {
				units = append(units, unit)
				fmt.Fprintf(&b, "Unit %s better=%s\n", unit, direction)
			}
		}
	}
	for _, p := range r.Outcome.Pairs {
		for _, side := range []struct {
			name string
			of   measure.Measurement
		}{{"baseline", p.Baseline}, {"candidate", p.Candidate}} {
			for _, row := range rows {
				b.WriteString(row.line(side.name, side.of))
			}
		}
	}
	return write(w, "benchmarks", b.String())
}

// benchRow is a benchmark: a model with its load and its metrics, or what several models have in common.
type benchRow struct {
	name, load string
	metrics    []measure.Metric // with the model's name before them, if it is one of several
}

// benchRows lists the model, or each of several and then their server. A row without metrics has none.
func (r Report) benchRows() []benchRow {
	metrics := r.Setup.Spec.AllMetrics()
	if len(r.Setup.Models) == 0 {
		if len(metrics) == 0 {
			metrics = []measure.Metric{measure.Throughput, measure.LatencyP99}
		}
		return []benchRow{{r.Setup.Spec.Name, benchLoad(r.Setup.Load), metrics}}
	}
	of := func(model string) []measure.Metric {
		return slices.DeleteFunc(slices.Clone(metrics), func(m measure.Metric) bool { name, _ := m.Split(); return name != model })
	}
	var rows []benchRow
	for _, m := range r.Setup.Models {
		rows = append(rows, benchRow{m.Spec.Name, benchLoad(m.Load), of(m.Spec.Name)})
	}
	return append(rows, benchRow{r.Setup.Spec.Name, "together", of("")})
}

func benchLoad(l measure.Load) string {
	if l.Concurrency > 0 {
		return fmt.Sprintf("concurrency=%d", l.Concurrency)
	}
	return "rate=" + strconv.FormatFloat(l.RequestRate, 'g', 6, 64)
}

// line returns the line of one side of a pair; "" without a figure.
func (row benchRow) line(side string, m measure.Measurement) string {
	var figures []string
	for _, metric := range row.metrics {
		if v, ok := gate.Figure(metric, m); ok {
			figures = append(figures, benchValue(metric, v)+" "+benchUnit(metric))
		}
	}
	if len(figures) == 0 {
		return ""
	}
	return fmt.Sprintf("BenchmarkGate/model=%s/%s/side=%s 1 %s\n", row.name, row.load, side, strings.Join(figures, " "))
}

// benchUnit returns a metric's unit for benchstat, which interprets the suffixes -ns and -bytes.
func benchUnit(m measure.Metric) string {
	_, m = m.Split()
	info, _ := m.Info()
	switch {
	case m == measure.Throughput: // a goodput has its own name, since benchstat joins the values of one unit
		return string(measure.InferPerSecond)
	case info.Unit == measure.Seconds:
		return strings.TrimPrefix(string(m), "latency_") + "-ns"
	case info.Unit == measure.Bytes:
		return string(m) + "-bytes"
	}
	return string(m)
}

func benchValue(m measure.Metric, v float64) string {
	if info, _ := m.Info(); info.Unit == measure.Seconds {
		return strconv.FormatFloat(1e9*v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// The CI systems whose job logs support annotations.
const (
	GitHub = "github"
	GitLab = "gitlab"
)

// WriteAnnotations writes a line for each reason. For GitHub they are workflow commands, which
// appear at the run. For GitLab they are coloured lines, since its logs have no other marks.
// GitLab's page of tests reads junit.xml.
func WriteAnnotations(w io.Writer, system string, r Report) error {
	level := "notice"
	switch {
	case r.CountsAs(r.Outcome.Verdict) == decide.Fail:
		level = "error"
	case r.Outcome.Verdict == decide.Inconclusive:
		level = "warning"
	}
	lines := r.Outcome.Reasons
	if len(lines) == 0 {
		lines = []string{r.headline()}
	}
	var b strings.Builder
	for _, text := range lines {
		text = words.Shorten(text, longestReason)
		if system == GitHub {
			fmt.Fprintf(&b, "::%s title=%s::%s\n", level, escapeProperty("tuner gate: "+r.Setup.Spec.Name), escapeCommand(text))
			continue
		}
		colour := map[string]string{"error": "31", "warning": "33", "notice": "32"}[level]
		fmt.Fprintf(&b, "\x1b[%s;1m%s: tuner gate: %s: %s\x1b[0m\n", colour, strings.ToUpper(level), r.Setup.Spec.Name, strings.ReplaceAll(text, "\n", " "))
	}
	return write(w, "annotations", b.String())
}

// escapeCommand escapes the text of a workflow command.
func escapeCommand(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

// escapeProperty escapes a property of a workflow command.
func escapeProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeCommand(text))
}
