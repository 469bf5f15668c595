package output

import (
	"fmt"
	"io"
	"strings"

	"tuner/measure/arrivals"
	"tuner/perf"
)

// Banner describes the run before it begins: perf_analyzer's lines, then our lines about the stop
// rule and the meaning of latencies.
func Banner(w io.Writer, s perf.Settings) error {
	var b strings.Builder
	if s.Streams > 0 {
		steps := ""
		if s.Streams == 1 {
			steps = fmt.Sprintf(" with %d step/steps", s.Steps)
		}
		fmt.Fprintf(&b, " Successfully read data for %d stream/streams%s.\n", s.Streams, steps)
	}
	fmt.Fprintf(&b, "*** Measurement Settings ***\n  Batch size: %d\n  Service Kind: TRITON\n", s.Batch)
	writeWindows(&b, s)
	writeRange(&b, s)
	calls := "synchronous"
	if s.Async {
		calls = "asynchronous"
	}
	fmt.Fprintf(&b, "  Using %s calls for inference\n", calls)
	if s.Decoupled {
		b.WriteString("  Detected decoupled model, using the last response for measuring latency\n")
	}
	writeRule(&b, s)
	b.WriteByte('\n')
	return write(w, "settings", b.String())
}

// writeWindows writes the amount of the measurement.
func writeWindows(b *strings.Builder, s perf.Settings) {
	if s.WarmUpRequests > 0 {
		fmt.Fprintf(b, "  Sending %s\n", requests(s.WarmUpRequests, "warmup"))
	}
	if s.RequestCount > 0 {
		fmt.Fprintf(b, "  Sending %s\n", requests(s.RequestCount, "benchmark"))
		return
	}
	mode := "time_windows"
	if s.Stop.Requests > 0 {
		mode = "count_windows"
	}
	fmt.Fprintf(b, "  Using %q mode for stabilization\n", mode)
	latency := "average "
	if s.Percentile > 0 {
		latency = fmt.Sprintf("p%d", s.Percentile) // without a space, as in perf_analyzer
	}
	metrics := "latency and throughput"
	if s.Async && s.Stop.Rule == perf.RuleStability {
		metrics = "throughput"
	}
	fmt.Fprintf(b, "  Stabilizing using %s%s\n", latency, metrics)
	switch {
	case s.Stop.Requests > 0:
		fmt.Fprintf(b, "  Minimum number of samples in each window: %d\n", s.Stop.Requests)
	case s.Stop.Window > 0:
		fmt.Fprintf(b, "  Measurement window: %s msec\n", millis(s.Stop.Window))
	default:
		b.WriteString("  Measurement window: chosen by the latency\n")
	}
}

// writeRange writes the range of levels, if there may be more than one.
func writeRange(b *strings.Builder, s perf.Settings) {
	if s.Levels.Open || s.Levels.End > s.Levels.Start || s.LatencyLimit > 0 {
		fmt.Fprintf(b, "  Latency limit: %s msec\n", millis(s.LatencyLimit))
		switch {
		case s.Levels.Open:
		case s.Mode == perf.ModeConcurrency:
			fmt.Fprintf(b, "  Concurrency limit: %s concurrent requests\n", six(s.Levels.End))
		case s.Mode == perf.ModeRate:
			fmt.Fprintf(b, "  Request Rate limit: %s requests per seconds\n", six(s.Levels.End))
		}
	}
	if s.Mode == perf.ModeRate {
		distribution := "uniform" // perf_analyzer writes this for the value constant of its flag
		if s.Arrivals.Of() != arrivals.ConstantKind {
			distribution = s.Arrivals.String()
		}
		fmt.Fprintf(b, "  Using %s distribution on request generation\n", distribution)
	}
	if s.Search == perf.SearchBinary {
		b.WriteString("  Using Binary Search algorithm\n")
	}
}

// writeRule writes the stop rule, and what latencies mean.
func writeRule(b *strings.Builder, s perf.Settings) {
	switch {
	case s.RequestCount > 0:
	case s.Stop.Rule == perf.RulePrecision:
		fmt.Fprintf(b, "  Stopping when the 95 %% intervals are within %s of their values, or after %s sec per level\n",
			percent(s.Stop.Precision), six(s.Stop.Budget.Seconds()))
	default:
		fmt.Fprintf(b, "  Stopping when three windows agree within %s, or after %d windows per level\n", percent(s.Stop.Stability), s.Stop.Trials)
	}
	fmt.Fprintf(b, "  Seed of inputs and schedules: %d\n", s.Seed)
	if s.Mode == perf.ModeConcurrency {
		b.WriteString("  Closed loop: a latency counts from the sending. What open traffic would have waited while the server was slow is not in it.\n")
	} else {
		b.WriteString("  Open loop: a latency counts from the scheduled instant, whether the request could be sent then or not.\n")
	}
}

// requests formats how many requests of a kind there are.
func requests(n int, kind string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s request", kind)
	}
	return fmt.Sprintf("%d %s requests", n, kind)
}
