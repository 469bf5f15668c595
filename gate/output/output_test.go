package output

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/internal/golden"
	"tuner/measure"
	"tuner/model/modelrepo"
	"tuner/profile"
	"tuner/spec"
)

// side makes a measurement of one window with a throughput, and latencies for 8 requests in flight.
func side(rate float64) measure.Measurement {
	h := measure.NewHistogram([]time.Duration{time.Duration(8e9 / rate), time.Duration(9e9 / rate)})
	return measure.Measurement{Memory: 3e8, Windows: []measure.Window{{Duration: 100 * time.Second, Requests: int(100 * rate), Inferences: int(100 * rate),
		Sub: []measure.SubWindow{{Requests: 2, Latency: h}}, Flags: []measure.Flag{measure.FlagForeign}}}}
}

// subject makes a side's model.
func subject(path string) gate.Subject {
	return gate.Subject{Subject: profile.Subject{Name: "minilm", Files: []profile.File{{Source: modelrepo.Source{Path: path, Digest: "d1"}}}}, Runtime: "cpu@1.31.1"}
}

// newReport makes a gate on throughput, p99 and memory with these verdicts and ten pairs.
func newReport(t *testing.T, throughput, p99 decide.Verdict) Report {
	t.Helper()
	g, err := spec.ParseGate("gate.yaml", []byte("name: minilm\nbaseline: base.onnx\ncandidate: new.onnx\nload: {concurrency: 8}\nlimits: {memory: {max: 1GB}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	baseline := subject("base.onnx")
	s := gate.Setup{Spec: g, Baseline: &baseline, Candidate: subject("new.onnx"), Load: g.Load, Tool: "1.0", Fingerprint: "0123456789abcdef"}
	o := gate.Outcome{Verdict: decide.Pass, Looks: 1, Elapsed: 161 * time.Second, Standings: []decide.Standing{
		{Verdict: throughput, Value: 0.051, Lo: 0.031, Hi: 0.071, Pairs: 10, Error: 0.01},
		{Verdict: p99, Value: 0.05, Lo: 0.01, Hi: 0.15, Pairs: 10, Error: 0.01},
		{Verdict: decide.Pass, Value: math.Log(0.3), Lo: math.Log(0.29), Hi: math.Log(0.31), Pairs: 10},
	}}
	for range 10 {
		o.Pairs = append(o.Pairs, gate.Pair{Baseline: side(200), Candidate: side(190)})
	}
	switch {
	case throughput == decide.Fail:
		o.Verdict, o.Reasons = decide.Fail, []string{"throughput differs by -5.0 % (-6.9 % to -3.1 %): 2 % lower is allowed"}
	case p99 == decide.Inconclusive:
		o.Verdict, o.Needed, o.Reasons = decide.Inconclusive, gate.Need{Time: 25 * time.Minute}, []string{"nothing is proven after 10 pairs"}
	}
	r := gate.NewResult(s, o, nil, time.Unix(1.75e9, 0), "abc123")
	var history []gate.Record
	for i, rate := range []float64{205, 200, 202, 190} {
		record := gate.NewRecord(r)
		record.Metrics[measure.Throughput] = gate.RecordFigure{Candidate: rate}
		if i < 3 {
			record.Verdict = decide.Pass
		}
		history = append(history, record)
	}
	other := history[0]
	other.Load.Concurrency++ // another load is not comparable
	return Report{Result: r, History: append([]gate.Record{other}, history...)}
}

func TestGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Report{
		"pass": newReport(t, decide.Pass, decide.Pass), "fail": newReport(t, decide.Fail, decide.Inconclusive), "inconclusive": newReport(t, decide.Pass, decide.Inconclusive),
		"several": reportOfTwo(t),
	} {
		texts := map[string][]byte{}
		for _, f := range files() {
			var b bytes.Buffer
			if f.name == ChartName {
				continue
			}
			if err := f.write(&b, r); err != nil {
				t.Fatal(err)
			}
			texts[f.name] = b.Bytes()
			if f.name == TrendName {
				texts[f.name] = withoutAssets(texts[f.name])
			}
		}
		var table bytes.Buffer
		if err := WriteTable(&table, r); err != nil {
			t.Fatal(err)
		}
		texts["table.txt"] = table.Bytes()
		for file, text := range texts {
			golden.Check(t, filepath.Join("testdata", name+"."+file), text)
		}
	}
}

func TestWriteAll(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	written, err := WriteAll(dir, newReport(t, decide.Fail, decide.Pass))
	if err != nil || len(written) != len(files()) {
		t.Fatalf("wrote %q, %v", written, err)
	}
	picture, err := os.ReadFile(filepath.Join(dir, ChartName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil {
		t.Error(err)
	}
}

// junit reads back the fields that a CI system uses.
func junit(t *testing.T, r Report) junitSuites {
	t.Helper()
	var b bytes.Buffer
	if err := WriteJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal(b.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	return suites
}

// benchstat takes the values of one unit for samples of one quantity, so no two metrics share one.
func TestBenchUnits(t *testing.T) {
	t.Parallel()
	for metric, want := range map[measure.Metric]string{
		measure.Throughput: "infer/s", "goodput_50ms": "goodput_50ms", "goodput_90ms": "goodput_90ms", measure.LatencyP99: "p99-ns", measure.Memory: "memory-bytes",
	} {
		if got := benchUnit(metric); got != want {
			t.Errorf("%s has the unit %s, want %s", metric, got, want)
		}
	}
}

func TestJUnitCounts(t *testing.T) {
	t.Parallel()
	check := func(name string, r Report, tests, failures, skipped int) {
		t.Helper()
		if s := junit(t, r); s.Tests != tests || s.Failures != failures || s.Skipped != skipped || len(s.Suite.Cases) != tests {
			t.Errorf("%s: %d tests, %d failures, %d skipped; want %d, %d, %d", name, s.Tests, s.Failures, s.Skipped, tests, failures, skipped)
		}
	}
	check("pass", newReport(t, decide.Pass, decide.Pass), 3, 0, 0)
	check("fail", newReport(t, decide.Fail, decide.Pass), 3, 1, 0)
	open := newReport(t, decide.Pass, decide.Inconclusive)
	check("inconclusive", open, 3, 0, 1)
	open.Setup.Spec.Inconclusive = spec.GateFail
	check("inconclusive counts as failed", open, 3, 1, 0)
	open.Setup.Spec.Inconclusive = spec.GatePass
	check("inconclusive counts as passed", open, 3, 0, 0)
	open.Outcome.Interrupted = true
	check("interrupted", open, 3, 0, 1)
	open.Outcome.Interrupted = false
	open.Outcome.Pairs = open.Outcome.Pairs[:1:1] // a gate without measurements cannot pass
	open.Outcome.Pairs[0].Baseline.Failure = &measure.Failure{Stage: measure.StageStart, Reason: "no library"}
	check("a broken baseline", open, 3, 0, 1)
	open.Outcome.Pairs = nil
	check("refused", open, 3, 0, 1)
	// A crashed candidate counts as failed, although no criterion failed.
	broken := newReport(t, decide.Inconclusive, decide.Inconclusive)
	broken.Outcome.Verdict, broken.Outcome.Reasons = decide.Fail, []string{"the candidate failed: crash: <it> ended"}
	check("broken", broken, 4, 1, 2)
	if c := junit(t, broken).Suite.Cases[3]; c.Name != "measurement" || c.Failure.Message != "the candidate failed: crash: <it> ended" {
		t.Errorf("%+v", c)
	}
	missed := newReport(t, decide.Inconclusive, decide.Inconclusive)
	missed.Outcome.Verdict, missed.Accuracy = decide.Fail, []gate.Accuracy{{Limit: "cosine ≥ 0.99", Value: 0.9, Miss: "cosine is 0.9"}}
	check("accuracy", missed, 4, 1, 2)
}

// The writers also work if nothing was measured.
func TestReportOfNothing(t *testing.T) {
	t.Parallel()
	r := newReport(t, decide.Pass, decide.Pass)
	refused := gate.NewResult(r.Setup, gate.Outcome{Verdict: decide.Inconclusive, Reasons: []string{"another machine"}}, nil, r.Time, "")
	refused.Accuracy = []gate.Accuracy{{Limit: "cosine ≥ 0.99", Value: math.NaN(), Note: "the same file"}}
	for _, f := range files() {
		var b bytes.Buffer
		if f.name == ChartName { // the scripts of internal/cli draw a chart
			continue
		}
		if err := f.write(&b, Report{Result: refused}); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		if f.name == JSONName && (!json.Valid(b.Bytes()) || bytes.Contains(b.Bytes(), []byte(`"change"`))) {
			t.Errorf("%s", b.Bytes())
		}
	}
	if record := gate.NewRecord(refused); len(record.Metrics) != 0 {
		t.Errorf("the history would keep %+v", record.Metrics)
	}
}

// A decision needs more time while looks remain, and then longer windows. It needs neither if a
// queue grows or a side is broken.
func TestNeeded(t *testing.T) {
	t.Parallel()
	r := newReport(t, decide.Pass, decide.Inconclusive)
	for _, tt := range []struct {
		needed   gate.Need
		timeless bool
		want     string
	}{
		{gate.Need{Time: 25 * time.Minute}, false, "A decision would probably need 25m0s in all (--budget)."},
		{gate.Need{Time: time.Hour, Window: 1200 * time.Millisecond}, false, "A decision would probably need windows of 1.2s (window in gate.yaml), and 1h0m0s in all (--budget)."},
		{gate.Need{}, false, "No reasonable time would decide it: the change is too close to the margin."},
		{gate.Need{}, true, ""},
	} {
		r.Outcome.Needed, r.Outcome.Timeless = tt.needed, tt.timeless
		if got := r.needed(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.needed, got, tt.want)
		}
		var b bytes.Buffer
		if err := WriteJSON(&b, r); err != nil || bytes.Contains(b.Bytes(), []byte(`"needed_window_seconds": 1.2`)) != (tt.needed.Window > 0) {
			t.Errorf("%+v: %v, %s", tt.needed, err, b.Bytes())
		}
	}
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	r := newReport(t, decide.Fail, decide.Pass)
	r.Outcome.Reasons = []string{"100 % worse,\nreally", "two"}
	for system, want := range map[string]string{
		GitHub: "::error title=tuner gate%3A minilm::100 %25 worse,%0Areally\n::error title=tuner gate%3A minilm::two\n",
		GitLab: "\x1b[31;1mERROR: tuner gate: minilm: 100 % worse, really\x1b[0m\n\x1b[31;1mERROR: tuner gate: minilm: two\x1b[0m\n",
	} {
		var b strings.Builder
		if err := WriteAnnotations(&b, system, r); err != nil || b.String() != want {
			t.Errorf("%s: %v\n%q, want\n%q", system, err, b.String(), want)
		}
	}
	var b strings.Builder
	if err := WriteAnnotations(&b, GitHub, newReport(t, decide.Pass, decide.Pass)); err != nil || !strings.HasPrefix(b.String(), "::notice ") {
		t.Errorf("%v, %q", err, b.String())
	}
}

func TestSparkline(t *testing.T) {
	t.Parallel()
	history := func(values ...float64) []gate.Record {
		var list []gate.Record
		for _, v := range values {
			list = append(list, gate.Record{Metrics: map[measure.Metric]gate.RecordFigure{measure.Throughput: {Candidate: v}}})
		}
		return list
	}
	for want, values := range map[string][]float64{"▁▅█": {1, 2, 3}, "▅▅": {4, 4}, "": {4}} {
		if got := sparkline(history(values...), measure.Throughput); got != want {
			t.Errorf("%v is %q, want %q", values, got, want)
		}
	}
	if got := []rune(sparkline(history(make([]float64, 100)...), measure.Throughput)); len(got) != mostSparks {
		t.Errorf("a long history has %d blocks", len(got))
	}
}

// failing is a writer on a full disk.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteErrorsAreReturned(t *testing.T) {
	t.Parallel()
	r := newReport(t, decide.Pass, decide.Pass)
	if WriteTable(failing{}, r) == nil || WriteMarkdown(failing{}, r) == nil || WriteJUnit(failing{}, r) == nil || WriteJSON(failing{}, r) == nil ||
		WriteBench(failing{}, r) == nil || WriteTrend(failing{}, r) == nil || WriteAnnotations(failing{}, GitHub, r) == nil {
		t.Error("a write error is lost")
	}
}
