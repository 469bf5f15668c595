package main

import (
	"math"
	"strings"
	"testing"
)

// heading is perf_analyzer 2.51's with --verbose-csv.
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
