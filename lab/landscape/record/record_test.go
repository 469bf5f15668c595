package record

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/searchtest"
)

// sample returns a small recording.
func sample() File {
	ms := time.Millisecond
	candidate := search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: "2"})
	latency := NewSketch(func(level float64) float64 { return 0.010 + 0.010*level })
	trial := Trial{Candidate: candidate, Pass: 1, Launch: 1, At: time.Second, Times: measure.Times{Launch: 800 * ms, WarmUp: 300 * ms, Windows: time.Second}, Memory: 1e8}
	window := Window{Duration: time.Second, Requests: []int{40, 41}, Latency: latency, Executions: 20, Queue: ms, Infer: 4 * ms, CPU: time.Second, ClientCPU: 30 * ms, Steal: 0.02, Flags: []string{"steal"}}
	failed := trial
	failed.Failure = &measure.Failure{Stage: measure.StageLoad, Reason: "no"}
	return File{
		Header: Header{Version: Version, Name: "sample", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Machine: "m", Host: "h", Runtime: "cpu@1",
			Models: map[string]string{"fp32": "abc"}, Config: "name: \"m\"", Window: time.Second, Seed: 3,
			Space: search.Space{
				Knobs: []search.Knob{{Name: search.KnobInstanceCount, Scope: search.ScopePool, Values: []search.Value{"1", "2"}}},
				Load:  search.LoadAxis{Levels: []float64{1, 8}, BatchSize: 1}, Facts: search.Facts{Cores: 2, Batching: true, Precisions: []string{"fp32"}},
			}},
		Points: []Point{{Trial: trial, Level: 8, Windows: []Window{window}}, {Trial: failed, Level: 1}, {Trial: trial, Level: 1, Reference: true, Windows: []Window{window}}},
		Services: []Service{{Trial: trial, Concurrency: 2, Batches: []BatchFigure{
			{Size: 1, Requests: 10, Executions: 10, Infer: 4 * ms, Latency: latency}, {Size: 4, Requests: 5, Executions: 5, Infer: 9 * ms, Latency: latency},
		}}},
	}
}

