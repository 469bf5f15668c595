package main

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"tuner/internal/golden"
	"tuner/lab/program"
	"tuner/measure"
)

// Four pairs in which B is 2 %, 0 %, 4 % and 2 % faster. Up to 4 pairs the interval is Student's on
// the logarithms: mean(ln 1.02, 0, ln 1.04, ln 1.02) = 0.019706, s = 0.016013, t(0.975, 3) =
// 3.1824, half width t·s/2 = 0.025480. So the result is e^0.019706 = 1.020 in [e^-0.005774,
// e^0.045186] = [0.994, 1.046].
func TestComparisonIsPrinted(t *testing.T) {
	t.Parallel()
	side := func(throughput float64) figures {
		return figures{Throughput: throughput, P99: 2 / throughput, Foreign: 0.1, Window: window(t)}
	}
	c := comparison{
		Model: "mlp", A: "campaign", B: "deployed", Window: 3 * time.Second,
		LoadA: measure.Load{Concurrency: 4, BatchSize: 1}, LoadB: measure.Load{Concurrency: 4, BatchSize: 1},
		Reported: measure.Estimate{Value: 100, Lo: 95, Hi: 105},
		Pairs: []pair{
			{A: side(100), B: side(102)},
			{A: side(100), B: side(100), Reversed: true},
			{A: side(100), B: side(104)},
			{A: side(100), B: side(102), Reversed: true},
		},
	}
	var got bytes.Buffer
	if err := c.write(&got); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "comparison.txt"), got.Bytes())
}

// window returns 1000 requests with latencies of 1, 2, … 1000 ms. Their 99th percentile is 990 ms,
// at the histogram's resolution.
func window(t *testing.T) measure.Window {
	t.Helper()
	latencies := make([]time.Duration, 1000)
	for i := range latencies {
		latencies[i] = time.Duration(i+1) * time.Millisecond
	}
	histogram := measure.NewHistogram(latencies)
	return measure.Window{Duration: time.Second, Requests: 1000, Inferences: 1000, Sub: []measure.SubWindow{{Requests: 1000, Latency: histogram}}}
}

func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"extra"}, {"-against", "nobody"}, {"-pairs", "0"}, {"-window", "0s"}, {"-pairs", "x"}} {
		if _, err := program.Parse(define, append([]string{"-tuner", "main.go"}, args...), t.Output()); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	if o, err := program.Parse(define, []string{"-tuner", "main.go"}, t.Output()); err != nil || o.pairs != 8 || o.window != 3*time.Second || o.against != againstCampaign {
		t.Errorf("defaults are %+v, %v", o, err)
	}
}

func TestFailedTrialHasNoFigures(t *testing.T) {
	t.Parallel()
	m := measure.Measurement{Failure: &measure.Failure{Stage: measure.StageCrash, Reason: "signal: killed"}}
	if _, err := newFigures(m); err == nil || err.Error() != "failed (crash): signal: killed" {
		t.Errorf("err = %v", err)
	}
}
