package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// side is a program that is measured: `tuner perf` or perf_analyzer, which take the same arguments.
type side struct {
	name    string
	command []string
}

// The protocols, as the programs call them.
const (
	protocolHTTP = "http"
	protocolGRPC = "grpc"
)

// told is what a program reported of one load.
type told struct {
	Rate                float64 // requests per second
	Mean, P50, P95, P99 float64 // latencies in s
	From, To            int64   // its windows, in ns since 1970; 0: not asked for
}

// windows is of how many windows a measurement consists: the fewest that perf_analyzer reports of.
const windows = 3

// demand is one load that a program is to make.
type demand struct {
	protocol, address string
	window            time.Duration
	edges             bool // tell the windows' edges too, which costs a record of every request
	args              []string
}

// arguments are the command line: three windows, whatever their spread.
func (d demand) arguments(report, export string) []string {
	args := []string{
		"-m", "law", "-i", d.protocol, "-u", d.address, "--input-data", "zero", "-f", report, "--verbose-csv",
		"-p", strconv.FormatInt(d.window.Milliseconds(), 10), "-s", "100000", "-r", strconv.Itoa(windows),
	}
	if d.edges {
		args = append(args, "--profile-export-file", export)
	}
	return append(args, d.args...)
}

// measure has a program make a load, and returns what it reports.
func (b *bench) measure(ctx context.Context, s side, d demand) (told, error) {
	report, export := filepath.Join(b.work, "report.csv"), filepath.Join(b.work, "export.json")
	for _, path := range []string{report, export} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return told{}, fmt.Errorf("cannot remove an earlier report: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*windows*d.window+time.Minute)
	defer cancel()
	args := slices.Concat(s.command[1:], d.arguments(report, export))
	if text, err := exec.CommandContext(ctx, s.command[0], args...).CombinedOutput(); err != nil {
		return told{}, fmt.Errorf("%s %q failed: %w; its output:\n%s", s.name, args, err, text)
	}
	t, err := readFile(report, readReport)
	if err != nil || !d.edges {
		return t, err
	}
	edges, err := readFile(export, readEdges)
	t.From, t.To = edges[0], edges[1]
	return t, err
}

// readFile reads a file that a program wrote.
func readFile[T any](path string, read func(io.Reader) (T, error)) (value T, err error) {
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

// readReport reads the CSV report of one load.
func readReport(in io.Reader) (told, error) {
	lines, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return told{}, err
	}
	if len(lines) != 2 {
		return told{}, fmt.Errorf("it has %d lines, expected a heading and a load", len(lines))
	}
	var t told
	fields := map[string]*float64{
		"Inferences/Second": &t.Rate, "Avg latency": &t.Mean, "p50 latency": &t.P50, "p95 latency": &t.P95, "p99 latency": &t.P99,
	}
	for i, title := range lines[0] {
		field, wanted := fields[title]
		if !wanted {
			continue
		}
		if *field, err = strconv.ParseFloat(lines[1][i], 64); err != nil {
			return told{}, fmt.Errorf("%q is no number: %w", title, err)
		}
		delete(fields, title)
	}
	if len(fields) > 0 {
		return told{}, fmt.Errorf("%q lacks one of the rate, the mean, p50, p95 and p99", lines[0])
	}
	for _, latency := range []*float64{&t.Mean, &t.P50, &t.P95, &t.P99} {
		*latency *= 1e-6 // µs
	}
	return t, nil
}

// readEdges reads from the record of every request when the first window began and the last one ended.
func readEdges(in io.Reader) ([2]int64, error) {
	var export struct {
		Experiments []struct {
			Boundaries []int64 `json:"window_boundaries"`
		} `json:"experiments"`
	}
	if err := json.NewDecoder(in).Decode(&export); err != nil {
		return [2]int64{}, err
	}
	if len(export.Experiments) != 1 || len(export.Experiments[0].Boundaries) != windows+1 {
		return [2]int64{}, fmt.Errorf("expected one load with %d edges of windows, there are %v", windows+1, export.Experiments)
	}
	edges := export.Experiments[0].Boundaries
	return [2]int64{edges[0], edges[windows]}, nil
}
