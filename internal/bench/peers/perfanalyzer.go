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
	"strings"
	"time"
)

// perfAnalyzer is the client: the real perf_analyzer in a closed loop. It measures three windows and reports their mean,
// whatever their spread: the rounds are what tells of that.
func (b *bench) perfAnalyzer(model, protocol string, concurrency int, window time.Duration) client {
	return func(ctx context.Context, s *side) (seen, error) {
		file := filepath.Join(b.work, "perf_analyzer.csv")
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return seen{}, fmt.Errorf("cannot remove an earlier report: %w", err)
		}
		ctx, cancel := context.WithTimeout(ctx, 10*window+time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, b.peers.PerfAnalyzer, "-m", model, "-i", protocol, "-u", s.address(protocol),
			"--input-data", "zero", "--concurrency-range", strconv.Itoa(concurrency),
			"-p", strconv.FormatInt(window.Milliseconds(), 10), "-s", "100000", "-r", "3", "-f", file)
		if text, err := cmd.CombinedOutput(); err != nil {
			return seen{}, fmt.Errorf("perf_analyzer failed: %w; its output:\n%s", err, text)
		}
		report, err := os.Open(file)
		if err != nil {
			return seen{}, fmt.Errorf("cannot read perf_analyzer's report: %w", err)
		}
		defer report.Close()
		return readReport(report)
	}
}

// readReport reads perf_analyzer's CSV report of one load.
func readReport(in io.Reader) (seen, error) {
	lines, err := csv.NewReader(in).ReadAll()
	if err != nil || len(lines) != 2 {
		return seen{}, fmt.Errorf("cannot read perf_analyzer's report: %d lines, expected a heading and a load (%w)", len(lines), err)
	}
	var out seen
	found := 0
	for i, title := range lines[0] {
		const micro = 1e-6
		into, unit := (*float64)(nil), micro
		switch strings.TrimSpace(title) {
		case "Inferences/Second":
			into, unit = &out.Throughput, 1
		case "p50 latency":
			into = &out.P50
		case "p99 latency":
			into = &out.P99
		case "Server Compute Infer":
			into = &out.Infer
		default:
			continue
		}
		value, err := strconv.ParseFloat(lines[1][i], 64)
		if err != nil {
			return seen{}, fmt.Errorf("cannot read perf_analyzer's report: %q is not a number: %w", title, err)
		}
		*into = value * unit
		found++
	}
	if found != 4 {
		return seen{}, fmt.Errorf("cannot read perf_analyzer's report: a column is missing among %q", lines[0])
	}
	return out, nil
}
