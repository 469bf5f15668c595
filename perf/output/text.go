package output

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tuner/measure"
	"tuner/perf"
)

// Text writes the measurement of one level: perf_analyzer's lines, with ours after them in each
// block. verbose adds its lines of -v: each window, and the client's overhead. A level without
// windows has only its heading.
func Text(w io.Writer, l perf.Level, s perf.Settings, verbose int) error {
	var b strings.Builder
	if isOpen(l.Load) {
		fmt.Fprintf(&b, "Request Rate: %s inference requests per seconds\n", six(l.Load.RequestRate))
	} else {
		fmt.Fprintf(&b, "Request concurrency: %d\n", l.Load.Concurrency)
	}
	if len(l.Measurement.Windows) > 0 {
		t := totalOf(l.Measurement)
		if verbose > 0 {
			writePasses(&b, l.Measurement, s)
		}
		writeClient(&b, l, t, s, verbose)
		writeOurs(&b, l, t, s)
		if s.Statistics {
			writeServer(&b, t.server, l.Composing, s.Cache)
		}
		writeGPUs(&b, t, s.Metrics)
		writeMachine(&b, l.Measurement, t)
	}
	return write(w, "report", b.String())
}

// writePasses writes a line per window.
func writePasses(b *strings.Builder, m measure.Measurement, s perf.Settings) {
	for i, w := range m.Windows {
		one := measure.Measurement{Windows: []measure.Window{w}}
		fmt.Fprintf(b, "  Pass [%d] throughput: %s infer/sec. ", i+1, six(estimate(one, measure.Throughput).Value))
		latency, _ := s.Latency(one)
		if s.Percentile > 0 {
			fmt.Fprintf(b, "p%d latency: %d usec\n", s.Percentile, micros(latency.Value))
		} else {
			fmt.Fprintf(b, "Avg latency: %d usec (std %d usec). \n", micros(latency.Value), one.Std().Microseconds())
		}
	}
}

// lateWarned is the share of late requests at which perf_analyzer warns.
const lateWarned = 0.01

// writeClient writes perf_analyzer's block with the clients' figures.
func writeClient(b *strings.Builder, l perf.Level, t total, s perf.Settings, verbose int) {
	fmt.Fprintf(b, "  Client: \n    Request count: %d\n", t.requests)
	if late := t.lateShare(); late > lateWarned {
		fmt.Fprintf(b, "    Avg send request rate: %.2f infer/sec\n", t.rate(t.scheduled-t.dropped))
		fmt.Fprintf(b, "    [WARNING] The load generator was not able to keep up with the desired request rate. %.2f%% of the requests were delayed. \n", 100*late)
	}
	fmt.Fprintf(b, "    Throughput: %s infer/sec\n", six(estimate(l.Measurement, measure.Throughput).Value))
	if s.Decoupled {
		fmt.Fprintf(b, "    Response Throughput: %s infer/sec\n", six(t.rate(t.responses)))
	}
	if t.latency.Count() == 0 {
		return
	}
	mean := estimate(l.Measurement, measure.LatencyAvg).Value
	if verbose > 0 {
		fmt.Fprintf(b, "    Avg client overhead: %.2f%%\n", 100*t.overhead(isOpen(l.Load)))
	}
	if s.Percentile == 0 {
		fmt.Fprintf(b, "    Avg latency: %d usec (standard deviation %d usec)\n", micros(mean), l.Measurement.Std().Microseconds())
	}
	for _, p := range percentiles(s) {
		e, _ := l.Measurement.Percentile(float64(p) / 100)
		fmt.Fprintf(b, "    p%d latency: %d usec\n", p, micros(e.Value))
	}
	writeRequestTime(b, t, mean, s, verbose)
}

// writeRequestTime writes the parts of the mean latency: before and after the sending of the
// request.
func writeRequestTime(b *strings.Builder, t total, mean float64, s perf.Settings, verbose int) {
	if s.Decoupled {
		b.WriteString("    \n") // as in perf_analyzer
		return
	}
	waited, served := t.split(mean)
	name, both, send, receive := "HTTP", "send/recv", "send", "receive"
	if s.Protocol == "grpc" {
		name, both, send, receive = "gRPC", "(un)marshal request/response", "marshal", "unmarshal"
	}
	fmt.Fprintf(b, "    Avg %s time: %d usec (", name, waited+served)
	if verbose > 0 {
		fmt.Fprintf(b, "%s %d usec + response wait %d usec + %s 0 usec)\n", send, waited, served, receive)
	} else {
		fmt.Fprintf(b, "%s %d usec + response wait %d usec)\n", both, waited, served)
	}
}

// split divides the mean latency into the part before the sending, in an open loop, and the part
// after it, in microseconds. Marshalling is done before the load begins. The time in the socket
// cannot be separated from the server's.
func (t total) split(mean float64) (waited, served int64) {
	all := micros(mean)
	if t.service.Count() == 0 {
		return 0, all
	}
	served = min(all, t.service.Mean().Microseconds())
	return all - served, served
}

