package sidebyside

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// The protocols, with perf_analyzer's names.
const (
	HTTP = "http"
	GRPC = "grpc"
)

// Windows is the number of windows of a measurement: the least for which perf_analyzer reports.
const Windows = 3

// Analyzer is perf_analyzer, or a program that takes its arguments and writes its report.
type Analyzer struct {
	Name    string
	Command []string
	Work    string // folder for the report
}

// Demand is one load for an analyzer.
type Demand struct {
	Model, Protocol, Address string
	Window                   time.Duration
	Data                     string   // file with the inputs, in perf_analyzer's JSON; "": zeros
	Args                     []string // further ones
}

// Measure has a program make a load in three windows, for any spread, and reads its CSV report. It
// ends a program that takes far longer than the windows.
func Measure[T any](ctx context.Context, a Analyzer, d Demand, read func(report io.Reader) (T, error)) (T, error) {
	var none T
	report := filepath.Join(a.Work, "report.csv")
	if err := os.RemoveAll(report); err != nil {
		return none, fmt.Errorf("cannot remove an earlier report: %w", err)
	}
	args := slices.Concat(a.Command[1:], []string{
		"-m", d.Model, "-i", d.Protocol, "-u", d.Address, "--input-data", cmp.Or(d.Data, "zero"), "-f", report, "--verbose-csv",
		"-p", strconv.FormatInt(d.Window.Milliseconds(), 10), "-s", "100000", "-r", strconv.Itoa(Windows),
	}, d.Args)
	ctx, cancel := context.WithTimeout(ctx, 10*d.Window+time.Minute)
	defer cancel()
	if text, err := exec.CommandContext(ctx, a.Command[0], args...).CombinedOutput(); err != nil {
		return none, fmt.Errorf("%s failed: %w; its arguments: %q, its output:\n%s", a.Name, err, args, text)
	}
	return ReadFile(report, read)
}

// ReadFile reads a file that a program wrote.
func ReadFile[T any](path string, read func(io.Reader) (T, error)) (value T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return value, fmt.Errorf("cannot read the report: %w", err)
	}
	defer f.Close()
	if value, err = read(f); err != nil {
		return value, fmt.Errorf("cannot read the report: %w", err)
	}
	return value, nil
}

// Columns returns the columns with the given titles from a CSV report of one load.
func Columns(report io.Reader, titles ...string) (map[string]float64, error) {
	lines, err := csv.NewReader(report).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) != 2 {
		return nil, fmt.Errorf("it has %d lines, expected a heading and a load", len(lines))
	}
	columns := map[string]float64{}
	for _, title := range titles {
		at := slices.Index(lines[0], title)
		if at < 0 {
			return nil, fmt.Errorf("%q lacks one of %q", lines[0], titles)
		}
		if columns[title], err = strconv.ParseFloat(lines[1][at], 64); err != nil {
			return nil, fmt.Errorf("%q is no number: %w", title, err)
		}
	}
	return columns, nil
}
