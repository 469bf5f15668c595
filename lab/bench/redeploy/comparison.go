package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"tuner/measure"
	"tuner/measure/stats"
)

// figures are one side's figures of one pair.
type figures struct {
	Throughput float64        // inferences per second
	P99        float64        // seconds
	Foreign    float64        // share of the machine's CPU time that other processes used, 0..1
	Window     measure.Window // source of the figures
}

// newFigures reads the figures from a measurement of one window.
func newFigures(m measure.Measurement) (figures, error) {
	if m.Failure != nil {
		return figures{}, fmt.Errorf("failed (%s): %s", m.Failure.Stage, m.Failure.Reason)
	}
	throughput, ok := m.Estimate(measure.Throughput)
	p99, known := m.Estimate(measure.LatencyP99)
	if !ok || !known || len(m.Windows) == 0 {
		return figures{}, errors.New("no request was completed")
	}
	return figures{throughput.Value, p99.Value, m.Windows[0].Foreign, m.Windows[0]}, nil
}

// pair holds both sides, measured one right after the other.
type pair struct {
	A, B     figures
	Reversed bool // B first
}

// comparison holds everything that is printed.
type comparison struct {
	Model        string
	A, B         string // the sides' names
	LoadA, LoadB measure.Load
	Window       time.Duration
	Reported     measure.Estimate // throughput of the winner in the campaign's report
	Pairs        []pair
}

// column collects one figure of all pairs.
func (c comparison) column(of func(pair) float64) []float64 {
	values := make([]float64, len(c.Pairs))
	for i, p := range c.Pairs {
		values[i] = of(p)
	}
	return values
}

// write prints the table of pairs, the summary, and lines for benchstat.
func (c comparison) write(out io.Writer) error {
	var text strings.Builder
	if err := c.writeTable(&text); err != nil {
		return err
	}
	c.writeSummary(&text)
	c.writeBenchmarks(&text)
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("cannot print the comparison: %w", err)
	}
	return nil
}

func (c comparison) writeTable(out io.Writer) error {
	fmt.Fprintf(out, "%s: A = %s at %s, B = %s at %s; windows of %v, each on a fresh engine\n\n", c.Model, c.A, c.LoadA, c.B, c.LoadB, c.Window)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "pair\torder\tA infer/s\tB infer/s\tB/A\tA p99 ms\tB p99 ms\tA foreign\tB foreign\t")
	for i, p := range c.Pairs {
		order := "A B"
		if p.Reversed {
			order = "B A"
		}
		fmt.Fprintf(table, "%d\t%s\t%.1f\t%.1f\t%.3f\t%.2f\t%.2f\t%.0f %%\t%.0f %%\t\n", i+1, order, p.A.Throughput, p.B.Throughput,
			p.B.Throughput/p.A.Throughput, 1000*p.A.P99, 1000*p.B.P99, 100*p.A.Foreign, 100*p.B.Foreign)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("cannot print the table of pairs: %w", err)
	}
	return nil
}

// writeSummary prints medians and ratios. The reported throughput is one number from another time.
// So the interval of its ratio has only B's spread, and its value includes the machine's drift
// since then.
func (c comparison) writeSummary(out io.Writer) {
	a := c.column(func(p pair) float64 { return p.A.Throughput })
	b := c.column(func(p pair) float64 { return p.B.Throughput })
	reported := c.column(func(pair) float64 { return c.Reported.Value })
	foreign := stats.Mean(c.column(func(p pair) float64 { return (p.A.Foreign + p.B.Foreign) / 2 })).Value
	fmt.Fprintf(out, "\nmedian throughput   A %.1f, B %.1f infer/s\n", stats.Median(a), stats.Median(b))
	fmt.Fprintf(out, "p99 of all windows  A %s, B %s\n", c.p99(func(p pair) figures { return p.A }), c.p99(func(p pair) figures { return p.B }))
	fmt.Fprintf(out, "B/A                 %s\n", ratioText(stats.PairedRatio(b, a)))
	fmt.Fprintf(out, "B/reported          %s, of %.1f [%.1f, %.1f] infer/s\n", ratioText(stats.PairedRatio(b, reported)),
		c.Reported.Value, c.Reported.Lo, c.Reported.Hi)
	fmt.Fprintf(out, "foreign CPU load    %.0f %% of the machine\n\n", 100*foreign)
}

// p99 returns the 99th percentile of the latencies in all windows of a side: a single window has
// few requests above it.
func (c comparison) p99(of func(pair) figures) string {
	var all measure.Measurement
	for _, p := range c.Pairs {
		all.Windows = append(all.Windows, of(p).Window)
	}
	p99, ok := all.Estimate(measure.LatencyP99)
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f] ms", 1000*p99.Value, 1000*p99.Lo, 1000*p99.Hi)
}

func ratioText(e stats.Estimate) string {
	return fmt.Sprintf("%.3f, 95 %% interval [%.3f, %.3f]", e.Value, e.Lo, e.Hi)
}

// writeBenchmarks prints a line per measurement in the format of Go's benchmarks.
func (c comparison) writeBenchmarks(out io.Writer) {
	line := func(side string, f figures) {
		fmt.Fprintf(out, "BenchmarkRedeploy/model=%s/side=%s 1 %.1f infer/s %.3f p99-ms %.3f foreign-share\n", c.Model, side, f.Throughput, 1000*f.P99, f.Foreign)
	}
	for _, p := range c.Pairs {
		line(c.A, p.A)
		line(c.B, p.B)
	}
}
