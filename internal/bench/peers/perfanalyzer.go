package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// attempts is how often perf_analyzer may try: on a busy machine it sometimes hangs, or sees nothing complete in a window.
const attempts = 3

// perfAnalyzer is the client: the real perf_analyzer in a closed loop. It measures three windows and reports their mean,
// whatever their spread: the rounds are what tells of that.
func (b *bench) perfAnalyzer(model, protocol string, concurrency int, window time.Duration) client {
	return func(ctx context.Context, s *side) (seen, error) {
		args := []string{"-m", model, "-i", protocol, "-u", s.address(protocol),
			"--input-data", "zero", "--concurrency-range", strconv.Itoa(concurrency),
			"-p", strconv.FormatInt(window.Milliseconds(), 10), "-s", "100000", "-r", "3", "--verbose-csv"}
		for attempt := 1; ; attempt++ {
			told, err := b.analyzeOnce(ctx, args, 10*window+30*time.Second)
			if err == nil || ctx.Err() != nil || attempt == attempts {
				return told, err
			}
			fmt.Fprintf(b.messages, "%s, attempt %d: %v\n", s.name, attempt, err)
		}
	}
}

// analyzeOnce runs perf_analyzer, for the given time at most, and reads its report.
func (b *bench) analyzeOnce(ctx context.Context, args []string, atMost time.Duration) (seen, error) {
	file := filepath.Join(b.work, "perf_analyzer.csv")
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return seen{}, fmt.Errorf("cannot remove an earlier report: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	if text, err := exec.CommandContext(ctx, b.peers.PerfAnalyzer, append(args, "-f", file)...).CombinedOutput(); err != nil {
		return seen{}, fmt.Errorf("perf_analyzer failed: %w; its output:\n%s", err, text)
	}
	report, err := os.Open(file)
	if err != nil {
		return seen{}, fmt.Errorf("cannot read perf_analyzer's report: %w", err)
	}
	defer report.Close()
	return readReport(report)
}

// readReport reads perf_analyzer's CSV report of one load.
func readReport(in io.Reader) (seen, error) {
	lines, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return seen{}, fmt.Errorf("cannot read perf_analyzer's report: %w", err)
	}
	if len(lines) != 2 {
		return seen{}, fmt.Errorf("cannot read perf_analyzer's report: %d lines, expected a heading and a load", len(lines))
	}
	report := make(map[string]float64)
	for i, title := range lines[0] {
		value, err := strconv.ParseFloat(lines[1][i], 64)
		if err != nil {
			return seen{}, fmt.Errorf("cannot read perf_analyzer's report: %q is not a number: %w", title, err)
		}
		report[title] = value
	}
	for _, title := range []string{"Inferences/Second", "p50 latency", "p99 latency", "Avg latency", queue, input, compute, output} {
		if _, found := report[title]; !found {
			return seen{}, fmt.Errorf("cannot read perf_analyzer's report: there is no %q among %q", title, lines[0])
		}
	}
	const micro = 1e-6
	return seen{
		Throughput: report["Inferences/Second"],
		P50:        micro * report["p50 latency"], P99: micro * report["p99 latency"], Mean: micro * report["Avg latency"],
		Infer: micro * report[compute], Around: micro * (report[queue] + report[input] + report[output]),
	}, nil
}

// Columns of the report with the parts of the server's statistics.
const (
	queue   = "Server Queue"
	input   = "Server Compute Input"
	compute = "Server Compute Infer"
	output  = "Server Compute Output"
)
