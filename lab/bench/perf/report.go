package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tuner/lab/bench/sidebyside"
)

// told is a program's report of one load.
type told struct {
	Rate                float64 // requests per second
	Mean, P50, P95, P99 float64 // latencies in s
	From, To            int64   // its windows, in ns since 1970; 0: not requested
}

// measureEdges has a program make a load, and returns its report with the edges of the windows. The
// edges require a record of every request.
func (b *bench) measureEdges(ctx context.Context, program sidebyside.Analyzer, d sidebyside.Demand) (told, error) {
	export := filepath.Join(b.work, "export.json")
	if err := os.RemoveAll(export); err != nil {
		return told{}, fmt.Errorf("cannot remove an earlier record: %w", err)
	}
	d.Args = append([]string{"--profile-export-file", export}, d.Args...)
	t, err := sidebyside.Measure(ctx, program, d, readReport)
	if err != nil {
		return told{}, err
	}
	edges, err := sidebyside.ReadFile(export, readEdges)
	t.From, t.To = edges[0], edges[1]
	return t, err
}

// readReport reads the CSV report of one load.
func readReport(in io.Reader) (told, error) {
	columns, err := sidebyside.Columns(in, "Inferences/Second", "Avg latency", "p50 latency", "p95 latency", "p99 latency")
	if err != nil {
		return told{}, err
	}
	const micro = 1e-6
	return told{
		Rate: columns["Inferences/Second"], Mean: micro * columns["Avg latency"],
		P50: micro * columns["p50 latency"], P95: micro * columns["p95 latency"], P99: micro * columns["p99 latency"],
	}, nil
}

// readEdges reads the begin of the first window and the end of the last one from the record of
// every request.
func readEdges(in io.Reader) ([2]int64, error) {
	var export struct {
		Experiments []struct {
			Boundaries []int64 `json:"window_boundaries"`
		} `json:"experiments"`
	}
	if err := json.NewDecoder(in).Decode(&export); err != nil {
		return [2]int64{}, err
	}
	if len(export.Experiments) != 1 || len(export.Experiments[0].Boundaries) != sidebyside.Windows+1 {
		return [2]int64{}, fmt.Errorf("expected one load with %d edges of windows, there are %v", sidebyside.Windows+1, export.Experiments)
	}
	edges := export.Experiments[0].Boundaries
	return [2]int64{edges[0], edges[sidebyside.Windows]}, nil
}
