package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"tuner/stats"
)

// comparison is one line of a table: one figure of both programs in every round.
type comparison struct {
	name, unit      string
	tuner, analyzer []float64 // above zero, in the unit
	foreign         []float64 // share of the machine's CPU time that others took, of every measurement
	goal            string    // of the ratio; "" where there is none
}

// ratio is tuner's figure over perf_analyzer's: the median of the rounds' ratios, and the interval of stats.PairedRatio.
func (c comparison) ratio() stats.Estimate {
	ratios := make([]float64, len(c.tuner))
	for i := range ratios {
		ratios[i] = c.tuner[i] / c.analyzer[i]
	}
	paired := stats.PairedRatio(c.tuner, c.analyzer)
	return stats.Estimate{Value: stats.Median(ratios), Lo: paired.Lo, Hi: paired.Hi}
}

// report prints comparisons, if there are any, as a table in Markdown, and records every figure.
func (b *bench) report(title string, lines []comparison) error {
	if len(lines) == 0 {
		return nil
	}
	return errors.Join(writeTable(b.out, title, lines), writeRecord(b.record, lines))
}

func writeTable(out io.Writer, title string, lines []comparison) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s\n\n", title)
	text.WriteString("| | tuner perf, median | perf_analyzer, median | ratio | 95 % interval | goal | rounds | foreign CPU, most |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range lines {
		ratio := c.ratio()
		fmt.Fprintf(&text, "| %s | %s %s | %s %s | **%.2f** | %.2f–%.2f | %s | %d | %.0f %% |\n", c.name,
			digits(stats.Median(c.tuner)), c.unit, digits(stats.Median(c.analyzer)), c.unit,
			ratio.Value, ratio.Lo, ratio.Hi, c.goal, len(c.tuner), 100*slices.Max(c.foreign))
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("cannot print the table: %w", err)
	}
	return nil
}

// writeRecord writes every figure as a line of a Go benchmark: `benchstat -col /side FILE` reads them.
func writeRecord(out io.Writer, lines []comparison) error {
	var text strings.Builder
	for _, c := range lines {
		name := strings.NewReplacer(" ", "_", ",", "").Replace(c.name)
		for i := range c.tuner {
			fmt.Fprintf(&text, "BenchmarkPerf/%s/side=tuner 1 %g %s\n", name, c.tuner[i], c.unit)
			fmt.Fprintf(&text, "BenchmarkPerf/%s/side=perf_analyzer 1 %g %s\n", name, c.analyzer[i], c.unit)
		}
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("cannot write the record: %w", err)
	}
	return nil
}
