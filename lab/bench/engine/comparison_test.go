package main

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

// roundsOf makes rounds from throughputs.
func roundsOf(tuner, triton []float64) (out []round) {
	for i := range tuner {
		out = append(out, round{
			Tuner:  figures{seen{Throughput: tuner[i]}, usage{Foreign: 0.1, Idle: 0.02}},
			Triton: figures{seen{Throughput: triton[i]}, usage{Foreign: 0.3, Idle: 0.04}},
		})
	}
	return out
}

func TestComparison(t *testing.T) {
	t.Parallel()
	c := comparison{Rounds: roundsOf([]float64{110, 220, 90}, []float64{100, 200, 100}), Of: throughput, Scale: 2}
	r := c.line().Ratio()
	if math.Abs(r.Value-1.1) > 1e-12 { // ratios 1.1, 1.1, 0.9
		t.Errorf("median ratio %v, expected 1.1", r.Value)
	}
	// Student's interval for ln 1.1, ln 1.1, ln 0.9: mean 0.02842, deviation 0.11586, t(0.975, 2) =
	// 4.3027.
	if math.Abs(r.Lo-math.Exp(0.02842-4.3027*0.11586/math.Sqrt(3))) > 1e-3 || math.Abs(r.Hi-math.Exp(0.02842+4.3027*0.11586/math.Sqrt(3))) > 1e-3 {
		t.Errorf("interval %v to %v", r.Lo, r.Hi)
	}
	if foreign, idle := c.noise(); math.Abs(foreign-0.2) > 1e-12 || math.Abs(idle-0.03) > 1e-12 {
		t.Errorf("foreign %v, idle %v, expected 0.2 and 0.03", foreign, idle)
	}
}

func TestWriteTable(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	b := &bench{out: &text, record: io.Discard}
	line := comparison{"HTTP: throughput", "infer/s", roundsOf([]float64{1200, 1200}, []float64{1000, 1000}), throughput, 1, "≥ 1.3"}
	if err := b.report("### Front ends", []comparison{line}); err != nil {
		t.Fatal(err)
	}
	const want = `
### Front ends

| | tuner, median | Triton, median | ratio | 95 % interval | goal | rounds | foreign CPU | idle server, cores |
|---|---|---|---|---|---|---|---|---|
| HTTP: throughput | 1200 infer/s | 1000 infer/s | **1.20** | 1.20–1.20 | ≥ 1.3 | 2 | 20 % | 0.03 |
`
	if text.String() != want {
		t.Errorf("the table is\n%s\nexpected\n%s", text.String(), want)
	}
	b.out = brokenWriter{}
	if err := b.report("", []comparison{line}); err == nil {
		t.Error("no error although nothing could be written")
	}
}

func TestWriteRecord(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	b := &bench{out: io.Discard, record: &text}
	line := comparison{"HTTP: p99 latency", "ms", roundsOf([]float64{1.5, 2}, []float64{3, 4}), throughput, 10, ""}
	if err := b.report("", []comparison{line}); err != nil {
		t.Fatal(err)
	}
	const want = `BenchmarkPeers/HTTP:_p99_latency/side=tuner 1 15 ms
BenchmarkPeers/HTTP:_p99_latency/side=triton 1 30 ms
BenchmarkPeers/HTTP:_p99_latency/side=tuner 1 20 ms
BenchmarkPeers/HTTP:_p99_latency/side=triton 1 40 ms
`
	if text.String() != want {
		t.Errorf("the record is\n%s\nexpected\n%s", text.String(), want)
	}
	b.record = brokenWriter{}
	if err := b.report("", []comparison{line}); err == nil {
		t.Error("no error although nothing could be written")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestAddedIsAboveZero(t *testing.T) {
	t.Parallel()
	if got := added(figures{seen: seen{P50: 0.003, Infer: 0.002}}); math.Abs(got-0.001) > 1e-12 {
		t.Errorf("added %v, expected 0.001", got)
	}
	if got := addedMean(figures{seen: seen{Mean: 0.0025, Infer: 0.002}}); math.Abs(got-0.0005) > 1e-12 {
		t.Errorf("added mean %v, expected 0.0005", got)
	}
	if got := added(figures{seen: seen{P50: 0.001, Infer: 0.002}}); got != shortestAdded {
		t.Errorf("added %v, expected %v", got, shortestAdded)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0)
	before := meter{at: at, server: time.Second, idle: time.Second, requests: 500, inferred: 900, executed: 100}
	after := meter{at: at.Add(2 * time.Second), server: 3 * time.Second, idle: 1100 * time.Millisecond, requests: 1500, inferred: 2900, executed: 350}
	u := after.since(before)
	// 2 s for 1,000 requests, 0.1 s in 2 s, 2,000 rows in 250 batches. The machine's own clock did
	// not move.
	if u.CPU != 2 || math.Abs(u.Idle-0.05) > 1e-12 || u.Batch != 8 || u.Foreign != 0 {
		t.Errorf("usage %+v", u)
	}
	if u := before.since(meter{at: at.Add(-time.Second), requests: 500, executed: 100}); u.CPU != 0 || u.Batch != 0 {
		t.Errorf("usage %+v although nothing was answered", u)
	}
}
