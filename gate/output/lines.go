package output

import (
	"fmt"
	"io"
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
	metrics := r.Setup.Spec.AllMetrics()
	if len(metrics) == 0 {
		metrics = []measure.Metric{measure.Throughput, measure.LatencyP99}
	}
	for _, m := range metrics {
		direction := "lower"
		if info, _ := m.Info(); info.HigherBetter {
			direction = "higher"
		}
		fmt.Fprintf(&b, "Unit %s better=%s\n", benchUnit(m), direction)
	}
	load := fmt.Sprintf("concurrency=%d", r.Setup.Load.Concurrency)
	if r.Setup.Load.Concurrency == 0 {
		load = "rate=" + strconv.FormatFloat(r.Setup.Load.RequestRate, 'g', 6, 64)
	}
	line := func(side string, m measure.Measurement) {
		var figures []string
		for _, metric := range metrics {
			if v, ok := gate.Figure(metric, m); ok {
				figures = append(figures, benchValue(metric, v)+" "+benchUnit(metric))
			}
		}
		if len(figures) > 0 {
			fmt.Fprintf(&b, "BenchmarkGate/model=%s/%s/side=%s 1 %s\n", r.Setup.Spec.Name, load, side, strings.Join(figures, " "))
		}
	}
	for _, p := range r.Outcome.Pairs {
		line("baseline", p.Baseline)
		line("candidate", p.Candidate)
	}
	return write(w, "benchmarks", b.String())
}

// benchUnit returns a metric's unit for benchstat, which interprets the suffixes -ns and -bytes.
func benchUnit(m measure.Metric) string {
	info, _ := m.Info()
	switch info.Unit {
	case measure.InferPerSecond:
		return string(measure.InferPerSecond)
	case measure.Seconds:
		return strings.TrimPrefix(string(m), "latency_") + "-ns"
	case measure.Bytes:
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
