package main

import (
	"context"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/internal/programtest"
	"tuner/lab/bench/sidebyside"
	"tuner/lab/peers"
)

// heading is the heading of perf_analyzer 2.51 with --verbose-csv.
const heading = "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,Server Compute Infer,Server Compute Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency,Avg latency,request/response,response wait\n"

func TestReadReport(t *testing.T) {
	t.Parallel()
	got, err := readReport(strings.NewReader(heading + "8,182.904,10,1591,6810,65,34947,51,3,42529,69203,75247,77852,43479,13,43428\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"throughput", got.Throughput, 182.904}, {"p50", got.P50, 0.042529}, {"p99", got.P99, 0.077852}, {"infer", got.Infer, 0.034947},
		{"mean", got.Mean, 0.043479}, {"around", got.Around, 0.006926}, // 6810 + 65 + 51 µs
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s %v, expected %v", c.name, c.got, c.want)
		}
	}
}

func TestReadReportRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":          "",
		"no load":          heading,
		"two loads":        heading + strings.Repeat("8,182.904,10,1591,6810,65,34947,51,3,42529,69203,75247,77852,43479,13,43428\n", 2),
		"a missing column": "Concurrency,Inferences/Second\n8,100\n",
		"no number":        heading + "8,many,10,1591,6810,65,34947,51,3,42529,69203,75247,77852,43479,13,43428\n",
		"a short line":     heading + "8,100\n",
	} {
		if got, err := readReport(strings.NewReader(text)); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}

// fakeAnalyzer is a perf_analyzer that fails until its second run. It finds its report's path after
// -f.
const fakeAnalyzer = `#!/bin/sh
cd "${0%/*}"
echo run >> runs
test $(wc -l < runs) -ge 2 || { echo "no valid requests"; exit 3; }
while [ "$1" != -f ]; do shift; done
cp report.csv "$2"
`

func TestPerfAnalyzerTriesAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "perf_analyzer")
	report := heading + "8,182.904,10,1591,6810,65,34947,51,3,42529,69203,75247,77852,43479,13,43428\n"
	for path, text := range map[string]string{program: fakeAnalyzer, filepath.Join(dir, "report.csv"): report} {
		programtest.Write(t, path, text)
	}
	var messages strings.Builder
	b := &bench{peers: &peers.Peers{PerfAnalyzer: program}, work: t.TempDir(), messages: &messages}
	run := b.perfAnalyzer("simple", sidebyside.HTTP, 8, time.Second)
	got, err := run(t.Context(), &side{name: "tuner", server: &peers.Server{HTTP: "127.0.0.1:1"}})
	if err != nil || got.Throughput != 182.904 {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.Contains(messages.String(), "attempt 1: perf_analyzer failed: exit status 3") || !strings.Contains(messages.String(), "no valid requests") {
		t.Errorf("the messages do not tell of the first attempt: %q", messages.String())
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	b.messages = io.Discard
	if _, err := run(cancelled, &side{name: "tuner", server: &peers.Server{}}); err == nil {
		t.Error("no error although the run was cancelled")
	}
}
