package output

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"tuner/measure"
	"tuner/perf"
)

// Benchstat writes the format of Go's benchmarks, so that golang.org/x/perf/cmd/benchstat can
// compare runs. Each window is a line with requests, mean latency, throughput, and percentiles of
// the latency. Windows without an answered request are left out.
func Benchstat(w io.Writer, r perf.Report) error {
	var b strings.Builder
	if r.Settings.Machine != "" {
		fmt.Fprintf(&b, "machine: %s\n", oneLine(r.Settings.Machine))
	}
	b.WriteString("Unit infer/s better=higher\nUnit p50-ns better=lower\nUnit p99-ns better=lower\n")
	for _, l := range r.Levels {
		name := benchmarkName(l, r.Settings)
		for _, window := range l.Measurement.Windows {
			one := measure.Measurement{Windows: []measure.Window{window}}
			t := totalOf(one)
			if t.latency.Count() == 0 {
				continue
			}
			fmt.Fprintf(&b, "%s %d %.0f ns/op %s infer/s %d p50-ns %d p99-ns\n", name, t.requests,
				1e9*estimate(one, measure.LatencyAvg).Value, six(t.rate(t.inferences)), t.latency.Quantile(0.5).Nanoseconds(), t.latency.Quantile(0.99).Nanoseconds())
		}
	}
	return write(w, "benchmarks", b.String())
}

// benchmarkName writes the load as benchstat's keys, which must not contain spaces.
func benchmarkName(l perf.Level, s perf.Settings) string {
	parts := []string{"BenchmarkPerf", "model=" + strings.Join(strings.Fields(s.Model), "_"), "proto=" + s.Protocol}
	if l.Load.BatchSize > 1 {
		parts = append(parts, "batch="+strconv.Itoa(l.Load.BatchSize))
	}
	if isOpen(l.Load) {
		parts = append(parts, "rate="+six(l.Load.RequestRate))
	} else {
		parts = append(parts, "concurrency="+strconv.Itoa(l.Load.Concurrency))
	}
	return strings.Join(parts, "/")
}
