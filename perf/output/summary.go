package output

import (
	"fmt"
	"io"
	"strings"

	"tuner/measure"
	"tuner/perf"
)

// Summary writes perf_analyzer's last lines, a line per level in the order of measurement. If there
// is a latency limit, it first names the best level within it. It leaves out levels without an
// answered request. Without any other level it writes nothing.
func Summary(w io.Writer, r perf.Report) error {
	var b strings.Builder
	for _, l := range r.Levels {
		latency, ok := r.Settings.Latency(l.Measurement)
		if !ok {
			continue
		}
		if isOpen(l.Load) {
			fmt.Fprintf(&b, "Request Rate: %s, ", six(l.Load.RequestRate))
		} else {
			fmt.Fprintf(&b, "Concurrency: %d, ", l.Load.Concurrency)
		}
		fmt.Fprintf(&b, "throughput: %s infer/sec, latency %d usec\n", six(estimate(l.Measurement, measure.Throughput).Value), micros(latency.Value))
	}
	if b.Len() == 0 {
		return nil
	}
	name := "Average"
	if r.Settings.Percentile > 0 {
		name = fmt.Sprintf("p%d", r.Settings.Percentile)
	}
	return write(w, "summary", best(r)+"Inferences/Second vs. Client "+name+" Batch Latency\n"+b.String())
}

// best names the best level within the limit.
func best(r perf.Report) string {
	limit := millis(r.Settings.LatencyLimit)
	switch {
	case r.Settings.LatencyLimit == 0:
		return ""
	case r.Best < 0:
		return fmt.Sprintf("No level is within the latency limit of %s msec.\n", limit)
	}
	l := r.Levels[r.Best]
	latency, _ := r.Settings.Latency(l.Measurement)
	return fmt.Sprintf("Best within the latency limit of %s msec: %s, throughput %s infer/sec, latency %d usec (limit %s)\n", limit, l.Load,
		six(estimate(l.Measurement, measure.Throughput).Value), micros(latency.Value), l.Limit)
}

// Live returns a line about the state of a run, without a line break: elapsed time, load, window,
// and the figures of the last window.
func Live(p perf.Progress) string {
	text := fmt.Sprintf("%3.0f s  %s  ", p.Elapsed.Seconds(), p.Load)
	if p.Window == 0 {
		return text + "warming up"
	}
	text += fmt.Sprintf("window %d  %s  p50 %s  p99 %s  in flight %.3g", p.Window, measure.Throughput.Format(p.Throughput),
		measure.LatencyP50.Format(p.P50.Seconds()), measure.LatencyP99.Format(p.P99.Seconds()), p.InFlight)
	for _, c := range []struct {
		name  string
		count int
	}{{"errors", p.Errors}, {"late", p.Late}, {"dropped", p.Dropped}} {
		if c.count > 0 {
			text += fmt.Sprintf("  %s %d", c.name, c.count)
		}
	}
	return text
}
