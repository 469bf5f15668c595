package sidebyside

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"tuner/measure/stats"
)

// Side is one of the two programs that are compared.
type Side struct {
	Name string // in tables
	Key  string // in the record
}

// Line is one figure of both sides in every round.
type Line struct {
	Name, Unit   string
	Ours, Theirs []float64 // above zero, in the unit, round by round
	Goal         string    // of the ratio; "" for none
	Disturbed    []string  // values for Table.Disturbances
}

// Ratio returns our figure divided by theirs: the median of the rounds' ratios, and the 95 %
// interval of stats.PairedRatio.
func (l Line) Ratio() stats.Estimate {
	ratios := make([]float64, len(l.Ours))
	for i := range ratios {
		ratios[i] = l.Ours[i] / l.Theirs[i]
	}
	paired := stats.PairedRatio(l.Ours, l.Theirs)
	return stats.Estimate{Value: stats.Median(ratios), Lo: paired.Lo, Hi: paired.Hi}
}

// Table names the two sides, and the outputs of the report.
type Table struct {
	Benchmark    string // its name in the record
	Ours, Theirs Side
	Disturbances []string  // headings for the disturbances of the rounds
	Out          io.Writer // takes tables in Markdown
	// Record: takes every single figure in the format of Go's benchmarks; `benchstat -col /side
	// FILE` reads them
	Record io.Writer
}

// Report prints and records lines, if there are any.
func (t Table) Report(title string, lines []Line) error {
	if len(lines) == 0 {
		return nil
	}
	return errors.Join(Print(t.Out, t.text(title, lines)), t.record(lines))
}

func (t Table) text(title string, lines []Line) string {
	headings := append([]string{t.Ours.Name + ", median", t.Theirs.Name + ", median", "ratio", "95 % interval", "goal", "rounds"}, t.Disturbances...)
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s\n\n| | %s |\n|---%s|\n", title, strings.Join(headings, " | "), strings.Repeat("|---", len(headings)))
	for _, l := range lines {
		ratio := l.Ratio()
		fmt.Fprintf(&text, "| %s | %s %s | %s %s | **%.2f** | %.2f–%.2f | %s | %d | %s |\n", l.Name,
			Digits(stats.Median(l.Ours)), l.Unit, Digits(stats.Median(l.Theirs)), l.Unit,
			ratio.Value, ratio.Lo, ratio.Hi, l.Goal, len(l.Ours), strings.Join(l.Disturbed, " | "))
	}
	return text.String()
}

func (t Table) record(lines []Line) error {
	var text strings.Builder
	for _, l := range lines {
		name := strings.NewReplacer(" ", "_", ",", "").Replace(l.Name)
		for i := range l.Ours {
			fmt.Fprintf(&text, "Benchmark%s/%s/side=%s 1 %g %s\n", t.Benchmark, name, t.Ours.Key, l.Ours[i], l.Unit)
			fmt.Fprintf(&text, "Benchmark%s/%s/side=%s 1 %g %s\n", t.Benchmark, name, t.Theirs.Key, l.Theirs[i], l.Unit)
		}
	}
	if _, err := io.WriteString(t.Record, text.String()); err != nil {
		return fmt.Errorf("cannot write the record: %w", err)
	}
	return nil
}

// CreateRecord creates the file of a record. Without a path, figures are discarded.
func CreateRecord(path string) (*os.File, error) {
	if path == "" {
		path = os.DevNull
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("cannot create the record: %w", err)
	}
	return f, nil
}

// Print writes a table.
func Print(out io.Writer, table string) error {
	if _, err := io.WriteString(out, table); err != nil {
		return fmt.Errorf("cannot print the table: %w", err)
	}
	return nil
}

// Digits prints a value with three digits or more.
func Digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}
