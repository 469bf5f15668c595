//go:build conformance

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/gate/output"
	"tuner/measure"
	"tuner/spec"
)

// TestTrend opens trend.html in a real browser, from disk. testdata/trend.mjs has the checks.
// TUNER_PICTURES names a folder for screenshots.
func TestTrend(t *testing.T) {
	t.Run("ordinary", func(t *testing.T) {
		t.Parallel()
		inBrowser(t, "trend.mjs", trendOf(t, gates(t)), "ordinary")
	})
	t.Run("hostile names", func(t *testing.T) {
		t.Parallel()
		const hostile = `</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>'"<!--`
		list := gates(t)
		for i := range list {
			list[i].Revision, list[i].Fingerprint, list[i].Verdict = hostile, hostile, hostile
		}
		list[1].Metrics = nil
		inBrowser(t, "trend.mjs", trendOf(t, list), "hostile")
	})
}

// gateFile returns the gate file of the history.
func gateFile(t *testing.T) spec.Gate {
	t.Helper()
	g, err := spec.ParseGate("gate.yaml", []byte("name: minilm\nbaseline: base.onnx\ncandidate: new.onnx\nload: {concurrency: 8}\n"+
		"limits: {latency_p99: {max: 30ms}, memory: {max: 1GB}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// gates returns a history of a dozen gates. The first is by an earlier version, the third on
// another machine, the eighth slower, the tenth undecided.
func gates(t *testing.T) []gate.Record {
	t.Helper()
	p := func(v float64) *float64 { return &v }
	var list []gate.Record
	for i := range 12 {
		change, half, verdict := 0.004*math.Sin(float64(i)), 0.008, decide.Pass
		switch i {
		case 7:
			change, verdict = -0.05, decide.Fail
		case 9:
			half, verdict = 0.6, decide.Inconclusive
		}
		base := 200 - float64(i)
		record := gate.Record{
			Schema: 1, Time: time.Date(2025, 6, 1+i, 12, 30, 0, 0, time.UTC), Revision: fmt.Sprintf("%08x%032x", 0x1234abcd+977*i, i), Name: "minilm",
			Verdict: verdict, Load: gateFile(t).Load, Fingerprint: "0123456789abcdef", Pairs: 10, Seconds: 160,
			Metrics: map[measure.Metric]gate.RecordFigure{
				measure.Throughput: {Candidate: base * (1 + change), Baseline: p(base), Change: p(change), Lo: p(change - half), Hi: p(change + half),
					Verdict: verdict, Margin: p(0.02)},
				measure.LatencyP99: {Candidate: 0.025, Baseline: p(0.0249), Change: p(0.004), Lo: p(-0.03), Hi: p(0.04), Verdict: decide.Pass, Margin: p(0.1),
					Max: p(0.03), CandidateLo: p(0.024), CandidateHi: p(0.026)},
				measure.Memory: {Candidate: 3e8 + 1e6*float64(i), Verdict: decide.Pass, Max: p(1e9), CandidateLo: p(2.9e8), CandidateHi: p(3.2e8)},
			},
		}
		switch i {
		case 0:
			record.Metrics = map[measure.Metric]gate.RecordFigure{measure.Throughput: {Candidate: base, Baseline: p(base)}}
		case 2:
			record.Fingerprint = "another"
		}
		list = append(list, record)
	}
	return list
}

// trendOf writes the page of a history, and the history beside it, into a new folder.
func trendOf(t *testing.T, history []gate.Record) string {
	t.Helper()
	dir, g := t.TempDir(), gateFile(t)
	var lines, page bytes.Buffer
	for _, record := range history {
		if err := json.NewEncoder(&lines).Encode(record); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "history.jsonl"), lines.Bytes())
	last := history[len(history)-1]
	result := gate.Result{Setup: gate.Setup{Spec: g, Load: g.Load}, Outcome: gate.Outcome{Verdict: last.Verdict, Looks: 1}, Time: last.Time}
	if err := output.WriteTrend(&page, output.Report{Result: result, History: history}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "trend.html"), page.Bytes())
	return dir
}
