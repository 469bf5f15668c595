package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"tuner/stats"
)

// comparison is one line of a table: one figure of both sides in every round.
type comparison struct {
	Name   string
	Unit   string
	Rounds []round
	Of     func(figures) float64 // above zero
	Scale  float64               // what the figure is multiplied with to be in Unit
	Goal   string                // of the ratio; "" where there is none
}

// values lists the figure of both sides, round by round.
func (c comparison) values() (tuner, triton []float64) {
	for _, r := range c.Rounds {
		tuner = append(tuner, c.Scale*c.Of(r.Tuner))
		triton = append(triton, c.Scale*c.Of(r.Triton))
	}
	return tuner, triton
}

// ratio is tuner's figure over Triton's: the median of the rounds' ratios, and the 95 % interval of stats.PairedRatio.
func (c comparison) ratio() stats.Estimate {
	tuner, triton := c.values()
	ratios := make([]float64, len(tuner))
	for i := range tuner {
		ratios[i] = tuner[i] / triton[i]
	}
	paired := stats.PairedRatio(tuner, triton)
	return stats.Estimate{Value: stats.Median(ratios), Lo: paired.Lo, Hi: paired.Hi}
}

// noise is what disturbed the rounds: the median share of the machine that other processes took, and the median cores that
// the server without load used.
func (c comparison) noise() (foreign, idle float64) {
	var f, i []float64
	for _, r := range c.Rounds {
		f = append(f, (r.Tuner.Foreign+r.Triton.Foreign)/2)
		i = append(i, (r.Tuner.Idle+r.Triton.Idle)/2)
	}
	return stats.Median(f), stats.Median(i)
}

// report prints comparisons, if there are any, as a table, and records them.
func (b *bench) report(title string, lines []comparison) error {
	if len(lines) == 0 {
		return nil
	}
	return errors.Join(writeTable(b.out, title, lines), writeRecord(b.record, lines))
}

// writeTable prints comparisons as a table in Markdown.
func writeTable(out io.Writer, title string, lines []comparison) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s\n\n", title)
	text.WriteString("| | tuner, median | Triton, median | ratio | 95 % interval | goal | rounds | foreign CPU | idle server, cores |\n")
	text.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range lines {
		tuner, triton := c.values()
		ratio := c.ratio()
		foreign, idle := c.noise()
		fmt.Fprintf(&text, "| %s | %s %s | %s %s | **%.2f** | %.2f–%.2f | %s | %d | %.0f %% | %.2f |\n", c.Name,
			digits(stats.Median(tuner)), c.Unit, digits(stats.Median(triton)), c.Unit,
			ratio.Value, ratio.Lo, ratio.Hi, c.Goal, len(c.Rounds), 100*foreign, idle)
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("cannot print the table: %w", err)
	}
	return nil
}

// writeRecord writes every figure of comparisons as a line of a Go benchmark: `benchstat -col /side FILE` reads them.
func writeRecord(out io.Writer, lines []comparison) error {
	var text strings.Builder
	for _, c := range lines {
		name := strings.ReplaceAll(c.Name, " ", "_")
		tuner, triton := c.values()
		for i := range tuner {
			fmt.Fprintf(&text, "BenchmarkPeers/%s/side=tuner 1 %g %s\n", name, tuner[i], c.Unit)
			fmt.Fprintf(&text, "BenchmarkPeers/%s/side=triton 1 %g %s\n", name, triton[i], c.Unit)
		}
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("cannot write the record: %w", err)
	}
	return nil
}

// digits prints a value with three digits or more.
func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// The figures that comparisons are about.

func throughput(f figures) float64 { return f.Throughput }

func p99(f figures) float64 { return f.P99 }

func cpuPerThousand(f figures) float64 { return f.CPU }

func meanBatch(f figures) float64 { return f.Batch }

func infer(f figures) float64 { return f.Infer }

func around(f figures) float64 { return f.Around }

// shortestAdded keeps ratios defined where the time of the model exceeds the latency: 1 µs.
const shortestAdded = 1e-6

// added is the median latency less the mean time of the model's own, which a disturbed machine lengthens more.
func added(f figures) float64 { return max(shortestAdded, f.P50-f.Infer) }

// addedMean is the mean latency that is not the model's own. Both means hold the same disturbances of the model's runs, so
// that they cancel out.
func addedMean(f figures) float64 { return max(shortestAdded, f.Mean-f.Infer) }