// overhead returns the load generator's share of the mean time per request, 0..1. In a closed loop
// that time is the cycle, in an open one the latency.
func (t total) overhead(open bool) float64 {
	own, all := t.sendDelay.Mean(), t.latency.Mean()
	if !open {
		all += own
	}
	if all == 0 {
		return 0
	}
	return min(1, float64(own)/float64(all))
}

// writeOurs writes figures that perf_analyzer does not have: intervals, failed and late requests,
// and windows that deserve less trust.
func writeOurs(b *strings.Builder, l perf.Level, t total, s perf.Settings) {
	m := l.Measurement
	if e := l.Load.Bounded(measure.Throughput, estimate(m, measure.Throughput)); e.Hi > e.Lo {
		fmt.Fprintf(b, "    Throughput interval: %s to %s infer/sec (95 %%)\n", six(e.Lo), six(e.Hi))
	}
	if e, ok := goodput(m, l.Load, s); ok {
		fmt.Fprintf(b, "    Goodput: %s infer/sec within %s msec (95 %%: %s to %s)\n", six(e.Value), millis(s.Goodput), six(e.Lo), six(e.Hi))
	}
	writeLatencyInterval(b, m, s)
	if isOpen(l.Load) {
		fmt.Fprintf(b, "    Offered: %s requests/sec, %d of %d late by more than 1 msec, %d dropped\n", six(m.Offered()), t.late, t.scheduled, t.dropped)
		if t.service.Count() > 0 {
			fmt.Fprintf(b, "    Latency from the sending: p50 %d usec, p99 %d usec\n", t.service.Quantile(0.5).Microseconds(), t.service.Quantile(0.99).Microseconds())
		}
	}
	if t.sendDelay.Count() > 0 {
		fmt.Fprintf(b, "    Send delay: p50 %d usec, p99 %d usec\n", t.sendDelay.Quantile(0.5).Microseconds(), t.sendDelay.Quantile(0.99).Microseconds())
	}
	if t.errors > 0 {
		fmt.Fprintf(b, "    Failed requests: %d of %d (%s), %d of them timed out; the first: %s\n",
			t.errors, t.errors+t.requests, percent(float64(t.errors)/float64(t.errors+t.requests)), t.timedOut, oneLine(t.firstError))
	}
	if l.Waited > t.latency.Quantile(0.99) { // a closed loop always has some requests in flight
		fmt.Fprintf(b, "    Unanswered at the end: %d, the first of them for %s msec\n", l.Unfinished, millis(l.Waited.Round(time.Millisecond)))
	}
	if l.Limit != "" {
		fmt.Fprintf(b, "    Latency limit: %s\n", l.Limit)
	}
	fmt.Fprintf(b, "    Windows: %d in %s sec, %s\n", len(m.Windows), six(t.duration.Round(time.Millisecond).Seconds()), l.Verdict)
	for _, flag := range m.Flags() {
		fmt.Fprintf(b, "    Flag %s (%d of %d windows): %s\n", flag, flagged(m, flag), len(m.Windows), flag.Text())
	}
	for _, o := range l.Others {
		writeOther(b, o)
	}
}

// writeOther writes the load on another model. It has no figures if none of its windows lies within
// those of the level.
func writeOther(b *strings.Builder, o perf.Other) {
	if len(o.Measurement.Windows) == 0 {
		fmt.Fprintf(b, "    Beside: %s at %s: not measured, since the level was too short for a window of it\n", o.Model, o.Load)
		return
	}
	p99, _ := o.Measurement.Percentile(0.99)
	fmt.Fprintf(b, "    Beside: %s at %s: %s infer/sec, p99 latency %d usec\n", o.Model, o.Load,
		six(estimate(o.Measurement, measure.Throughput).Value), micros(p99.Value))
}

// writeLatencyInterval writes the interval of the judged latency.
func writeLatencyInterval(b *strings.Builder, m measure.Measurement, s perf.Settings) {
	e, ok := s.Latency(m)
	name, bounded := "Avg", true
	if s.Percentile > 0 {
		name, bounded = fmt.Sprintf("p%d", s.Percentile), m.Bounded(float64(s.Percentile)/100)
	}
	switch {
	case !ok:
	case !bounded:
		fmt.Fprintf(b, "    %s latency interval: %d usec or more (95 %%; more requests are needed for its upper end)\n", name, micros(e.Lo))
	case e.Hi > e.Lo:
		fmt.Fprintf(b, "    %s latency interval: %d to %d usec (95 %%)\n", name, micros(e.Lo), micros(e.Hi))
	}
}

// flagged returns the number of windows with a flag.
func flagged(m measure.Measurement, flag measure.Flag) int {
	n := 0
	for _, w := range m.Windows {
		for _, f := range w.Flags {
			if f == flag {
				n++
				break
			}
		}
	}
	return n
}

// oneLine removes line breaks from a server's message, since scripts read lines.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
