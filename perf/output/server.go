package output

import (
	"fmt"
	"strings"

	"tuner/measure"
	"tuner/perf"
)

// writeServer writes perf_analyzer's block with the server's statistics of a model, and of the
// models that it calls.
func writeServer(b *strings.Builder, s measure.ServerStats, composing []perf.Composing, cache bool) {
	b.WriteString("  Server: \n")
	writeStatistics(b, "    ", s, composing, cache)
	if len(composing) == 0 {
		return
	}
	b.WriteString("  Composing models: \n")
	for _, c := range composing {
		fmt.Fprintf(b, "  %s, version: %s\n", c.Model, c.Version)
		writeStatistics(b, "      ", c.Server, nil, cache)
	}
}

// writeStatistics writes the statistics of one model. For an ensemble it adds up the means of its
// composing models.
func writeStatistics(b *strings.Builder, indent string, s measure.ServerStats, composing []perf.Composing, cache bool) {
	if s.Requests == 0 {
		fmt.Fprintf(b, "%sRequest count: 0\n", indent)
		return
	}
	p := partsOf(s)
	fmt.Fprintf(b, "%[1]sInference count: %[2]d\n%[1]sExecution count: %[3]d\n", indent, s.Inferences, s.Executions)
	if cache {
		fmt.Fprintf(b, "%[1]sCache hit count: %[2]d\n%[1]sCache miss count: %[3]d\n", indent, s.CacheHits, s.CacheMisses)
	}
	fmt.Fprintf(b, "%[1]sSuccessful request count: %[2]d\n%[1]sAvg request latency: %[3]d usec", indent, s.Requests, p.success)
	computed := fmt.Sprintf("compute input %d usec + compute infer %d usec + compute output %d usec)", p.input, p.infer, p.output)
	switch {
	case len(composing) > 0:
		p.queue, p.compute = 0, 0
		for _, c := range composing {
			inner := partsOf(c.Server)
			p.queue, p.compute = p.queue+inner.queue, p.compute+inner.compute
		}
		fmt.Fprintf(b, " (overhead %d usec + queue %d usec + compute %d usec)\n", p.overhead(p.compute), p.queue, p.compute)
	case cache:
		fmt.Fprintf(b, " (overhead %d usec + queue %d usec + cache hit/miss %d usec)\n", p.overhead(p.accounted), p.queue, p.accounted)
		fmt.Fprintf(b, "%s  Average Cache Hit Latency: %d usec\n", indent, p.hit)
		fmt.Fprintf(b, "%s  Average Cache Miss Latency: %d usec (cache lookup/insertion %d usec + %s\n", indent, p.miss+p.compute, p.miss, computed)
	default:
		fmt.Fprintf(b, " (overhead %d usec + queue %d usec + %s\n", p.overhead(p.compute), p.queue, computed)
	}
	writeBatches(b, indent, s)
	b.WriteByte('\n')
}

// writeBatches writes the executions per batch size, if they are known and any size is larger than
// 1.
func writeBatches(b *strings.Builder, indent string, s measure.ServerStats) {
	if s.MeanBatch() <= 1 {
		return
	}
	fmt.Fprintf(b, "%sExecuted batches: %.3g on average", indent, s.MeanBatch())
	separator := "; "
	for _, batch := range s.Batches {
		if batch.Executions > 0 {
			fmt.Fprintf(b, "%s%d in %s", separator, batch.Size, percent(float64(batch.Executions)/float64(s.Executions)))
			separator = ", "
		}
	}
	b.WriteByte('\n')
}

// mostGPUs is the largest number of GPUs that perf_analyzer lists.
const mostGPUs = 16

// writeGPUs writes perf_analyzer's block on the GPUs, from the server's metrics page or from the
// machine itself, and the energy.
func writeGPUs(b *strings.Builder, t total, metrics bool) {
	if metrics {
		b.WriteString("  Server Prometheus Metrics: \n")
	} else if len(t.gpus) > 0 {
		b.WriteString("  GPUs: \n")
	}
	switch {
	case !metrics && len(t.gpus) == 0:
		return
	case len(t.gpus) > mostGPUs:
		b.WriteString("Too many GPUs on system to print out individual Prometheus metrics, use the CSV output feature to see metrics.\n")
		return
	}
	for _, line := range []struct {
		title string
		text  func(measure.GPUWindow) string
	}{
		{"Avg GPU Utilization", func(g measure.GPUWindow) string { return six(100*g.Utilization) + "%" }},
		{"Avg GPU Power Usage", func(g measure.GPUWindow) string { return six(g.Power) + " watts" }},
		{"Max GPU Memory Usage", func(g measure.GPUWindow) string { return fmt.Sprintf("%d bytes", g.MemoryUsed) }},
		{"Total GPU Memory", func(g measure.GPUWindow) string { return fmt.Sprintf("%d bytes", g.MemoryTotal) }},
	} {
		fmt.Fprintf(b, "    %s:\n", line.title)
		for _, g := range t.gpus {
			fmt.Fprintf(b, "      %s : %s\n", g.UUID, line.text(g))
		}
	}
	if energy := t.energy(); energy > 0 {
		fmt.Fprintf(b, "    Energy per inference: %s joules\n", six(energy))
	}
}

// writeMachine writes the figures of processes and machine, as far as they are known.
func writeMachine(b *strings.Builder, m measure.Measurement, t total) {
	b.WriteString("  Machine: \n")
	if cpu, ok := m.Estimate(measure.CPU); ok {
		fmt.Fprintf(b, "    Engine CPU: %.3g cores\n", cpu.Value)
	}
	if memory, ok := m.Estimate(measure.Memory); ok {
		fmt.Fprintf(b, "    Engine memory: %.0f MB at most\n", memory.Value/1e6)
	}
	fmt.Fprintf(b, "    Load generator CPU: %.3g cores\n", cores(t))
	if t.foreign > 0 { // also 0 if the engine's process is unknown
		fmt.Fprintf(b, "    Other processes: %s of the machine's CPU time\n", percent(t.foreign))
	}
	if t.steal > 0 {
		fmt.Fprintf(b, "    Hypervisor: %s of the machine's CPU time\n", percent(t.steal))
	}
	if t.throttled > 0 {
		fmt.Fprintf(b, "    CPU quota: threads were stopped for %s of the CPU time\n", percent(t.throttled))
	}
	b.WriteByte('\n')
}

// cores returns the mean number of cores that the load generator used.
func cores(t total) float64 {
	if t.duration <= 0 {
		return 0
	}
	return t.clientCPU.Seconds() / t.duration.Seconds()
}