func text(t testing.TB, f File) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, f); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	want := sample()
	got, err := Read(strings.NewReader(text(t, want)))
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(search.Candidate{})); err != nil || diff != "" {
		t.Errorf("plain: %v (-want +got):\n%s", err, diff)
	}
	path := filepath.Join(t.TempDir(), "sample.jsonl.gz")
	if err := Save(path, want); err != nil {
		t.Fatal(err)
	}
	got, err = Load(path)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(search.Candidate{})); err != nil || diff != "" {
		t.Errorf("compressed: %v (-want +got):\n%s", err, diff)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	good := strings.SplitAfter(text(t, sample()), "\n") // header, service, three points, ""
	header, service, point := good[0], good[1], good[2]
	for want, content := range map[string]string{
		"it is empty": "",
		"line 1: the first line must be the header":         point,
		"line 1: header.version is 9; this program reads 1": strings.Replace(header, `"version":1`, `"version":9`, 1),
		"line 1: header.name is missing":                    strings.Replace(header, `"name":"sample"`, `"name":""`, 1),
		"line 1: header.window is 0s":                       strings.Replace(header, `"window":1000000000`, `"window":0`, 1),
		"line 1: header.space.Load.Levels are [8 1]":        strings.Replace(header, `"Levels":[1,8]`, `"Levels":[8,1]`, 1),
		"line 1: header.space.Load must list":               strings.Replace(header, `"Rate":false`, `"Rate":true`, 1),
		"line 2: must be one point or one service trial":    header + header,
		"line 2: cannot decode":                             header + "{\"point\":{\"colour\":1}}\n",
		"line 2: more than one value":                       header + strings.TrimSpace(point) + "{}\n",
		"line 2: point.level is 3":                          header + strings.Replace(point, `"level":8`, `"level":3`, 1),
		"line 2: launch 0":                                  header + strings.Replace(point, `"launch":1,"at"`, `"launch":0,"at"`, 1),
		"line 2: times":                                     header + strings.Replace(point, `"warm_up":300`, `"warm_up":-300`, 1),
		"line 2: point: must have either":                   header + withoutWindows(point),
		"point.windows[0]: no request was answered":         header + strings.Replace(point, `"requests":[40,41]`, `"requests":[0,0]`, 1),
		"point.windows[0]: duration is 0s":                  header + strings.Replace(point, `[{"duration":1000000000`, `[{"duration":0`, 1),
		"point.windows[0]: a count or time is negative":     header + strings.Replace(point, `"client_cpu":`, `"client_cpu":-`, 1),
		"point.windows[0]: latency is":                      header + strings.Replace(point, `"latency":[10000000`, `"latency":[90000000`, 1),
		"line 2: service: must have a concurrency":          header + strings.Replace(service, `"concurrency":2`, `"concurrency":0`, 1),
		"service.batches[1].size is 1 after 1":              header + strings.Replace(service, `"size":4`, `"size":1`, 1),
		"service.batches[0]: nothing was answered":          header + strings.Replace(service, `"requests":10`, `"requests":0`, 1),
	} {
		_, err := Read(strings.NewReader(content))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
}

// withoutWindows removes the windows from a point's line.
func withoutWindows(point string) string {
	return point[:strings.Index(point, `,"windows":[`)] + "}}\n"
}

func TestRecordingGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sample.jsonl")
	want := sample()
	log, known, err := Open(path, want.Header)
	if err != nil || len(known.Points) != 0 {
		t.Fatalf("%v, %d points at the start", err, len(known.Points))
	}
	for _, p := range want.Points[:2] {
		if err := log.Point(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Service(want.Services[0]); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	torn, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = torn.WriteString(`{"point":{"candi`)
	}
	if err != nil || torn.Close() != nil {
		t.Fatal(err)
	}
	log, known, err = Open(path, Header{})
	if err != nil || len(known.Points) != 2 || len(known.Services) != 1 || known.Header.Name != "sample" {
		t.Fatalf("after the crash: %v, %+v", err, known)
	}
	if err := log.Point(want.Points[2]); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(search.Candidate{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestSketchKeepsQuantiles(t *testing.T) {
	t.Parallel()
	s := NewSketch(func(level float64) float64 { return 0.010 + 0.010*level*level })
	for _, level := range []float64{0, 0.5, 0.9, 0.99, 1} {
		if got, want := s.Quantile(level), 0.010+0.010*level*level; math.Abs(got-want) > 5e-6 { // four digits
			t.Errorf("quantile %g is %g s, want %g", level, got, want)
		}
	}
	if got := s.Quantile(0.7); got <= s.Quantile(0.5) || got >= s.Quantile(0.75) {
		t.Errorf("quantile 0.7 is %g, not between its neighbours", got)
	}
	// The mean of 10 + 10·u² over 0..1 is 13.33. The chords lie above the parabola by at most
	// 10·0.25²/6 per level.
	if got := s.Mean(); got < 0.01333 || got > 0.01345 {
		t.Errorf("mean is %g s, want 0.0133", got)
	}
}

func TestConversionKeepsTheFigures(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	m := searchtest.Measured(search.Trial{Windows: 2, Window: time.Second}, 80, 20*ms)
	for i := range m.Windows {
		m.Windows[i].EngineCPU, m.Windows[i].ClientCPU = 700*ms, 20*ms
		m.Windows[i].Server = measure.ServerStats{Requests: 100, Executions: 50, Queue: 200 * ms, ComputeInput: 100 * ms, ComputeInfer: 400 * ms, ComputeOutput: 300 * ms}
	}
	p := NewPoint(Trial{Pass: 2}, 8, m)
	w := p.Windows[1]
	parts := []time.Duration{w.Queue, w.Input, w.Infer, w.Output}
	if p.Pass != 2 || p.Launch != m.Launch || p.Memory != m.Memory || len(p.Windows) != 2 || w.Executions != 50 ||
		w.CPU != 700*ms || w.ClientCPU != 20*ms ||
		!slices.Equal(parts, []time.Duration{2 * ms, ms, 4 * ms, 3 * ms}) || math.Abs(w.Latency.Quantile(0.99)-0.020) > 2e-5 {
		t.Errorf("point is %+v", p)
	}
	s := NewService(Trial{}, 2, []int{1, 4}, m)
	if len(s.Batches) != 2 || s.Batches[1].Size != 4 || s.Batches[1].Infer != 4*ms || s.Batches[1].Executions != 50 {
		t.Errorf("service trial is %+v", s)
	}
	m.Windows, m.Failure = nil, &measure.Failure{Stage: measure.StageStart}
	if p := NewPoint(Trial{}, 8, m); p.Failure == nil || p.check(search.Space{Load: search.LoadAxis{Levels: []float64{8}}}) != nil {
		t.Errorf("failed point is %+v", p)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(text(f, sample())))
	f.Add([]byte("{\"header\":{}}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		first, err := Read(bytes.NewReader(content))
		if err != nil {
			return
		}
		again := text(t, first)
		second, err := Read(strings.NewReader(again))
		if err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		if text(t, second) != again {
			t.Fatal("what is read and written again differs")
		}
	})
}
