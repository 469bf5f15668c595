package main

import (
	"context"
	"io"
	"strconv"
	"time"

	"tuner/lab/bench/sidebyside"
)

// perfAnalyzer returns the real perf_analyzer in a closed loop as the client. It measures three
// windows and reports their mean, for any spread, since the rounds show the spread. args are
// further options.
func (b *bench) perfAnalyzer(model, protocol string, concurrency int, window time.Duration, args ...string) client {
	analyzer := sidebyside.Analyzer{Name: "perf_analyzer", Command: []string{b.peers.PerfAnalyzer}, Work: b.work}
	return func(ctx context.Context, s *side) (seen, error) {
		d := sidebyside.Demand{Model: model, Protocol: protocol, Address: s.address(protocol), Window: window,
			Args: append([]string{"--concurrency-range", strconv.Itoa(concurrency)}, args...)}
		return sidebyside.Retry(ctx, b.messages, s.name, func() (seen, error) { return sidebyside.Measure(ctx, analyzer, d, readReport) })
	}
}

// readReport reads perf_analyzer's CSV report of one load.
func readReport(in io.Reader) (seen, error) {
	report, err := sidebyside.Columns(in, "Inferences/Second", "p50 latency", "p99 latency", "Avg latency", queue, input, compute, output)
	if err != nil {
		return seen{}, err
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
